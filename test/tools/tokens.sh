# SPDX-License-Identifier: BSD-3-Clause
# writers= and exit-wait=, sourced by run.

# A drain of /plfs/slow that has the one token, and takes a minute: $slow. Another file, /plfs/next.
slow_drain() {
	near_setup
	head -c 3000000 /dev/urandom >"$work/plain/slow"
	"$plfs" run -m "$map" cp "$work/plain/slow" /plfs/slow
	"$plfs" run -m "$map" cp "$work/plain/slow" /plfs/next
	"$plfs" drain --writers=1 --rate=64K "$back/slow" >"$work/out" &
	slow=$!
	trap 'kill -KILL $slow 2>/dev/null || :' EXIT
	until_so "the first drain copies" a_copy_is_under_way
}

a_copy_is_under_way() { [ -n "$(find "$back" -name '*.tmp.*')" ]; }

writers_of_all_drains() { # no more than N copy, and the token of one that is killed is free
	local map slow rc=0
	slow_drain
	wrong 75 'not all is in the backend' "$plfs" drain -q --writers=1 --wait --timeout=1 "$back/next"
	wrong 75 'not all is in the backend' "$plfs" drain -q -m "/plfs=$back{small=0,near=$near,writers=1}" --wait --timeout=1 "$back/next"
	[ "$(near_logs)" = 2 ]
	"$plfs" drain --writers=2 "$back/next" | grep '^1 logs moved home'
	kill -KILL $slow
	wait $slow || rc=$?
	[ $rc = 137 ]
	"$plfs" drain --writers=1 "$back/slow" | grep '^1 logs moved home'
	for f in slow next; do "$plfs" run -m "/plfs=$back" cmp "$work/plain/slow" /plfs/$f; done
	"$plfs" check "$back/slow" "$back/next"
	[ "$(find "$back/.plfs" -maxdepth 1 -name 'drains.*')" = "$back/.plfs/drains.$(id -u)" ]
	wrong 2 'is no number from 1 to 4096' "$plfs" drain --writers=0 "$near"
}

writers_of_a_user_by_root() { # root counts as the user whose logs it copies
	local map dir=$work/of.user as="setpriv --reuid=12345 --regid=12345 --clear-groups --"
	[ "$(id -u)" = 0 ] || { echo "needs root, to act for a user"; exit 77; }
	$as true 2>/dev/null || { echo "no setpriv here"; exit 77; }
	chmod 755 "$work"
	$as test -x "$plfs" || { echo "a user cannot reach $plfs"; exit 77; }
	mkdir -p "$dir/backend" "$dir/near"
	chown -R 12345:12345 "$dir"
	$as "$plfs" run -m "/plfs=$dir/backend{small=0,near=$dir/near,drain=none}" sh -c 'echo of a user >/plfs/u'
	"$plfs" drain --writers=1 "$dir/near" | grep '^1 logs moved home'
	[ "$(find "$dir/backend/.plfs" -maxdepth 1 -name 'drains.*')" = "$dir/backend/.plfs/drains.12345" ]
	[ -z "$(find "$dir/backend" ! -uid 12345)" ]
	rm -r "$dir"
}

writers_take_turns() { # two drains with one token both end
	local map i pids='' pid
	near_setup
	head -c 1000000 /dev/urandom >"$work/plain/w"
	for i in 1 2 3 4 5 6; do "$plfs" run -m "$map" cp "$work/plain/w" /plfs/w$i; done
	for i in 1 2; do
		"$plfs" drain -q --writers=1 "$near" &
		pids="$pids $!"
	done
	for pid in $pids; do wait $pid || [ $? = 75 ]; done # the other may have had a log
	"$plfs" drain -q "$near"
	[ "$(near_logs)" = 0 ]
	for i in 1 2 3 4 5 6; do "$plfs" run -m "/plfs=$back" cmp "$work/plain/w" /plfs/w$i; done
}

helper_writers() { # of the mapping, for the helper
	local map
	helper_setup
	map="/plfs=$back{small=0,near=$near,writers=3,rate=200M}"
	catch_helper "$plfs" run -m "$map" sh -c 'echo x >/plfs/x'
	tr '\0' ' ' <"/proc/$helper/cmdline" | grep -e '--rate=209715200 --writers=3 $'
	kill -CONT "$helper"
	all_home
	[ -e "$back/.plfs/drains.$(id -u)" ]
}

exit_waits() { # for the helper, and no longer than it is told
	local map
	helper_setup
	head -c 3000000 /dev/urandom >"$work/plain/e"
	map="/plfs=$back{small=0,near=$near,rate=2M,exit-wait=600}"
	"$plfs" run -m "$map" cp "$work/plain/e" /plfs/e
	[ "$(near_logs)" = 0 ] # the helper takes more than a second
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/e" /plfs/e
	"$plfs" run -m "$map" python3 -c '
import os, sys
f = os.open("/plfs/e2", os.O_RDWR | os.O_CREAT)
os.write(f, open(sys.argv[1], "rb").read())
if os.fork() == 0:
    os._exit(0)  # closed nothing: it does not wait
os.wait()
os._exit(0)' "$work/plain/e"
	[ "$(near_logs)" = 0 ]
	until_so "the helper has ended" no_helper
	# what the C library flushes at the very end is closed after the library's own end
	"$plfs" run -m "$map" "$bin/unflushed" /plfs/e5 3000000
	[ "$(near_logs)" = 0 ]
	[ "$("$plfs" run -m "/plfs=$back" wc -c /plfs/e5)" = "3000000 /plfs/e5" ]
	until_so "the helper has ended" no_helper
	map="/plfs=$back{small=0,near=$near,rate=64K,exit-wait=1}"
	"$plfs" run -m "$map" cp "$work/plain/e" /plfs/e3
	[ "$(near_logs)" = 1 ]
	"$plfs" drain -q "$near"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/e" /plfs/e3
	# without a helper there is nothing to wait for
	"$plfs" run -m "/plfs=$back{small=0,near=$near,drain=none,exit-wait=600}" cp "$work/plain/e" /plfs/e4
	[ "$(near_logs)" = 1 ]
	wrong 78 'is no number from 0 to 86400' "$plfs" run -m "/plfs=$back{near=$near,exit-wait=x}" true
}
