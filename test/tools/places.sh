# SPDX-License-Identifier: BSD-3-Clause
# plfs drain, plfs places and plfs gc --places, sourced by run: what lies where, and what they say of it.

near=$work/near

near_setup() {
	rm -rf "$near"
	mkdir -p "$near"
	map="/plfs=$back{small=0,near=$near,drain=none}"
}

near_logs() { find "$near" -name 'data.*' | wc -l; }

drained() { # a file is written near, read from there without near= in the mapping, and moved
	local map
	near_setup
	head -c 3000000 /dev/urandom >"$work/plain/d1"
	head -c 1000000 /dev/urandom >"$work/plain/d2"
	"$plfs" run -m "$map" cp "$work/plain/d1" "$work/plain/d2" /plfs/
	[ "$(near_logs)" = 2 ]
	[ -z "$(find "$back/.plfs" -name 'data.*')" ]
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/d1" /plfs/d1
	"$plfs" check "$back/d1"
	"$plfs" places "$back/d1" | grep "in $near/plfs.*: 1 logs (0 open)"
	"$plfs" places --json "$back/d1" | python3 -c 'import json, sys; assert json.loads(sys.stdin.read())["logs"] == 1'
	"$plfs" places "$near" | grep "of the backend $back"
	"$plfs" drain "$back/d1" | grep '1 logs moved home'
	[ "$(near_logs)" = 1 ]
	"$plfs" drain --json "$near" | python3 -c 'import json, sys; d = json.loads(sys.stdin.read()); assert d["logs"] == 1 and d["exit"] == 0 and d["bytes"] >= 1000000'
	[ "$(near_logs)" = 0 ]
	[ -z "$(find "$back/.plfs" "$near" -name 'near.*')" ]
	"$plfs" run -m "$map" cmp "$work/plain/d1" /plfs/d1
	"$plfs" run -m "$map" cmp "$work/plain/d2" /plfs/d2
	"$plfs" check "$back/d1" "$back/d2"
	"$plfs" drain "$near" | grep '^0 logs'
	[ -z "$("$plfs" places "$back/d1")" ]
}

drained_after_kills() { # four writers, killed
	local map block
	near_setup
	strided k kill
	[ "$(find "$near" -name 'live.*' | wc -l)" = 4 ]
	"$plfs" drain "$near" | grep '4 logs moved home'
	[ "$(near_logs)" = 0 ]
	"$plfs" run -m "$map" cmp "$work/plain/k" /plfs/k
	"$plfs" check "$back/k"
}

# The place takes no end of the log of a killed process: it gets it at home; also by a drain that is killed on the way.
drained_without_room() {
	local map call nr rc
	near_setup
	"$plfs" run -m "$map" "$bin/writer" /plfs/k 0 1 50 1000 kill || true
	"$bin/writer" "$work/plain/k" 0 1 50 1000 close
	rm -rf "$work/kept" && mkdir "$work/kept"
	cp -a "$near" "$work/kept/near"
	cp -a "$back" "$work/kept/back"
	for call in none pwrite64 unlinkat fdatasync fsync openat2; do
		for ((nr = 1; ; nr += call == openat2 ? 7 : 1)); do
			rm -rf "$near" "$back"
			cp -a "$work/kept/near" "$near"
			cp -a "$work/kept/back" "$back"
			rc=0
			strace -o "$work/calls" -e trace=pwritev,${call/none/pwritev} -e inject=pwritev:error=EDQUOT:when=1 \
				-e inject=${call/none/vhangup}:signal=KILL:when=$nr "$plfs" drain "$near" >"$work/said" || rc=$?
			[ $rc = 137 ] || { [ $rc = 0 ] && grep EDQUOT "$work/calls" && grep '^1 logs moved home' "$work/said"; }
			[ $rc = 0 ] || "$plfs" drain "$near"
			[ "$(near_logs)" = 0 ]
			"$plfs" run -m "$map" cmp "$work/plain/k" /plfs/k
			"$plfs" check "$back/k"
			[ $rc != 0 ] || break
		done
	done
	rm -rf "$work/kept"
}

