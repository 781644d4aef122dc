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
	! grep -E ': (damage|remains|lost|failed): ' "$work/said" || return 1
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
	checks 0 ' 0 bytes read' --quick
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
	wrong 2 "not a number of jobs" "$plfs" check -j many "$back/f"
	wrong 2 "bad option" "$plfs" check -n "$back/f"
	wrong 2 "No such file" "$plfs" check "$back/none"
	wrong 2 "use -r" "$plfs" check "$back"
	wrong 2 "not on a backend" "$plfs" check "$work/plain/f"
	wrong 78 "nonsense" "$plfs" check -m nonsense "$back/f"
}

# ---- damage that a repair sets right ----

check_missing_index() {
	damaged_file f
	rm "$c"/hostdir.*/index.*
	reads_right # the logs say themselves what is in them
	checks 1 'no index has it'
	checks 1 'no index has it' --quick
	repairs 1 'to be repaired' -n
	[ -z "$(find "$c" -name 'index.*')" ]
	repairs 0 'rebuilt with 4 blocks, 4 of them from the logs'
	sound
	repairs 0 ' 0 repaired'
}

# A file whose indexes are built anew from its logs is as sound as before, also where a log repeats records, or has void ones.
check_rebuilt_index() {
	local seed turn
	for seed in 1 14 16 18 20; do
		rm -rf "$back/f" "$back"/.plfs/??
		for turn in 1 2 3; do
			"$plfs" run -m "$map" python3 -c '
import os, random, sys
random.seed(int(sys.argv[1]))
f = os.open("/plfs/f", os.O_RDWR | os.O_CREAT)
for i in range(300):
    what = random.random()
    if what < 0.02:
        os.ftruncate(f, random.randrange(200000))
    elif what < 0.04:
        os.fsync(f)
    elif what < 0.06:
        os.close(f)
        f = os.open("/plfs/f", os.O_RDWR)
    elif what < 0.08:
        os.pread(f, 1000, random.randrange(100000))
    else:
        os.pwrite(f, random.randbytes(random.choice([10, 100, 5000, 100000])), random.randrange(200000))
if random.random() < 0.3:
    os.kill(os.getpid(), 9)' $seed$turn || [ $? = 137 ]
		done
		"$plfs" run -m "$map" cat /plfs/f >"$work/plain/f"
		said 0 "$plfs" check "$back/f"
		find "$back/.plfs" -name 'index.*' -delete
		repairs 0 'of them from the logs'
		sound
	done
}

check_damaged_index() {
	local index
	damaged_file f
	index=$(find "$c" -name 'index.*')
	cp "$index" "$work/index.kept"
	flip "$index" 100
	cp "$index" "$work/index.bad"
	reads_right
	checks 1 'is damaged: the file cannot be read with this index'
	repairs 0 'the old one is kept as'
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
	! reads_right || return 1
	checks 1 'lacks'
	repairs 0 'of them from the logs'
	sound
}

check_killed() {
	damaged_file f kill
	checks 0 'its process was killed'
	fingerprint >"$work/before"
	repairs 0 '; there is nothing to repair' -n
	grep 'note: .*nothing needs it, but a repair would tidy up: the log of a killed process' "$work/said"
	! grep -E 'to be repaired|remains' "$work/said" || return 1
	fingerprint | diff "$work/before" -
	repairs 0 'the log of a killed process is closed'
	[ -z "$(find "$c" -name 'live.*')" ]
	sound
	[ "$("$plfs" stat --json "$back/f" | sed 's/.*"size": \([0-9]*\).*/\1/')" = 200000 ]
	by_the_book f
}

# A killed job leaves a finding for each rank: a few of them are shown, and how many more there are.
check_many_killed() {
	damaged_file f kill
	strided f kill
	checks 0 'note: and 5 more like these'
	[ "$(grep -c 'its process was killed' "$work/said")" = 3 ]
	checks 0 'its process was killed' -v
	[ "$(grep -c 'its process was killed' "$work/said")" = 8 ]
	checks 0 '"code": "killed"' --json
	[ "$(grep -c '"code": "killed"' "$work/said")" = 8 ]
	repairs 0 'repaired: and 5 more like these'
	sound
}

# Killed processes, and the index of those that closed before is lost.
check_killed_without_index() {
	damaged_file f
	rm "$work/plain/f"
	strided f kill
	rm "$c"/hostdir.*/index.*
	checks 1 'no index has it'
	repairs 0 'rebuilt'
	[ -z "$(find "$c" -name 'live.*')" ]
	sound
}

