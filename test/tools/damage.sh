# SPDX-License-Identifier: BSD-3-Clause
# plfs check and plfs repair, sourced by run: each kind of damage, what check says and its exit code, what repair does, and what
# reads afterwards.

container_of() { # NAME
	"$plfs" stat --json "$back/$1" | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["container"])'
}

# A file of 4 writers, and its container in $c. NAME.plain has its bytes.
damaged_file() { # NAME [END]
	strided "$1" "${2:-close}"
	c=$(container_of "$1")
}

# said CODE COMMAND...: its exit code; what it says is in $work/said.
said() {
	local code=$1 rc=0
	shift
	"$@" >"$work/said" 2>"$work/err" || rc=$?
	cat "$work/said" "$work/err"
	[ $rc = "$code" ] || { echo "$*: exit code $rc, not $code"; return 1; }
	[ ! -s "$work/err" ] || { echo "$*: says something on standard error"; return 1; }
}

checks() { # CODE TEXT [OPTION...]: of file f
	local code=$1 text=$2
	shift 2
	said "$code" "$plfs" check "$@" "$back/f"
	grep -qF -- "$text" "$work/said" || { echo "check does not say: $text"; return 1; }
}

repairs() { # CODE TEXT [OPTION...]
	local code=$1 text=$2
	shift 2
	said "$code" "$plfs" repair "$@" "$back/f"
	grep -qF -- "$text" "$work/said" || { echo "repair does not say: $text"; return 1; }
}

reads_right() { "$plfs" run -m "$map" cmp "$work/plain/f" /plfs/f; }
reads_nothing() { ! "$plfs" run -m "$map" cat /plfs/f >/dev/null 2>&1; }

sound() {
	said 0 "$plfs" check "$back/f"
	! grep -E 'damage|remains|lost|failed: ' "$work/said"
	reads_right
}

# Change the byte at OFFSET of FILE.
flip() { # FILE OFFSET
	python3 -c '
import sys
f = open(sys.argv[1], "r+b")
f.seek(int(sys.argv[2]))
b = f.read(1)
f.seek(int(sys.argv[2]))
f.write(bytes([b[0] ^ 4]))' "$1" "$2"
}

first_log() { find "$c" -name 'data.*' | sort | head -n 1; }

# All files of the container with their contents.
fingerprint() { (cd "$back" && find . -type f | sort | xargs md5sum); }

# ---- nothing wrong ----

check_sound() {
	damaged_file f
	checks 0 '1 logical files'
	checks 0 ' 0.0 MiB read' --quick
	said 0 "$plfs" check -m "$map" /plfs/f
	"$plfs" run -m "$map" sh -c 'seq 1 1000 >/plfs/g; ln /plfs/g /plfs/h; mkdir /plfs/d; seq 1 100000 >/plfs/d/i'
	echo plain >"$back/d/p"
	said 0 "$plfs" check -r -j 2 "$back"
	grep -x '3 logical files, .* 0 damaged, 0 repaired, 0 failed' "$work/said"
	said 0 "$plfs" check -r --json "$back/d"
	python3 -c 'import json, sys; o = json.loads(open(sys.argv[1]).read()); assert o["files"] == 1 and o["plain"] == 1, o' "$work/said"
	fingerprint >"$work/before"
	said 0 "$plfs" repair -r "$back"
	fingerprint | diff "$work/before" -
}

check_wrong() {
	damaged_file f
	wrong 2 "no path given" "$plfs" check
	wrong 2 "no number of jobs" "$plfs" check -j many "$back/f"
	wrong 2 "bad option" "$plfs" check -n "$back/f"
	wrong 2 "No such file" "$plfs" check "$back/none"
	wrong 2 "-r looks at all" "$plfs" check "$back"
	wrong 2 "on no backend" "$plfs" check "$work/plain/f"
	ln -s f "$back/link"
	wrong 2 "a symbolic link" "$plfs" check "$back/link"
	wrong 78 "nonsense" "$plfs" check -m nonsense "$back/f"
}

# ---- damage that a repair sets right ----

check_missing_index() {
	damaged_file f
	rm "$c"/hostdir.*/index.*
	reads_right # the logs say themselves what is in them
	checks 1 'no index knows it'
	checks 1 'no index knows it' --quick
	repairs 1 'to be repaired' -n
	[ -z "$(find "$c" -name 'index.*')" ]
	repairs 0 'made anew with 4 blocks, 4 of them from the logs'
	sound
	repairs 0 ' 0 repaired'
}