drained_while_open() { # what a process writes stays, and the exit code says so
	local map pid rc=0
	near_setup
	"$plfs" run -m "$map" python3 -c '
import os, sys
f = os.open("/plfs/o", os.O_RDWR | os.O_CREAT)
os.write(f, b"x" * 100000)
print(flush=True)
sys.stdin.read()' < <(while [ ! -e "$work/places.go" ] && [ -d "$work" ]; do sleep 0.05; done) > >(read -r; touch "$work/places.ready") &
	pid=$!
	while [ ! -e "$work/places.ready" ]; do sleep 0.05; done
	"$plfs" drain "$back/o" >"$work/out" || rc=$?
	[ $rc = 75 ]
	grep '1 logs stay' "$work/out"
	touch "$work/places.go"
	wait $pid
	"$plfs" drain "$back/o" | grep '1 logs moved home'
	[ "$("$plfs" run -m "$map" wc -c /plfs/o)" = "100000 /plfs/o" ]
}

# A process that writes /plfs/$1, until $work/places.go is there.
open_writer() {
	rm -f "$work/places.go" "$work/places.ready"
	"$plfs" run -m "$map" python3 -c '
import os, sys, time
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(f, b"x" * 100000)
open(sys.argv[2] + "/places.ready", "w").close()
while not os.path.exists(sys.argv[2] + "/places.go") and os.path.isdir(sys.argv[2]):
    time.sleep(0.05)
os.close(f)' "/plfs/$1" "$work" &
	pid=$!
	while [ ! -e "$work/places.ready" ]; do sleep 0.05; done
}

drain_waits() { # for what is being written: of a file, of a place; and not for ever
	local map pid waiter what
	near_setup
	for what in "$back/v" "$near"; do
		open_writer v
		wrong 75 'not all is in the backend' "$plfs" drain --wait --timeout=1 "$what"
		grep 'logs stay, or lack copies or parity: open' "$work/out"
		"$plfs" drain --wait "$what" >"$work/waited" &
		waiter=$!
		sleep 0.3
		kill -0 $waiter
		touch "$work/places.go"
		wait $pid
		wait $waiter
		grep '1 logs moved home' "$work/waited"
		[ "$(near_logs)" = 0 ]
	done
	"$plfs" drain --wait "$near" "$back/v" | grep '^0 logs moved home'
	wrong 2 '--timeout goes with --wait' "$plfs" drain --timeout=1 "$near"
	wrong 2 'is no number of seconds' "$plfs" drain --wait --timeout=soon "$near"
}

drain_waits_for_the_killed() { # whose logs are closed first
	local map block
	near_setup
	strided k kill
	"$plfs" drain --wait --timeout=60 "$near" | grep '4 logs moved home'
	"$plfs" run -m "$map" cmp "$work/plain/k" /plfs/k
	strided k2 kill
	"$plfs" drain --wait --timeout=60 "$back/k2" | grep '4 logs moved home'
	"$plfs" run -m "$map" cmp "$work/plain/k2" /plfs/k2
	[ "$(near_logs)" = 0 ]
}

drain_ends_in_time() { # also in the middle of a log
	local map
	near_setup
	head -c 3000000 /dev/urandom >"$work/plain/m"
	"$plfs" run -m "$map" cp "$work/plain/m" /plfs/m
	wrong 75 'not all is in the backend' "$plfs" drain --wait --timeout=1 --rate=64K "$near"
	[ "$(near_logs)" = 1 ]
	[ -z "$(find "$back" -name '*.tmp.*')" ]
	"$plfs" drain --wait "$near" | grep '1 logs moved home'
	"$plfs" run -m "$map" cmp "$work/plain/m" /plfs/m
}