check_temporaries() {
	damaged_file f
	echo >"$c/index.global.tmp.0badcafe"
	echo >"$(dirname "$(first_log)")/index.x.tmp.0badcafe"
	checks 0 'a temporary file that a killed process left'
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
	! reads_right || return 1
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
	[ "$(sort "$work/said" | uniq -d | wc -l)" = 0 ]
	[ "$(grep -c 'do not match their checksums' "$work/said")" = 1 ]
	fingerprint | diff "$work/before" -
	rm "$c"/hostdir.*/index.* # what is repaired is named once as damage, what is not once as what remains
	repairs 1 'to be repaired: hostdir' -n
	[ "$(grep -c 'do not match their checksums' "$work/said")" = 1 ]
	repairs 1 'remains: hostdir'
	[ "$(grep -c 'damage: .*no index has it' "$work/said")" = 4 ]
	[ "$(grep -c 'do not match their checksums' "$work/said")" = 1 ]
}

check_cut_log() {
	damaged_file f
	truncate -s $((65536 + 20000)) "$(first_log)"
	checks 1 'too short: the index has 50000 bytes of its data, the log 20000'
	checks 1 'too short' --json
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

# A killed process's: nothing can be closed, and the others are still repaired and counted.
check_missing_log_of_a_killed() {
	local log
	damaged_file f kill
	damaged_file g
	c=$(container_of f)
	log=$(first_log)
	mv "$log" "$work/log.kept"
	checks 1 'the log is missing'
	! grep -F "live.${log#*/data.}" "$work/said" | grep 'can be read' || return 1
	said 1 "$plfs" repair -r "$back"
	grep '^2 logical files.*: 1 damaged, .* 0 failed' "$work/said"
	grep 'f: remains: .*the log is missing' "$work/said"
	[ "$(grep -c 'a killed process is closed' "$work/said")" = 3 ]
	mv "$work/log.kept" "$log"
	repairs 0 'a killed process is closed'
	sound
}

# A live file without contents: of a process that was killed just then, or lost in a crash, when its log has bytes.
check_emptied_live_file() {
	local block=20000
	"$plfs" run -m "$map" sh -c 'printf abc >/plfs/f; kill -9 $$' || [ $? = 137 ]
	printf abc >"$work/plain/f"
	"$plfs" run -m "$map" sh -c 'exec 3<>/plfs/f; printf abc >&3; kill -9 $$' || [ $? = 137 ]
	c=$(container_of f)
	truncate -s 0 "$c"/hostdir.*/live.*
	"$plfs" repair -n "$back/f"
	repairs 0 'a killed process is closed'
	sound
	damaged_file g kill
	truncate -s 0 "$c"/hostdir.*/live.*
	said 1 "$plfs" repair "$back/g"
	[ "$(grep -c 'remains: .*the place of its .* in the file is not known' "$work/said")" = 4 ]
	[ "$(find "$c" -name 'data.*' | wc -l)" = 4 ]
	fails_to_read g
}

# A live file without its end, as of a copy that a full disk or a quota ended.
check_cut_live_file() {
	damaged_file f kill
	for live in "$c"/hostdir.*/live.*; do truncate -s $((49152 + 20000)) "$live"; done
	checks 1 'too short: the index has 50000 bytes of its data, the log 20000'
	[ "$(grep -c 'damage: .*live.*cut short: the last 30000 bytes' "$work/said")" = 4 ]
	grep 'f: lost: bytes 80000 to 199999$' "$work/said"
	! grep -E 'can be read|closes it' "$work/said" || return 1
	repairs 1 'cut short' -n
	! grep 'is closed' "$work/said" || return 1
	repairs 1 'remains: hostdir'
	[ "$(find "$c" -name 'live.*' | wc -l)" = 4 ]
	fails_to_read f
	for cut in 5000 20000 40000; do # among the records, before the checksums, before the staged bytes
		rm -f "$back/f"
		block=20000 damaged_file f kill
		for live in "$c"/hostdir.*/live.*; do truncate -s $cut "$live"; done
		checks 1 'damage: '
		grep -q '^1 logical files' "$work/said"
		repairs 1 'remains: ' -p
	done
}

fails_to_read() { ! "$plfs" run -m "$map" cat "/plfs/$1" >/dev/null 2>&1; }

# What a site's purge of files that nobody has accessed leaves, and that it does not come to that while the file is read.
purged() {
	local round
	echo >"$work/plain/probe"
	touch -d '20 days ago' "$work/plain/probe" && touch -a -d '10 days ago' "$work/plain/probe"
	cat "$work/plain/probe" >/dev/null
	if [ -n "$(find "$work/plain/probe" -atime +1)" ]; then
		echo "skipped: the file system does not note accesses"
		return
	fi
	damaged_file f
	for i in 1 2 3 4 5 6 7 8; do "$plfs" run -m "$map" sh -c "echo $i | dd of=/plfs/f bs=1 seek=$i status=none conv=notrunc"; done
	"$plfs" run -m "$map" cp /plfs/f "$work/plain/f"
	for round in merged kept; do
		find "$back" -type f -exec touch -d '20 days ago' {} + -exec touch -a -d '10 days ago' {} +
		"$plfs" run -m "$map" head -c 100 /plfs/f >/dev/null # the bytes of one log
		find "$back" -type f ! -name 'notice.*' ! -name 'writers.*' ! -name lock -atime +1 >"$work/got"
		[ ! -s "$work/got" ] || { echo "$round: not accessed:"; cat "$work/got"; return 1; }
	done
	[ -e "$c/index.global" ] # so that the second round read no node index
	strided g
	find "$back" -type f -exec touch -a -d '10 days ago' {} +
	touch -a "$back/f" "$back/g" "$back/.plfs/format" "$c"/index.global "$c"/*/index.* $(container_of g)/*/*
	find "$c" -name 'data.*' | sort | tail -n +3 | xargs -d '\n' touch -a
	find "$back" -type f -atime +5 -delete
	said 1 "$plfs" check -r "$back"
	grep -x "$back/f: note: 2 of 12 logs are missing: removed by a purge of old files?.*" "$work/said"
	grep -q "^$back/f: lost: bytes" "$work/said"
	! grep "^$back/g" "$work/said" || return 1
	find "$back/.plfs" -name 'data.*' -delete
	checks 1 '12 of 12 logs are missing: removed by a purge'
	find "$back/.plfs" -type f ! -name format -delete
	checks 1 'is empty (a purge of old files?)'
	reads_nothing
	rm -r "$c"/hostdir.*
	checks 1 'is empty (a purge of old files?)'
	reads_nothing
}

# Copies of a whole backend by the commands that libplfs(7) names: each is a backend, and no larger.
copied_backend() {
	local way space copy=$work/copy
	block=200000 damaged_file f
	"$plfs" run -m "$map" sh -c 'mkdir /plfs/d; seq 1000 >/plfs/d/g; ln /plfs/d/g /plfs/h'
	echo plain >"$back/p"
	seq 1000 >"$work/plain/g"
	space=$(du -sk "$back" | cut -f 1)
	for way in cp rsync tar; do
		rm -rf "$copy"
		if ! command -v $way >/dev/null; then
			echo "skipped: no $way here"
			continue
		fi
		case $way in
		cp) cp -a "$back" "$copy" ;;
		rsync) rsync -aHS "$back/" "$copy/" ;;
		tar) mkdir "$copy" && tar -cSf "$work/tar" -C "$back" . && tar -xpSf "$work/tar" -C "$copy" && rm "$work/tar" ;;
		esac
		[ "$(du -sk "$copy" | cut -f 1)" -lt $((space + space / 4)) ] || { du -k "$back" "$copy"; return 1; }
		"$plfs" run -m "/q=$copy" cmp /q/f "$work/plain/f"
		"$plfs" run -m "/q=$copy" cmp /q/h "$work/plain/g"
		said 0 "$plfs" check -r "$copy"
	done
	rm -rf "$copy"
}

