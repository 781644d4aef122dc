# SPDX-License-Identifier: BSD-3-Clause
# The helper (drain=helper), sourced by run: that it moves all, is one, is not seen, and ends; and the other words of drain=.
# Each wait has an end; a job leaves no helper.

helpers() { pgrep -f "^plfs drain --background $near/" || :; }

helper_setup() {
	near_setup
	map="/plfs=$back{small=0,near=$near}"
}

# until_so TEXT COMMAND...: the command succeeds, within a minute.
until_so() {
	local i text=$1
	shift
	for ((i = 0; i < 600; i++)); do
		"$@" && return
		sleep 0.1
	done
	echo "not so after a minute: $text"
	return 1
}

no_helper() { [ -z "$(helpers)" ]; }
nothing_near() { [ "$(near_logs)" = 0 ]; }
all_home() {
	until_so "all is at home" nothing_near
	until_so "the helper has ended" no_helper
}

# catch_helper [COMMAND...]: stop the helper; $helper is its number. The command has one started: again, if that has
# ended before.
catch_helper() {
	local i
	for ((i = 0; i < 600; i++)); do
		[ $# = 0 ] || [ $((i % 20)) != 0 ] || "$@"
		helper=$(helpers | head -n 1) || :
		[ -z "$helper" ] || ! kill -STOP "$helper" || return 0
		sleep 0.1
	done
	echo "no helper after a minute"
	return 1
}

helper_drains() {
	local map i
	helper_setup
	for i in 1 2; do
		head -c $((i * 3000000)) /dev/urandom >"$work/plain/h$i"
		"$plfs" run -m "$map" cp "$work/plain/h$i" /plfs/
		all_home
		[ -z "$(find "$near" "$back" -name 'near.*')" ]
		"$plfs" run -m "/plfs=$back" cmp "$work/plain/h$i" "/plfs/h$i"
	done
	"$plfs" check "$back/h1" "$back/h2"
}

helper_gives_way() { # to a process that has just written, as the time of its log says
	local map log
	helper_setup
	mkfifo "$work/writes"
	"$plfs" run -m "$map" sh -c 'cat >/plfs/w' <"$work/writes" &
	exec 8>"$work/writes"
	head -c 100000 /dev/zero >&8
	until_so "a log is near" eval '[ "$(near_logs)" = 1 ]'
	log=$(find "$near" -name 'data.*')
	touch -d '1 hour' "$log"
	"$plfs" run -m "$map" sh -c 'head -c 100000 /dev/zero >/plfs/c'
	sleep 1
	[ "$(near_logs)" = 2 ]
	touch -d '1 hour ago' "$log"
	until_so "what was closed is at home" eval '[ "$(near_logs)" = 1 ]'
	exec 8>&-
	wait
	all_home
}

helper_drains_open_files() { # what is longer than log-max=
	local map
	helper_setup
	map="/plfs=$back{small=0,near=$near,log-max=1M}"
	head -c 5000000 /dev/urandom >"$work/plain/l"
	mkfifo "$work/fifo"
	"$plfs" run -m "$map" sh -c 'cat >/plfs/l' <"$work/fifo" &
	exec 8>"$work/fifo"
	cat "$work/plain/l" >&8
	until_so "one log is near" eval '[ "$(near_logs)" = 1 ]'
	[ "$("$plfs" stat -b "$back/l" | sed -n 's/^Logs *\([0-9]*\).*/\1/p')" -ge 4 ]
	"$plfs" run -m "/plfs=$back" cmp -n 4000000 "$work/plain/l" /plfs/l
	exec 8>&-
	wait
	all_home
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/l" /plfs/l
}

helper_is_one() { # of many processes that close at once
	local map i seen=''
	helper_setup
	head -c 300000 /dev/urandom >"$work/plain/o"
	# shellcheck disable=SC2016
	"$plfs" run -m "$map" sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cp "$0" /plfs/o$i & done; wait' "$work/plain/o" &
	for ((i = 0; i < 20; i++)); do
		seen="$seen $(helpers | paste -sd ' ')"
		sleep 0.05
	done
	wait
	all_home
	[ "$(tr ' ' '\n' <<<"$seen" | grep . | sort -u | wc -l)" -le 2 ] # two, if one ends meanwhile
	for i in 1 12; do "$plfs" run -m "/plfs=$back" cmp "$work/plain/o" /plfs/o$i; done
}

helper_unseen() { # by the program; and it has nothing of the program's
	local map fds
	helper_setup
	exec 7<"$work/plain"
	LANG_OF_TEST=yes "$plfs" run -m "$map" "$bin/unseen" /plfs/u
	catch_helper
	exec 7<&-
	ls -l "/proc/$helper/fd" | sed 's/.* -> //' >"$work/out"
	cat "$work/out"
	[ "$(grep -c '^/dev/null$' "$work/out")" = 3 ]
	! grep -v -e '^/dev/null$' -e "^$near/" -e "^$back" -e '^total' "$work/out" || return 1
	! tr '\0' '\n' <"/proc/$helper/environ" | grep -v -e '^PATH=' -e '^LC_ALL=' || return 1
	! grep -q libplfs "/proc/$helper/maps" || return 1
	[ "$(readlink "/proc/$helper/cwd")" = / ]
	[ "$(ps -o sid= -o ni= -p "$helper" | xargs)" = "$helper 10" ]
	[ "$(ionice -p "$helper")" = "best-effort: prio 7" ]
	! grep '^Sig\(Ign\|Blk\)' "/proc/$helper/status" | grep -v -e 0000000000000000 -e 'SigIgn.*0000000001001000' || return 1 # SIGPIPE and SIGXFSZ
	kill -CONT "$helper"
	all_home
}

helper_killed() { # the next close starts another, and nothing is lost
	local map i
	helper_setup
	head -c 40000000 /dev/urandom >"$work/plain/k"
	for i in 1 2 3; do
		"$plfs" run -m "$map" cp "$work/plain/k" /plfs/k$i
		catch_helper
		[ $i = 3 ] || { kill -KILL "$helper" && until_so "it has gone" no_helper; }
	done
	"$plfs" run -m "$map" cmp "$work/plain/k" /plfs/k1
	kill -CONT "$helper"
	all_home
	[ -z "$(find "$back" -name '*.tmp.*' ! -newer "$work/plain/k")" ]
	for i in 1 2 3; do "$plfs" run -m "/plfs=$back" cmp "$work/plain/k" /plfs/k$i; done
	"$plfs" check "$back/k1" "$back/k2" "$back/k3"
}

helper_of_killed_writers() { # their logs are moved as well
	local map block
	helper_setup
	strided w kill
	[ "$(find "$near" -name 'live.*' | wc -l)" = 4 ]
	"$plfs" run -m "$map" sh -c 'echo x >/plfs/x' # a close
	all_home
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/w" /plfs/w
	"$plfs" check "$back/w"
}

helper_missing() { # one line, of all processes
	local map lines
	helper_setup
	! command -v plfs >/dev/null || { echo "a plfs is installed here"; exit 77; }
	mkdir -p "$work/alone"
	cp "$work/libplfs.so" "$work/alone/libplfs.so"
	head -c 300000 /dev/urandom >"$work/plain/m"
	# shellcheck disable=SC2016
	LD_PRELOAD=$work/alone/libplfs.so PLFS_MAP=$map sh -c 'for i in 1 2 3 4 5 6 7 8; do cp "$0" /plfs/m$i & done; wait' "$work/plain/m" 2>"$work/err"
	cat "$work/err"
	[ "$(grep -c "no helper can be started (no plfs beside the library" "$work/err")" = 1 ]
	[ "$(wc -l <"$work/err")" = 1 ]
	[ "$(near_logs)" = 8 ]
	"$plfs" drain "$near" | grep '8 logs moved home'
	"$plfs" run -m "$map" cmp "$work/plain/m" /plfs/m8
}

helper_rate() { # rate= of the mapping; and a plfs drain of its own
	local map
	helper_setup
	map="/plfs=$back{small=0,near=$near,rate=200M}"
	head -c 3000000 /dev/urandom >"$work/plain/t"
	"$plfs" run -m "$map" cp "$work/plain/t" /plfs/t
	catch_helper
	tr '\0' ' ' <"/proc/$helper/cmdline" | grep -e '--rate=209715200 $'
	kill -CONT "$helper"
	all_home
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/t" /plfs/t
	wrong 2 'is no size, as 200M' "$plfs" drain --rate=fast "$near"
	wrong 2 'is no size, as 200M' "$plfs" drain --rate=0 "$near"
	"$plfs" run -m "/plfs=$back{small=0,near=$near,drain=none}" cp "$work/plain/t" /plfs/t2
	"$plfs" drain --rate=100M "$near" | grep '1 logs moved home'
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/t" /plfs/t2
}

helper_beside_busy_cores() {
	local map i pids=''
	helper_setup
	for ((i = $(nproc); i > 0; i--)); do
		timeout 60 nice -n 9 sh -c 'while :; do :; done' & # for the helper, busy enough
		pids="$pids $!"
	done
	head -c 3000000 /dev/urandom >"$work/plain/b"
	"$plfs" run -m "$map" cp "$work/plain/b" /plfs/b
	all_home
	kill $pids
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/b" /plfs/b
}

helper_outlives_the_session() { # that is killed
	local map pid
	helper_setup
	# shellcheck disable=SC2016
	setsid sh -c '"$0" run -m "$1" sh -c "seq 100000 >/plfs/s"; touch "$2"; sleep 60' "$plfs" "$map" "$work/near.ready" &
	pid=$!
	until_so "it is written" [ -e "$work/near.ready" ]
	catch_helper
	kill -KILL -- "-$pid"
	wait $pid || :
	kill -CONT "$helper"
	all_home
	seq 100000 | "$plfs" run -m "/plfs=$back" cmp - /plfs/s
}

helper_without_room() { # gives up after half a minute, and says why; the next close goes on
	local map
	helper_setup
	mount -t tmpfs -o size=3m none "$back" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$back"' EXIT
	head -c 8000000 /dev/urandom >"$work/plain/r"
	"$plfs" run -m "$map" cp "$work/plain/r" /plfs/r
	until_so "the helper has ended" no_helper
	cat "$near"/plfs.*/*/helper
	grep 'hostdir.*: No space left on device' "$near"/plfs.*/*/helper
	[ "$(near_logs)" = 1 ]
	[ -z "$(find "$back" -name '*.tmp.*')" ]
	"$plfs" run -m "$map" cmp "$work/plain/r" /plfs/r
	mount -o remount,size=40m "$back"
	"$plfs" run -m "$map" sh -c 'echo x >/plfs/x'
	all_home
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/r" /plfs/r
	umount -l "$back"
	trap - EXIT
}

helper_of_a_removed_place() { # ends at once, and notes nothing
	local map
	helper_setup
	catch_helper "$plfs" run -m "$map" sh -c 'echo x >/plfs/x'
	rm -rf "$near"
	kill -CONT "$helper"
	until_so "the helper has ended" no_helper
}

# Place and backend are made anew at their paths, while it stands still: it takes nothing of the new ones.
helper_of_a_removed_backend() {
	local map
	helper_setup
	catch_helper "$plfs" run -m "$map" sh -c 'echo x >/plfs/x'
	rm -rf "$near" "$back.old"
	mv "$back" "$back.old"
	mkdir "$near" "$back"
	head -c 3000000 /dev/urandom >"$work/plain/d1"
	"$plfs" run -m "/plfs=$back{small=0,near=$near,drain=none}" cp "$work/plain/d1" /plfs/d1
	kill -CONT "$helper"
	until_so "the helper has ended" no_helper
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/d1" /plfs/d1
	[ -z "$(find "$back.old" -size +1000k)" ] || { echo "it moved what is not of its backend"; return 1; }
	# Stopped before it had looked at anything, it is the new backend's.
	[ "$(near_logs)" = 0 ] || "$plfs" drain "$near" | grep '1 logs moved home'
	nothing_near
	"$plfs" check "$back/d1"
	rm -rf "$back.old"
}

drained_at_close() { # drain=close: by the process itself
	local map
	near_setup
	map="/plfs=$back{small=0,near=$near,drain=close}"
	head -c 3000000 /dev/urandom >"$work/plain/c"
	"$plfs" run -m "$map" cp "$work/plain/c" /plfs/c
	nothing_near
	no_helper
	[ -z "$(find "$near" "$back" -name 'near.*')" ]
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/c" /plfs/c
	"$plfs" check "$back/c"
}

close_without_room() { # drain=close, and the backend is full: the log stays near, and no call fails
	local map
	near_setup
	map="/plfs=$back{small=0,near=$near,drain=close}"
	mount -t tmpfs -o size=3m none "$back" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$back"' EXIT
	head -c 8000000 /dev/urandom >"$work/plain/c"
	"$plfs" run -m "$map" cp "$work/plain/c" /plfs/c
	[ "$(near_logs)" = 1 ]
	[ -z "$(find "$back" -name '*.tmp.*')" ]
	"$plfs" run -m "$map" cmp "$work/plain/c" /plfs/c
	mount -o remount,size=40m "$back"
	"$plfs" drain "$near"
	nothing_near
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/c" /plfs/c
	umount -l "$back"
	trap - EXIT
}