places_wait() { # is it flushed?
	local map waiter rc=0
	near_setup
	"$plfs" run -m "$map" sh -c 'echo one >/plfs/g; echo two >/plfs/h'
	"$plfs" places --wait --timeout=0 "$back/g" >"$work/out" || rc=$?
	[ $rc = 75 ]
	grep "in $near/plfs.*: 1 logs" "$work/out"
	"$plfs" places --wait "$back/g" "$back/h" >"$work/waited" &
	waiter=$!
	sleep 0.3
	kill -0 $waiter
	"$plfs" drain "$near" | grep '2 logs moved home'
	wait $waiter
	[ ! -s "$work/waited" ]
	"$plfs" run -m "$map" sh -c 'echo one >/plfs/g'
	wrong 1 'plfs drain --wait waits for all' "$plfs" places --wait "$near"
	mv "$near" "$near.aside" # as another node sees it
	rc=0
	"$plfs" places --wait --timeout=1 "$back/g" >"$work/out" || rc=$?
	[ $rc = 75 ]
	grep 'not on this host' "$work/out"
	lines=2 wrong 75 'leads to a place that is not on this host' "$plfs" drain --wait --timeout=0 "$back/g"
	mv "$near.aside" "$near"
	"$plfs" drain -q "$near"
	"$plfs" places --wait "$back/g"
	wrong 1 'No such file' "$plfs" places --wait "$back/none"
}

# A copy of the whole backend, made by other means while logs are near. They stay the original's.
copied_near() {
	local map copy=$work/copy.back
	near_setup
	rm -rf "$copy"
	head -c 3000000 /dev/urandom >"$work/plain/d1"
	"$plfs" run -m "$map" cp "$work/plain/d1" /plfs/d1
	cp -a "$back" "$copy"
	"$plfs" drain -m "/plfs=$copy" "$copy/d1" >"$work/out" || true
	[ "$(near_logs)" = 1 ]
	"$plfs" run -m "/plfs=$copy" rm /plfs/d1
	"$plfs" run -m "$map" cmp "$work/plain/d1" /plfs/d1
	cp -a "$back/d1" "$copy/" && cp -a "$back/.plfs/." "$copy/.plfs/"
	head -c 2000000 /dev/zero | "$plfs" run -m "/plfs=$copy{small=0,near=$near,drain=none}" dd of=/plfs/d1 conv=notrunc bs=1M
	"$plfs" run -m "$map" cmp "$work/plain/d1" /plfs/d1
	rm -rf "$copy"
	cp -a "$back" "$copy"
	head -c 3000000 /dev/zero | "$plfs" run -m "$map" dd of=/plfs/d1 conv=notrunc bs=1M
	! "$plfs" run -m "/plfs=$copy" cat /plfs/d1 >"$work/out" 2>"$work/log/err" || return 1
	[ ! -s "$work/out" ]
	grep "in $near/plfs.*, not drained" "$work/log/err"
	! "$plfs" check -m "/plfs=$copy" "$copy/d1" || return 1
	rm -rf "$copy"
	"$plfs" drain "$near" | grep "2 logs moved home"
	cp -a "$back" "$copy"
	"$plfs" run -m "/plfs=$copy" cmp /plfs/d1 <(head -c 3000000 /dev/zero)
	rm -rf "$copy"
}