# An error line begins with the file as its user named it, then has the log.
lines_name_the_file() {
	damaged_file f
	mkdir "$back/d" && mv "$back/f" "$back/d/f"
	first() { # MAP FILE LINE: the first line of a read that fails
		! "$plfs" run -m "$1" cat "$2" >/dev/null 2>"$work/err" || return 1
		head -n 1 "$work/err" | grep -E "^libplfs: $3" || { cat "$work/err"; return 1; }
	}
	mv "$(first_log)" "$work/log.kept"
	first "$map" /plfs/d/f '/plfs/d/f: \.plfs/../[0-9a-f]{32}/hostdir\.[0-9]+/data\.[^ ]*: the data log is missing$'
	first "$back" "$back/d/f" "$back/d/f: \.plfs/.*: the data log is missing$"
	mv "$c" "$work/container.kept"
	first "$map" /plfs/d/f '/plfs/d/f: its container \.plfs/.* is missing or empty, so what was written to it is lost'
	mv "$work/container.kept" "$c"
	printf garbage | dd of="$back/d/f" bs=1 seek=30 conv=notrunc status=none
	first "$map" /plfs/d/f '/plfs/d/f: damaged stub'
}

check_swapped_logs() {
	local a b
	damaged_file f
	a=$(first_log)
	b=$(find "$c" -name 'data.*' | sort | tail -n 1)
	mv "$a" "$work/swap" && mv "$b" "$a" && mv "$work/swap" "$b"
	checks 1 'or of another log'
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
	checks 1 'bytes in the file is not known'
	repairs 1 'bytes in the file is not known'
	[ "$(find "$c" -name 'data.*' | wc -l)" = 4 ]
	reads_nothing
	repairs 1 'bytes without a known place in the file are kept as' -p
	[ "$(find "$c" -name 'damaged.0.data.*' | wc -l)" = 1 ]
	checks 0 'a repair has replaced it'
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
	checks 1 'its data behind byte 1000 is lost, or has no known place in the file'
}

