# SPDX-License-Identifier: BSD-3-Clause
# Files in several backends (spread=), sourced by run: what the commands say of them, what users do to them, hosts,
# backends that are gone or full.

two=$work/b2 three=$work/b3

spread_setup() { # RULE
	rm -rf "$two" "$three"
	mkdir "$two" "$three"
	map="/plfs=$back,$two,$three{small=0,spread=$1}"
}

there_logs() { find "$two" "$three" -name 'data.*' | wc -l; }

# Four writers write the whole file each time, until each of the other backends has bytes of the last time.
spread_file() { # NAME
	rm -f "$work/plain/$1"
	until touch "$work/since" && strided "$1" && has_new_log "$two" && has_new_log "$three"; do :; done
}

has_new_log() { [ "$(find "$1" -name 'data.*' -newer "$work/since")" ]; } # DIRECTORY

spread_in_place() { # DIR=DIR,DIR2: the paths stay
	local map
	spread_setup process
	spread_file s
	map="$back=$back,$two,$three{small=0,spread=process}"
	"$plfs" run -m "$map" cmp "$work/plain/s" "$back/s"
	"$plfs" run -m "$map" sh -c 'cd "$1" && for i in $(seq 40); do cp s "t$i"; done' - "$back"
	[ "$(there_logs)" -gt 0 ]
	"$plfs" run -m "$map" sh -c 'for i in $(seq 40); do cmp "$2" "$1/t$i" || exit; done' - "$back" "$work/plain/s"
	"$plfs" check -m "$map" -r "$back"
	"$plfs" run -m "$map" sh -c 'rm "$1"/*' - "$back"
	[ "$(there_logs)" = 0 ]
	wrong 78 "is, or lies in, the first one" "$plfs" run -m "$back=$back,$back{spread=host}" true
}

spread_shown() { # by all commands, also without the other backends in the mapping
	local map
	spread_setup process
	spread_file s
	"$plfs" run -m "$map" cmp "$work/plain/s" /plfs/s
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/s" /plfs/s
	"$plfs" check "$back/s"
	"$plfs" places "$back/s" | grep "shared, of .* in $work/b[23]/plfs.*-shared: [1-9][0-9]* logs (0 open)"
	"$plfs" places --json "$back/s" | python3 -c 'import json, sys; assert all(json.loads(l)["shared"] for l in sys.stdin)'
	"$plfs" places --wait "$back/s"
	wrong 2 'its logs stay there' "$plfs" drain "$(find "$two" "$three" -name 'data.*' | sed 's,\(.*/b[23]\)/.*,\1,' | head -1)"
	"$plfs" drain "$back/s" | grep '^0 logs'
	"$plfs" map "$back/s" | grep data.
	"$plfs" compact "$back/s"
	"$plfs" run -m "$map" cmp "$work/plain/s" /plfs/s
	# Without the others in the mapping a copy is at home.
	"$plfs" run -m "/plfs=$back{small=0}" sh -c 'cp -p /plfs/s /plfs/s.new && mv /plfs/s.new /plfs/s'
	[ "$(there_logs)" = 0 ]
	"$plfs" run -m "$map" cmp "$work/plain/s" /plfs/s
	spread_file s
	"$plfs" flatten "$back/s"
	cmp "$work/plain/s" "$back/s"
	[ "$(there_logs)" = 0 ]
}