# A backend that is moved keeps its logs, under its new path and, by a copy, on another file system.
moved_near() {
	local map moved=$work/moved.back
	near_setup
	head -c 3000000 /dev/urandom >"$work/plain/d1"
	"$plfs" run -m "$map" cp "$work/plain/d1" /plfs/d1
	mv "$back" "$moved"
	"$plfs" run -m "/plfs=$moved" cmp "$work/plain/d1" /plfs/d1
	mkdir "$back" # another, in its place
	"$plfs" run -m "/plfs=$moved" cmp "$work/plain/d1" /plfs/d1
	"$plfs" run -m "/plfs=$back{small=0,near=$near}" sh -c 'head -c 100000 /dev/zero >/plfs/other'
	for i in $(seq 100); do [ "$i" = 1 ] || sleep 0.1; [ "$(near_logs)" != 1 ] || break; done # its helper
	"$plfs" drain "$near" 2>"$work/log/err" || [ $? = 75 ]
	grep "$near/plfs.*: one of 1 containers with logs of another backend, which was at $back" "$work/log/err"
	! "$plfs" gc --places "$near" || return 1
	"$plfs" run -m "/plfs=$moved" cmp "$work/plain/d1" /plfs/d1
	cp -a "$moved" "$moved.2" && rm -rf "$moved"
	"$plfs" run -m "/plfs=$moved.2" cmp "$work/plain/d1" /plfs/d1
	"$plfs" drain -m "/plfs=$moved.2" "$moved.2/d1" | grep '1 logs moved home'
	[ "$(near_logs)" = 0 ]
	"$plfs" run -m "/plfs=$moved.2" cmp "$work/plain/d1" /plfs/d1
	rm -rf "$moved.2"
}

# Two backends that have the same path, each for its own processes (containers): the drain of one leaves the other's logs.
bound_near() {
	local map other=$work/bound.other
	[ "$(id -u)" = 0 ] || { echo "needs root, to bind a directory"; exit 77; }
	unshare -m true 2>/dev/null || { echo "no mount namespaces here"; exit 77; }
	near_setup
	in_other() { # COMMAND...
		unshare -m --propagation private sh -e -c 'mount --bind "$0" "$1"; shift; exec "$@"' "$other" "$back" "$@"
	}
	rm -rf "$other" && mkdir "$other"
	head -c 3000000 /dev/urandom >"$work/plain/d1"
	head -c 2000000 /dev/urandom >"$work/plain/d2"
	"$plfs" run -m "$map" cp "$work/plain/d1" /plfs/d1
	in_other "$plfs" run -m "$map" cp "$work/plain/d2" /plfs/d2
	"$plfs" drain "$near" >"$work/out" 2>"$work/log/err" || [ $? = 75 ]
	grep '1 logs moved home' "$work/out"
	grep "$near/plfs.*: one of 1 containers with logs of another backend, which was at $back" "$work/log/err"
	! "$plfs" gc --places "$near" || return 1
	in_other "$plfs" run -m "$map" cmp "$work/plain/d2" /plfs/d2
	in_other "$plfs" run -m "$map" rm /plfs/d2
	in_other "$plfs" run -m "$map" cp "$work/plain/d1" "$work/plain/d2" /plfs
	"$plfs" run -m "$map" rm /plfs/d1
	in_other "$plfs" drain "$near" | grep '2 logs moved home'
	[ "$(near_logs)" = 0 ]
	in_other "$plfs" run -m "$map" cmp "$work/plain/d1" /plfs/d1
	in_other "$plfs" run -m "$map" cmp "$work/plain/d2" /plfs/d2
	rm -rf "$other"
}

lost_place() { # what was not drained is an error, named, and can be given up
	local map
	near_setup
	head -c 500000 /dev/urandom >"$work/plain/l"
	"$plfs" run -m "$map" cp "$work/plain/l" /plfs/l
	mv "$near" "$near.aside"
	! "$plfs" run -m "/plfs=$back" cat /plfs/l >"$work/out" 2>"$work/err" || return 1
	grep "on $(hostname) in $near/plfs.* not drained" "$work/err"
	[ ! -s "$work/out" ]
	! "$plfs" check "$back/l" >"$work/out" || return 1
	grep 'lost: bytes 0 to 499999' "$work/out"
	"$plfs" places "$back/l" | grep 'not on this host, or gone'
	wrong 75 'not on this host' "$plfs" drain "$back/l"
	mv "$near.aside" "$near"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/l" /plfs/l
	wrong 1 'is on this host' "$plfs" places --forget "$(hostname)" "$back/l"
	rm -rf "$near"
	"$plfs" places --forget "$(hostname)" "$back/l" | grep 'given up'
	[ -z "$("$plfs" places "$back/l")" ]
	! "$plfs" run -m "/plfs=$back" cat /plfs/l 2>"$work/err" || return 1
	"$plfs" run -m "/plfs=$back" cp "$work/plain/l" /plfs/l
	"$plfs" check "$back/l"
}