# More than one bit of what a killed process left.
check_damaged_live_file() {
	damaged_file f kill
	printf garbage | dd of="$(find "$c" -name 'live.*' | head -n 1)" bs=1 seek=40 conv=notrunc status=none
	reads_nothing
	checks 1 'the file cannot be read while it is there'
	repairs 1 'the file cannot be read while it is there'
	reads_nothing
	repairs 1 'are kept as' -p
	checks 0 'a repair has replaced it'
	"$plfs" run -m "$map" cat /plfs/f >/dev/null
}

# An index of which one record has more bytes than the log: all that is printed has an end.
forged_index() {
	local log
	"$plfs" run -m "$map" sh -c 'exec head -c 3000 /dev/urandom >/plfs/f'
	truncate -s $((1 << 42)) "$back/f"
	c=$(container_of f)
	log=$(first_log)
	PYTHONPATH=../hostile python3 -B -c '
import os, sys
from forge import huge_index
pid, seq = map(int, sys.argv[1].split(".")[-2:])
open(sys.argv[2], "wb").write(huge_index(pid, seq, 0))' "$log" "$(dirname "$log")"/index.*
	rm -f "$c/index.global"
	rc=0
	timeout 60 "$plfs" map "$back/f" >"$work/got" 2>"$work/err" || rc=$?
	[ $rc = 1 ] && [ "$(wc -l <"$work/got")" -lt 10000 ]
	grep -F 'damaged: its index has more bytes than its logs' "$work/err"
	rc=0
	timeout 60 "$plfs" check --json "$back/f" >"$work/got" || rc=$?
	[ $rc = 1 ] && [ "$(wc -l <"$work/got")" -lt 1010 ]
	# All pieces of a file that has as many.
	"$plfs" run -m "$map" python3 -c '
import os
fd = os.open("/plfs/g", os.O_RDWR | os.O_CREAT)
for i in range(3000):
    os.pwrite(fd, b"x", 2999 * 4 - i * 4)'
	"$plfs" map "$back/g" >"$work/got"
	[ "$(grep -c hostdir "$work/got")" = 3000 ]
	c=$(container_of g)
	truncate -s 4696 "$(first_log)"
	rc=0
	"$plfs" check --json "$back/g" >"$work/got" || rc=$?
	[ $rc = 1 ] && [ "$(grep -c '"code": "lost"' "$work/got")" = 1000 ]
	grep -F 'and 2000 more ranges' "$work/got"
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
	checks 0 'it has 2 names (hard links), so it is not written to'
	rm "$work/another"
	said 0 "$plfs" check -r "$back"
	! grep 'hard links' "$work/said" || return 1
}