check_damaged_index() {
	local index
	damaged_file f
	index=$(find "$c" -name 'index.*')
	cp "$index" "$work/index.kept"
	flip "$index" 100
	cp "$index" "$work/index.bad"
	reads_right
	checks 1 'is damaged: the file cannot be read by this index'
	repairs 0 'what it was is kept as'
	sound
	cmp "$(find "$c" -name 'damaged.0.index.*')" "$work/index.bad"
	cmp "$index" "$work/index.kept"
	flip "$index" 300
	repairs 0 'kept as'
	[ "$(find "$c" -name 'damaged.*' | wc -l)" = 2 ]
	sound
	"$plfs" run -m "$map" rm /plfs/f
	[ ! -e "$c" ]
}

# The block of the last that closed is gone, at a block's end: nothing but the logs tells of it.
check_cut_index() {
	local index
	"$plfs" run -m "$map" python3 -c '
import os, random
random.seed(1)
f = os.open("/plfs/f", os.O_WRONLY | os.O_CREAT)
for i in range(3000):
    os.pwrite(f, b"%07d\n" % i, random.randrange(100000))'
	"$plfs" run -m "$map" cat /plfs/f >"$work/plain/f"
	c=$(container_of f)
	rm -f "$c/index.global"
	index=$(find "$c" -name 'index.*')
	python3 -c '
import struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack_from("<I", b, 20)[0]
assert n < len(b)
open(sys.argv[1], "wb").write(b[:n])' "$index"
	! reads_right
	checks 1 'lacks'
	repairs 0 'of them from the logs'
	sound
}

check_killed() {
	damaged_file f kill
	checks 0 'its process was killed'
	repairs 0 'closed what its process could not close'
	[ -z "$(find "$c" -name 'live.*')" ]
	sound
	[ "$("$plfs" stat --json "$back/f" | sed 's/.*"size": \([0-9]*\).*/\1/')" = 200000 ]
	by_the_book f
}

# Killed processes, and the index of those that closed before is lost.
check_killed_without_index() {
	damaged_file f
	rm "$work/plain/f"
	strided f kill
	rm "$c"/hostdir.*/index.*
	checks 1 'no index knows it'
	repairs 0 'made anew'
	[ -z "$(find "$c" -name 'live.*')" ]
	sound
}

check_temporaries() {
	damaged_file f
	echo >"$c/index.global.tmp.0badcafe"
	echo >"$(dirname "$(first_log)")/index.x.tmp.0badcafe"
	checks 0 'a temporary file that a killed process has left'
	repairs 0 'removed'
	[ -z "$(find "$c" -name '*.tmp.*')" ]
	sound
}

check_old_map() {
	damaged_file f
	for i in 1 2 3 4 5 6 7 8; do "$plfs" run -m "$map" python3 -c '
import os, sys
f = os.open("/plfs/f", os.O_WRONLY)
os.pwrite(f, b"x" * 1000, int(sys.argv[1]) * 10000)' $i; done
	"$plfs" run -m "$map" cat /plfs/f >/dev/null
	[ -e "$c/index.global" ]
	cp "$c/index.global" "$work/old.global"
	ln "$c/index.global" "$work/held" # its inode number is not free
	"$plfs" run -m "$map" sh -c 'echo later | dd of=/plfs/f bs=1 seek=500 conv=notrunc status=none'
	"$plfs" run -m "$map" cat /plfs/f >"$work/plain/f"
	cp "$work/old.global" "$c/index.global" # as a backup puts it back: another file, which nobody believes
	checks 0 'index.global'
	reads_right
	cp "$work/old.global" "$c/index.global"
	repairs 0 'index.global: removed'
	sound
	flip "$c/index.global" 400
	checks 0 'index.global'
	repairs 0 'index.global: removed'
	"$plfs" run -m "$map" cat /plfs/f >/dev/null
	python3 -c ' # in the very file that was confirmed
import sys
old, f = open(sys.argv[1], "rb").read(), open(sys.argv[2], "r+b")
words = f.read()[128:144]
f.seek(0)
f.write(old[:128] + words + old[144:])
f.truncate()' "$work/old.global" "$c/index.global"
	! reads_right
	checks 1 'an old kept map in the place of the present one'
	repairs 0 'index.global: removed'
	sound
}