spread_habits() { # chmod, mv, rm; rm without the library, and gc
	local map
	spread_setup process
	spread_file h
	chmod 644 "$back/h" # takes the mark
	"$plfs" run -m "$map" cmp "$work/plain/h" /plfs/h
	mkdir "$back/dir"
	mv "$back/h" "$back/dir/h2"
	"$plfs" run -m "$map" cmp "$work/plain/h" /plfs/dir/h2
	"$plfs" run -m "$map" rm /plfs/dir/h2
	[ "$(there_logs)" = 0 ]
	[ -z "$(find "$two" "$three" -name 'spread.*')" ]
	spread_file h
	rm "$back/h"
	[ "$(there_logs)" -ge 2 ]
	"$plfs" gc -a 0 "$back"
	[ "$(there_logs)" = 0 ]
	spread_file h
	rm -r "$back/h" "$back"/.plfs/??/* # and not what is in the others
	"$plfs" gc --places "$two" "$three" >"$work/out"
	grep 'more can be removed now, by: plfs gc --places -a 0' "$work/out"
	[ "$(there_logs)" -ge 2 ]
	"$plfs" gc --places -a 0 "$two" "$three" | grep '1 containers of files that are gone removed'
	[ "$(there_logs)" = 0 ]
}

spread_copied() { # a copy of the first backend does not lead to the logs of the original
	local map copy=$work/copy.back logs
	spread_setup process
	spread_file c
	logs=$(there_logs)
	rm -rf "$copy"
	cp -a "$back" "$copy"
	! "$plfs" run -m "/plfs=$copy" cat /plfs/c >"$work/out" 2>"$work/err" || return 1
	[ ! -s "$work/out" ]
	grep 'not there' "$work/err"
	"$plfs" run -m "/plfs=$copy" rm /plfs/c
	[ "$(there_logs)" = "$logs" ]
	"$plfs" run -m "$map" cmp "$work/plain/c" /plfs/c
	rm -rf "$copy"
	mv "$back" "$copy"
	"$plfs" run -m "/plfs=$copy" cmp "$work/plain/c" /plfs/c
	mv "$copy" "$back"
}

spread_hosts() { # each has its own directory, and reads what the others have written
	local map rule i
	[ "$(id -u)" = 0 ] || { echo "needs root, for other names of this host"; exit 77; }
	for rule in process host file; do
		spread_setup $rule
		rm -f "$back/n" "$work/plain/n"
		for i in 0 1 2 3 4 5 6 7; do
			unshare -u sh -c 'hostname "$1"; shift; exec "$@"' - "node$i" "$plfs" run -m "$map" "$bin/writer" /plfs/n $i 8 50 1000 "$([ $i = 5 ] && echo kill || echo close)" || [ $i = 5 ]
			"$bin/writer" "$work/plain/n" $i 8 50 1000 close
		done
		[ "$rule" != process ] || [ "$(there_logs)" -ge 1 ]
		[ "$rule" != host ] || [ "$(find "$two" "$three" -name 'data.*' | sed 's,/data.*,,' | sort | uniq -d | wc -l)" = 0 ]
		for i in 1 6; do
			unshare -u sh -c 'hostname "$1"; shift; exec "$@"' - "node$i" "$plfs" run -m "$map" cmp "$work/plain/n" /plfs/n
		done
		"$plfs" run -m "/plfs=$back" cmp "$work/plain/n" /plfs/n
		"$plfs" repair "$back/n"
		"$plfs" check "$back/n"
	done
}

spread_gone() { # a backend that is not mounted: an error and a line, nothing is written there; then all is there again
	local map
	[ "$(id -u)" = 0 ] || { echo "needs root, to mount"; exit 77; }
	spread_setup process
	mkdir -p "$work/real"
	mount --bind "$work/real" "$two" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$two"' EXIT
	rm -f "$work/plain/g"
	until strided g && [ "$(find "$two" -name 'data.*' | wc -l)" -ge 1 ]; do :; done
	umount "$two"
	! "$plfs" run -m "$map" cat /plfs/g >"$work/out" 2>"$work/err" || return 1
	grep "$two/plfs.*not there" "$work/err"
	! "$plfs" check "$back/g" >"$work/out" || return 1
	grep "$two/plfs.* is not there" "$work/out"
	grep 'lost' "$work/out"
	! "$plfs" repair --partial "$back/g" >"$work/out" || return 1
	strided g2
	strided g2
	"$plfs" run -m "$map" cmp "$work/plain/g2" /plfs/g2
	strided g 2>"$work/err"
	[ -z "$(find "$two" -path '*/plfs.*' -name 'data.*' -newer "$work/err")" ]
	mount --bind "$work/real" "$two"
	"$plfs" run -m "$map" cmp "$work/plain/g" /plfs/g
	"$plfs" check "$back/g"
	umount "$two"
	trap - EXIT
	rmdir "$two" 2>/dev/null || rm -r "$two"
	wrong 78 'No such file or directory' "$plfs" run -m "$map" true
}