checked_without_its_place() { # what is home is read, and its damage told
	local map log
	near_setup
	head -c 1000000 /dev/urandom >"$work/plain/l"
	"$plfs" run -m "/plfs=$back{small=0}" cp "$work/plain/l" /plfs/l
	log=$(find "$back/.plfs" -name 'data.*')
	"$plfs" run -m "$map" sh -c 'dd if=/dev/zero of=/plfs/l bs=1M seek=1 count=1 conv=notrunc status=none
		exec 3>>/plfs/l; echo more >&3; kill -9 $$' || [ $? = 137 ]
	mv "$near" "$near.aside"
	"$plfs" run -m "/plfs=$back" head -c 1000000 /plfs/l | cmp - "$work/plain/l"
	printf '\377\377\377\377' | dd of="$log" bs=1 seek=170000 conv=notrunc status=none
	! "$plfs" check "$back/l" >"$work/out" || return 1
	grep 'data.*do not match their checksums' "$work/out"
	grep 'lost: bytes 65536 to 131071' "$work/out"
	mv "$near.aside" "$near"
	! "$plfs" check "$back/l" >"$work/out" || return 1
	[ "$(grep -c 'lost: bytes' "$work/out")" = 1 ]
}

checked_of_many_appends() { # each a block of its own in the log: not each is looked for among all
	local map
	near_setup
	"$plfs" run -m "$map" python3 -c "
import os
f = os.open('/plfs/text', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in range(60000):
    os.write(f, b'%099d\n' % i)"
	timeout 20 "$plfs" check "$back/text" | grep ' 0 damaged'
	find "$back" -name 'index.*' -delete # and none of those that are missing among all
	timeout 20 "$plfs" check "$back/text" | grep ' 1 damaged'
	timeout 20 "$plfs" repair "$back/text" | grep 'rebuilt with 60000 blocks, 60000 of them from the logs'
	"$plfs" run -m "$map" sh -c 'seq -f %099.0f 0 59999 | cmp - /plfs/text'
}

places_of_removed_files() { # by a command that could not see the place
	local map rc=0
	near_setup
	"$plfs" run -m "$map" sh -c 'echo one >/plfs/g; echo two >/plfs/h'
	mv "$near" "$near.aside"
	"$plfs" run -m "/plfs=$back" rm /plfs/g
	mv "$near.aside" "$near"
	[ "$(near_logs)" = 2 ]
	"$plfs" gc --places -n "$near" >"$work/out" || rc=$?
	[ $rc = 1 ]
	grep '1 containers of files that are gone$' "$work/out"
	[ "$(near_logs)" = 2 ]
	"$plfs" gc --places "$near" | grep '1 containers of files that are gone removed'
	[ "$(near_logs)" = 1 ]
	mv "$back" "$back.aside"
	wrong 2 'its backend is not there' "$plfs" gc --places "$near"
	wrong 75 'its backend is not there' "$plfs" drain "$near"
	mv "$back.aside" "$back"
	[ "$("$plfs" run -m "$map" cat /plfs/h)" = two ]
}

# Once it is read-only, nothing is said to have been removed.
read_only_place_of_removed_files() {
	local map
	near_setup
	mount -t tmpfs none "$near" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$near"' EXIT
	"$plfs" run -m "$map" sh -c 'echo one >/plfs/g; echo two >/plfs/h'
	rm "$back/g" "$back/h"
	collect 0 -a 0
	mount -o remount,ro "$near"
	lines=2 wrong 2 'it cannot be removed: Read-only file system' "$plfs" gc --places "$near"
	grep '0 containers of files that are gone removed' "$work/out"
	lines=2 wrong 75 'it cannot be removed: Read-only file system' "$plfs" drain "$near"
	! grep 'gone were removed' "$work/out" || return 1
	"$plfs" gc --places --json "$near" >"$work/got" 2>/dev/null || [ $? = 2 ]
	grep -F '"removed": 0, "young": 0, "failed": 2' "$work/got"
	mount -o remount,rw "$near"
	"$plfs" gc --places "$near" | grep '2 containers of files that are gone removed'
	umount -l "$near"
	trap - EXIT
}

read_only_place() { # logs are copied from it once, and that is all that can be done
	local map
	near_setup
	mount -t tmpfs none "$near" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$near"' EXIT
	head -c 3000000 /dev/urandom >"$work/plain/r"
	"$plfs" run -m "$map" cp "$work/plain/r" /plfs/r
	mount -o remount,ro "$near"
	"$plfs" drain "$back/r" >"$work/out" 2>"$work/err"
	cat "$work/out" "$work/err"
	grep '^1 logs moved home, 2.9 MiB' "$work/out"
	[ "$(grep -c 'is in the backend, and stays in its place too, as that is read-only' "$work/err")" = 1 ]
	[ "$(wc -l <"$work/err")" = 1 ]
	stat -c %i "$back"/.plfs/*/*/hostdir.*/data.* >"$work/inode"
	"$plfs" drain "$near" >"$work/out" 2>"$work/err"
	cat "$work/out" "$work/err"
	grep -x '0 logs moved home, 0 bytes' "$work/out" && [ "$(wc -l <"$work/out")" = 1 ]
	grep 'as that is read-only' "$work/err" && [ "$(wc -l <"$work/err")" = 1 ]
	"$plfs" drain --wait "$back/r" | grep -x '0 logs moved home, 0 bytes'
	stat -c %i "$back"/.plfs/*/*/hostdir.*/data.* | diff - "$work/inode"
	"$plfs" run -m "$map" cmp /plfs/r "$work/plain/r"
	printf garbage | dd of="$(ls "$back"/.plfs/*/*/hostdir.*/data.*)" bs=1 seek=99999 conv=notrunc status=none
	"$plfs" drain "$back/r" | grep '^1 logs moved home, 2.9 MiB' # a copy that is wrong is made again
	! stat -c %i "$back"/.plfs/*/*/hostdir.*/data.* | cmp -s - "$work/inode" || return 1
	mv "$back" "$work/elsewhere" && umount -l "$near"
	"$plfs" run -m "/plfs=$work/elsewhere" cmp /plfs/r "$work/plain/r"
	mv "$work/elsewhere" "$back"
	trap - EXIT
}

# The log of a killed process cannot be closed in a place that is read-only: drain, repair and places say so. What lies
# only there is no part of the size that others find.
read_only_place_killed() {
	local map
	near_setup
	mount -t tmpfs none "$near" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$near"' EXIT
	"$plfs" run -m "$map" "$bin/writer" /plfs/k 0 1 10 1000 close
	"$plfs" drain "$near" | grep '^1 logs moved home'
	for _ in 1 2; do # two killed writers of each file
		"$plfs" run -m "$map" "$bin/writer" /plfs/k 0 1 50 1000 kill || true
		"$plfs" run -m "$map" "$bin/writer" /plfs/j 0 1 50 1000 kill || true
	done
	"$bin/writer" "$work/plain/k" 0 1 50 1000 close
	! "$plfs" places "$back/k" | grep 'read-only' || return 1
	mount -o remount,ro "$near"
	"$plfs" places "$back/k" | grep "in $near/plfs.*: 2 logs (2 open), .*, read-only$"
	"$plfs" places --json "$back/k" | grep -F '"read_only": true'
	wrong 75 "cannot be closed in its place $near/plfs." "$plfs" drain "$back/k"
	grep 'live\..*: Read-only file system; plfs flatten FILE saves' "$work/err"
	lines=2 wrong 75 "cannot be closed in its place $near/plfs." "$plfs" drain "$near"
	lines=2 wrong 75 "Read-only file system" "$plfs" drain --wait --timeout 1 "$back/k"
	"$plfs" repair "$back/k" >"$work/out" && return 1
	grep 'closed: could not be done: Read-only file system' "$work/out"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/k" /plfs/k
	[ "$("$plfs" run -m "/plfs=$back" stat -c %s /plfs/k)" = 50000 ]
	"$plfs" flatten "$back/j"
	umount -l "$near"
	trap - EXIT
	cmp "$back/j" "$work/plain/k"
	# as after a node that lost power: what was never released is not there, and nothing reads as zeros
	[ "$("$plfs" run -m "/plfs=$back" stat -c %s /plfs/k)" = 10000 ]
	"$plfs" run -m "/plfs=$back" cmp -n 10000 "$work/plain/k" /plfs/k
	[ "$("$plfs" run -m "/plfs=$back" cat /plfs/k | wc -c)" = 10000 ]
}

full_place() { # a file system without space: as root
	local map i
	[ "$(id -u)" = 0 ] || { echo "needs root, for a small file system"; exit 77; }
	near_setup
	mount -t tmpfs -o size=6m none "$near" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$near"' EXIT
	head -c 20000000 /dev/urandom >"$work/plain/f"
	"$plfs" run -m "$map" dd if="$work/plain/f" of=/plfs/f1 bs=1000000 status=none
	"$plfs" run -m "$map" dd if="$work/plain/f" of=/plfs/f2 bs=7000 status=none
	for i in 1 2; do "$plfs" run -m "$map" cmp "$work/plain/f" /plfs/f$i; done
	[ "$(near_logs)" -ge 1 ]
	"$plfs" drain "$near" | grep 'moved home'
	for i in 1 2; do "$plfs" run -m "$map" cmp "$work/plain/f" /plfs/f$i; done
	"$plfs" check "$back/f1" "$back/f2"
	umount -l "$near"
	trap - EXIT
}

# A control group with so much memory: $group; or the job is skipped.
memory_group() { # LIMIT
	local at=/sys/fs/cgroup limit=memory.max
	[ "$(id -u)" = 0 ] || { echo "needs root, for a control group"; exit 77; }
	[ ! -e $at/memory/memory.limit_in_bytes ] || { at=$at/memory limit=memory.limit_in_bytes; }
	group=$at/plfs-test.$$
	mkdir "$group" 2>/dev/null && echo "$1" >"$group/$limit" || { rmdir "$group" 2>/dev/null || :; echo "no control groups of memory here"; exit 77; }
}

memory_place() { # a place in memory, in a job whose memory is limited: the program is not killed
	local map
	memory_group 200M
	near_setup
	trap 'umount -l "$near"; rmdir "$group"' EXIT
	mount -t tmpfs -o size=2g none "$near" || { echo "no mounts here"; exit 77; }
	head -c 100000000 /dev/urandom >"$work/plain/m"
	# shellcheck disable=SC2016
	"$plfs" run -m "$map" sh -c 'echo $$ >"$1/cgroup.procs" && for i in 1 2 3 4; do cat "$0" || exit; done >/plfs/m' "$work/plain/m" "$group"
	[ "$(near_logs)" -ge 1 ]
	"$plfs" run -m "$map" sh -c 'for i in 1 2 3 4; do head -c 100000000; done </plfs/m | sha256sum' >"$work/out"
	for i in 1 2 3 4; do cat "$work/plain/m"; done | sha256sum | cmp - "$work/out"
	"$plfs" drain "$near"
	umount -l "$near"
	rmdir "$group"
	trap - EXIT
}