# ---- damage that remains ----

check_flipped_bit() {
	damaged_file f
	flip "$(first_log)" $((65536 + 1500))
	checks 1 'do not match their checksums'
	grep -F 'lost: bytes ' "$work/said"
	checks 0 '0 damaged' --quick
	fingerprint >"$work/before"
	repairs 1 'remains: hostdir'
	grep -F 'lost: bytes ' "$work/said"
	fingerprint | diff "$work/before" -
}

check_cut_log() {
	damaged_file f
	truncate -s $((65536 + 20000)) "$(first_log)"
	checks 1 'cut off: its index knows 50000 bytes of data, there are 20000'
	checks 1 'cut off' --json
	python3 -c ' # of each 4000 bytes 1000, from the 20th on: as a program sees it
import json, sys
lost = [(o["offset"], o["length"]) for o in map(json.loads, open(sys.argv[1])) if o.get("code") == "lost"]
first = lost[0][0] % 4000
assert lost == [(i * 4000 + first, 1000) for i in range(20, 50)], lost' "$work/said"
	repairs 1 'remains: hostdir'
}

check_missing_log() {
	local log
	damaged_file f
	log=$(first_log)
	mv "$log" "$work/log.kept"
	checks 1 'the log is missing'
	[ "$(grep -c 'lost: bytes' "$work/said")" = 50 ]
	repairs 1 'remains: hostdir'
	mv "$work/log.kept" "$log"
	sound
}

check_swapped_logs() {
	local a b
	damaged_file f
	a=$(first_log)
	b=$(find "$c" -name 'data.*' | sort | tail -n 1)
	mv "$a" "$work/swap" && mv "$b" "$a" && mv "$work/swap" "$b"
	checks 1 'or that of another log'
	repairs 1 'remains: hostdir'
	mv "$a" "$work/swap" && mv "$b" "$a" && mv "$work/swap" "$b"
	sound
}

# A log whose live file is lost does not say where its bytes belong.
check_lost_live_file() {
	damaged_file f kill
	fingerprint >"$work/before"
	rm "$(find "$c" -name 'live.*' | head -n 1)"
	"$plfs" run -m "$map" sh -c 'head -c 600000 /dev/zero >/plfs/g'
	checks 0 '0 damaged' # nothing of it had left the live file
	rm "$back/f" && rm -r "$c"
	block=20000 damaged_file f kill
	rm "$(find "$c" -name 'live.*' | sort | head -n 1)"
	reads_nothing
	checks 1 'of which nobody knows where in the file they belong'
	repairs 1 'of which nobody knows'
	[ "$(find "$c" -name 'data.*' | wc -l)" = 4 ]
	reads_nothing
	repairs 1 'bytes, of which nobody knows where they belong, are kept as' -p
	[ "$(find "$c" -name 'damaged.0.data.*' | wc -l)" = 1 ]
	checks 0 'what a repair has replaced'
	"$plfs" run -m "$map" cat /plfs/f >"$work/got" # the pieces of three processes
	cmp -n 20000 -i 20000 "$work/got" "$work/plain/f" || cmp -n 20000 "$work/got" "$work/plain/f"
	rm "$back/f" && rm -r "$c"
	rm "$work/plain/f"
	damaged_file f
	"$plfs" run -m "$map" python3 -c '
import os
fd = os.open("/plfs/f", os.O_RDWR)
os.pwrite(fd, os.pread(fd, 1000, 0), 0)
os.close(fd) # the log is known by this
fd = os.open("/plfs/f", os.O_RDWR)
os.pwrite(fd, bytes(700000), 0)
os.kill(os.getpid(), 9)' || :
	rm "$(find "$c" -name 'live.*')"
	reads_right # nobody but check misses it
	checks 1 'what came behind byte 1000 of its data is lost, or cannot be placed'
}

# More than one bit of what a killed process left.
check_damaged_live_file() {
	damaged_file f kill
	printf garbage | dd of="$(find "$c" -name 'live.*' | head -n 1)" bs=1 seek=40 conv=notrunc status=none
	reads_nothing
	checks 1 'its last records may be lost'
	repairs 1 'its last records may be lost'
	reads_nothing
	repairs 1 'are kept as' -p
	checks 0 'what a repair has replaced'
	"$plfs" run -m "$map" cat /plfs/f >/dev/null
}