spread_full() { # backends without space: the next one has the rest
	local map i nr
	[ "$(id -u)" = 0 ] || { echo "needs root, for a small file system"; exit 77; }
	spread_setup process
	mount -t tmpfs -o size=5m none "$two" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$two"' EXIT
	head -c 20000000 /dev/urandom >"$work/plain/f"
	# as many as it takes for one to begin in the small one
	for ((nr = 0; nr < 6 || (nr < 40 && $(find "$two" -name 'data.*' | wc -l) == 0); nr++)); do
		"$plfs" run -m "$map" dd if="$work/plain/f" of=/plfs/f$nr bs=1000000 status=none
		"$plfs" run -m "$map" dd if="$work/plain/f" of=/plfs/f$nr bs=7000 conv=notrunc status=none
	done
	[ "$(find "$two" -name 'data.*' | wc -l)" -ge 1 ] || { echo "no log is in $two"; return 1; }
	for ((i = 0; i < nr; i++)); do
		"$plfs" run -m "$map" cmp "$work/plain/f" /plfs/f$i
		"$plfs" check "$back/f$i"
	done
	umount -l "$two"
	trap - EXIT
}

# The log of a killed process cannot be closed in a backend that is full: what helps is in the error line.
spread_full_killed() {
	local map line
	[ "$(id -u)" = 0 ] || { echo "needs root, for a small file system"; exit 77; }
	spread_setup process
	map="/plfs=$back,$two{small=0,spread=process}"
	mount -t tmpfs -o size=20m none "$two" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$two"' EXIT
	"$bin/writer" "$work/plain/k" 0 1 500 1000 close
	until [ "$(find "$two" -name 'data.*' | wc -l)" != 0 ]; do
		"$plfs" run -m "$map" "$bin/writer" /plfs/k 0 1 500 1000 close
	done
	for name in k l; do # of l nothing else is there
		until "$plfs" places "$back/$name" | grep '(1 open)'; do
			"$plfs" run -m "$map" "$bin/writer" "/plfs/$name" 0 1 500 1000 kill || true
		done
	done
	! dd if=/dev/zero of="$two/fill" bs=1000 status=none || return 1
	line="in $two/plfs.*: No space left on device; plfs drain --to=home FILE makes room there, or plfs flatten FILE saves it"
	for name in k l; do
		! "$plfs" repair "$back/$name" >"$work/out" || return 1
		grep "$line" "$work/out"
		! "$plfs" compact "$back/$name" 2>"$work/err" || return 1
		grep "$line" "$work/err"
	done
	wrong 75 'plfs flatten FILE saves it' "$plfs" drain --to=home "$back/l"
	"$plfs" flatten "$back/l"
	cmp "$back/l" "$work/plain/k"
	"$plfs" drain --to=home "$back/k" | grep '[1-9][0-9]* logs moved home'
	"$plfs" repair "$back/k"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/k" /plfs/k
	umount -l "$two"
	trap - EXIT
}

spread_room_again() { # all backends were full; a process that waits for space goes on
	local map one=$work/plain/one.back
	[ "$(id -u)" = 0 ] || { echo "needs root, for a small file system"; exit 77; }
	spread_setup process
	mkdir -p "$one"
	mount -t tmpfs -o size=12m none "$one" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$one"' EXIT
	mkdir "$one/1" "$one/2"
	"$plfs" run -m "/plfs=$one/1,$one/2{spread=process,small=0}" python3 -c '
import errno, os, sys
room = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.posix_fallocate(room, 0, 5 << 20)
f = os.open("/plfs/f", os.O_WRONLY | os.O_CREAT)
done = 0
try:
    while True:
        done += os.write(f, b"x" * 100000)
except OSError as e:
    assert e.errno == errno.ENOSPC, e
os.unlink(sys.argv[1])
os.close(room)
for i in range(10):
    done += os.write(f, b"x" * 100000)
os.close(f)
assert open("/plfs/f", "rb").read() == b"x" * done' "$one/room"
	umount -l "$one"
	trap - EXIT
}

spread_users() { # others read as the mode says; what others write to a file is in the first backend
	local map
	[ "$(id -u)" = 0 ] || { echo "needs root, to be other users"; exit 77; }
	spread_setup process
	chmod 755 "$work" "$two" "$three"
	chmod 755 "$work/plfs" "$work/libplfs.so" "$work/plain" "$back"
	spread_file u
	chmod 644 "$work/plain/u"
	chmod 600 "$back/u" && "$plfs" run -m "$map" chmod 644 /plfs/u
	setpriv --reuid 41001 --regid 41001 --clear-groups "$work/plfs" run -m "$map" cmp "$work/plain/u" /plfs/u
	"$plfs" run -m "$map" chmod 600 /plfs/u
	! setpriv --reuid 41001 --regid 41001 --clear-groups "$work/plfs" run -m "$map" cat /plfs/u || return 1
	[ -z "$(find "$two" "$three" -name 'data.*' -perm /077)" ]
}