check_half_deleted_container() {
	damaged_file f
	for i in 1 2 3 4 5 6; do "$plfs" run -m "$map" sh -c "echo $i | dd of=/plfs/f bs=1 seek=$i status=none conv=notrunc"; done
	"$plfs" run -m "$map" cat /plfs/f >/dev/null
	[ -e "$c/index.global" ]
	rm "$c"/hostdir.*/index.* "$(first_log)"
	checks 1 'the log and its node index are missing; only index.global names it'
	grep 'lost: bytes' "$work/said"
	repairs 1 'the log and its node index are missing'
	rm -r "$c"/*
	checks 1 'is empty (a purge of old files?): no data from logs can be read'
	repairs 1 'is empty'
	rm -r "$c"
	checks 1 'is missing (a purge of old files?): no data from logs can be read'
	repairs 1 'is missing'
}

check_stub() {
	damaged_file f
	printf garbage | dd of="$back/f" bs=1 seek=30 conv=notrunc status=none
	checks 1 'the header of the stub is damaged'
	repairs 1 'the header of the stub is damaged'
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
	grep -F 'the container belongs to this file again' "$work/said"
	said 0 "$plfs" check "$back/f"
	! grep restored "$work/said" || return 1
	reads_right
	"$plfs" run -m "$map" rm /plfs/f
	[ ! -e "$c" ]
}

check_strange_things() {
	damaged_file f
	touch "$c/README" "$c/hostdir.strange"
	checks 0 'is no part of a container'
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

# In place, a run without the library that did not truncate. Its bytes are the oldest: where the file's own logs have none, it reads them.
check_stranger() {
	strided f
	"$plfs" run -m "$map" sh -c 'seq 100000 >/plfs/g; seq 3000 | dd of=/plfs/g bs=1M seek=3 conv=notrunc status=none'
	(cd "$work/plain"; seq 100000 >g; seq 3000 | dd of=g bs=1M seek=3 conv=notrunc status=none)
	# What is small at first has its first bytes there, and so have a few small writes behind them; a copy without
	# holes has zeros.
	"$plfs" run -m "/plfs=$back" sh -c 'head -c 60000 /dev/urandom >/plfs/small; head -c 900000 /dev/urandom >>/plfs/small
		dd if=/dev/urandom of=/plfs/pieces bs=32K count=30 status=none'
	cp -p --sparse=never "$back/g" "$work/copy" && cat "$work/copy" >"$back/g"
	"$plfs" check -r "$back" | tee "$work/got"
	grep '^4 logical files' "$work/got"
	! grep 'without the library wrote' "$work/got" || return 1
	for file in f g; do
		printf 'by a stranger' | dd of="$back/$file" bs=1 seek=$((4096 + 150000)) conv=notrunc status=none
	done
	printf 'by a stranger' | dd of="$back/g" bs=1 seek=$((4096 + 2500000)) conv=notrunc status=none
	printf 'by a stranger' | dd of="$work/plain/g" bs=1 seek=2500000 conv=notrunc status=none
	touch -m -d '2026-11-22 19:40:01 UTC' "$back/g"
	rm "$back/small" "$back/pieces"
	"$plfs" check -m "$map" -r "$back" | tee "$work/got"
	grep "$back/f: note: a program without the library wrote into its stub, at 2[0-9-]* [0-9:]* UTC or before .*: of bytes 150000 to 150012 of" "$work/got"
	grep "$back/g: note: a program without the library wrote into its stub, at 2026-11-22 19:40:01 UTC or before .*: of bytes 150000 to 2500012 of" "$work/got"
	"$plfs" run -m "$map" cmp /plfs/f "$work/plain/f"
	"$plfs" run -m "$map" cmp /plfs/g "$work/plain/g"
	"$plfs" check -m "$map" --quick --json "$back/g" | head -1 | grep '"severity": "note", "code": "stranger"'
	"$plfs" doctor -m "$map" "$back" | grep -E '^note +stranger +.*, and 1 more'
	# Behind a truncation they read as zeros.
	"$plfs" run -m "$map" sh -c 'seq 100000 >/plfs/t; truncate -s 2M /plfs/t'
	printf 'by a stranger' >>"$back/t"
	"$plfs" check -m "$map" "$back/t" | grep 'bytes 2097152 to 2097164 of'
	"$plfs" run -m "$map" cmp /plfs/t <(seq 100000; head -c $(((2 << 20) + 13 - $(seq 100000 | wc -c))) /dev/zero)
	# It can grow a file too; the next of the library appends behind that.
	printf 'behind' >>"$back/g" && printf 'behind' >>"$work/plain/g"
	"$plfs" run -m "$map" sh -c 'echo more >>/plfs/g; cat /plfs/g' | cmp - <(cat "$work/plain/g"; echo more)
	"$plfs" flatten "$back/g" && cmp "$back/g" <(cat "$work/plain/g"; echo more)
}