check_format() {
	damaged_file f
	echo garbage >"$back/.plfs/format"
	said 1 "$plfs" check -r "$back"
	grep -F '.plfs/format: damage' "$work/said"
	said 1 "$plfs" repair -r "$back"
	rm "$back/.plfs/format"
	"$plfs" run -m "$map" sh -c 'seq 1000 >/plfs/g'
	said 0 "$plfs" check -r "$back"
}

check_second_name() {
	damaged_file f
	ln "$(first_log)" "$work/another"
	checks 0 'it has 2 names (hard links): nothing is written to it until it has one'
	rm "$work/another"
	said 0 "$plfs" check -r "$back"
	! grep 'hard links' "$work/said"
}

check_half_deleted_container() {
	damaged_file f
	for i in 1 2 3 4 5 6; do "$plfs" run -m "$map" sh -c "echo $i | dd of=/plfs/f bs=1 seek=$i status=none conv=notrunc"; done
	"$plfs" run -m "$map" cat /plfs/f >/dev/null
	[ -e "$c/index.global" ]
	rm "$c"/hostdir.*/index.* "$(first_log)"
	checks 1 'the log is missing, and so is its index; index.global knows of it'
	grep 'lost: bytes' "$work/said"
	repairs 1 'the log is missing'
	rm -r "$c"/*
	checks 1 'is empty: none of what was in logs can be read'
	repairs 1 'is empty'
	rm -r "$c"
	checks 1 'is missing: none of what was in logs can be read'
	repairs 1 'is missing'
}

check_stub() {
	damaged_file f
	printf garbage | dd of="$back/f" bs=1 seek=30 conv=notrunc status=none
	checks 1 'the header of its stub is damaged'
	repairs 1 'the header of its stub is damaged'
}

check_copied_stub() {
	damaged_file f
	cp -p "$back/f" "$back/copy"
	said 1 "$plfs" check -r "$back"
	grep -F 'backend/f: damage: another file' "$work/said"
	grep -F 'backend/copy: damage: a copy' "$work/said"
	said 1 "$plfs" repair -r "$back"
	said 0 "$plfs" check "$back/f"
	rm "$back/copy"
	ln "$back/f" "$back/link"
	said 0 "$plfs" check -r "$back"
}

# Restored from a backup, or by what else takes the place of the file without the library.
check_restored_stub() {
	damaged_file f
	ln "$back/f" "$work/old_inode" # else the new one may get its inode
	cp -p "$back/f" "$work/stub" && rm "$back/f" && cp -p "$work/stub" "$back/f"
	rm "$work/old_inode" "$work/stub"
	checks 0 'copied or restored'
	repairs 0 ' 0 repaired'
	said 1 "$plfs" repair -r -n "$back"
	grep -F 'to be repaired' "$work/said"
	said 0 "$plfs" repair -r "$back"
	grep -F 'its container is its own again' "$work/said"
	said 0 "$plfs" check "$back/f"
	! grep restored "$work/said"
	reads_right
	"$plfs" run -m "$map" rm /plfs/f
	[ ! -e "$c" ]
}

check_strange_things() {
	damaged_file f
	touch "$c/README" "$c/hostdir.strange"
	checks 0 'does not belong here'
	ln -s /etc/passwd "$(dirname "$(first_log)")/data.x.1.1"
	checks 1 'a symbolic link'
	repairs 1 'a symbolic link'
	[ -L "$(dirname "$(first_log)")/data.x.1.1" ] && [ -e "$c/README" ]
}

# A job that writes all the time, truncates and closes: nothing of that is damage.
check_while_written() {
	local i job
	"$plfs" run -m "$map" python3 -c '
import os, random, time
end = time.time() + 4
while time.time() < end:
    f = os.open("/plfs/f", os.O_RDWR | os.O_CREAT | (os.O_TRUNC if random.random() < 0.2 else 0))
    for i in range(random.randrange(2000)):
        os.pwrite(f, b"x" * random.randrange(1, 3000), random.randrange(1000000))
    if random.random() < 0.1:
        os.ftruncate(f, random.randrange(1000000))
    os.close(f)' &
	job=$!
	until [ -s "$back/f" ]; do sleep 0.01; done # before that there may be no .plfs yet
	for i in $(seq 30); do
		said 0 "$plfs" check "$back/f"
		[ $((i % 3)) != 0 ] || said 0 "$plfs" repair "$back/f"
	done
	wait $job
	said 0 "$plfs" check "$back/f"
}