spread_brought() { # home: then the other backends may go
	local map
	spread_setup process
	spread_file h
	mkdir -p "$work/place"
	wrong 2 ' --to is home' "$plfs" drain --to near "$back/h"
	"$plfs" run -m "$map" sh -c "exec 3<>/plfs/h; '$plfs' drain --to home '$back/h'" | grep '[1-9][0-9]* logs moved home'
	[ "$(there_logs)" = 0 ]
	[ "$(find "$back" "$two" "$three" -name 'spread.*' | wc -l)" = 0 ]
	"$plfs" drain --to home "$back/h" | grep '^0 logs moved home'
	"$plfs" places "$back/h" >"$work/out"
	! grep shared "$work/out" || return 1
	rm -r "$two" "$three"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/h" /plfs/h
	"$plfs" check "$back/h"
}

spread_lost() { # a backend that never comes back: the rest is read and got out, the bytes that it had are named and given up
	local map range from to
	spread_setup process
	until "$plfs" run -m "$map" rm -f /plfs/l && spread_file l && [ "$(find "$two" -name 'data.*' | wc -l)" -ge 1 ] && [ "$(find "$two" -name 'data.*' | wc -l)" -le 3 ]; do :; done
	wrong 1 "$two is there: nothing is given up" "$plfs" places --forget "$two" "$back/l"
	mv "$two" "$work/b2.aside"
	! "$plfs" check "$back/l" >"$work/out" || return 1
	grep "places --forget $two FILE" "$work/out"
	sed -n 's/.*lost: bytes \([0-9]*\) to \([0-9]*\)$/\1 \2/p' "$work/out" >"$work/ranges"
	[ -s "$work/ranges" ]
	# Byte by byte: each range that check lists is an error, and each between two of them is read.
	"$plfs" run -m "/plfs=$back" python3 -c '
import errno, os, sys
lost = [tuple(map(int, l.split())) for l in open(sys.argv[2])]
plain = open(sys.argv[1], "rb").read()
f = os.open("/plfs/l", os.O_RDONLY)
at = 0
for a, b in sorted(lost) + [(len(plain), len(plain))]:
    assert a == at or os.pread(f, a - at, at) == plain[at:a], (at, a)
    if a == len(plain):
        break
    try:
        os.pread(f, 1, a)
        sys.exit("read byte %d" % a)
    except OSError as e:
        assert e.errno == errno.EIO
    at = b + 1' "$work/plain/l" "$work/ranges" 2>"$work/err"
	grep "in another backend, $two/plfs.*places --forget $two FILE" "$work/err"
	! "$plfs" repair --partial "$back/l" >"$work/got" || return 1
	! "$plfs" flatten "$back/l" || return 1
	rescued "$back/l"
	wrong 1 'has nothing' "$plfs" places --forget "$work/none" "$back/l"
	"$plfs" places --forget "$two/" "$back/l" | grep 'is given up'
	! "$plfs" places "$back/l" | grep "$two" || return 1
	! "$plfs" run -m "/plfs=$back" cat /plfs/l >"$work/out" 2>"$work/err" || return 1
	cp "$back/l" "$work/plain/l.stub"
	rescued "$back/l"
	"$plfs" run -m "/plfs=$back" cp "$work/plain/l" /plfs/l
	"$plfs" check "$back/l"
	"$plfs" run -m "/plfs=$back" rm /plfs/l
	rm -r "$work/b2.aside"
}

rescued() { # flatten -p: all but the ranges in $work/ranges, which are named, and are zeros in the result
	! "$plfs" flatten -p -o "$work/plain/l.out" "$1" 2>"$work/err" || return 1
	cat "$work/err"
	grep 'lost' "$work/err" >/dev/null
	python3 -c '
import sys
plain, out = bytearray(open(sys.argv[1], "rb").read()), open(sys.argv[2], "rb").read()
for l in open(sys.argv[3]):
    a, b = map(int, l.split())
    plain[a:b + 1] = bytes(b + 1 - a)
assert plain == out' "$work/plain/l" "$work/plain/l.out" "$work/ranges"
}
