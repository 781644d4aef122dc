# SPDX-License-Identifier: BSD-3-Clause
# A directory is mapped once, and one below it another time: each has its .plfs. Under both mappings the files have the bytes that a
# plain directory has after the same commands, whichever of the two made their containers.
. "$HERE/alone.bash"

# Each case with the outer mapping first, then with the inner, and once with small files in their stubs: FUNCTION gets the two as
# $ONE and $OTHER. The files are in run7. With PLFS_TEST_SPARSE (make check) one of these three: another for another case.
_both_ways() { # FUNCTION
	local small nr=$((${#FUNCNAME[1]} + ${PLFS_TEST_TURN:-0}))
	for small in '{small=0}' ''; do
		OUTER=$PFX=$B$small INNER=/inner=$B/run7$small
		for first in outer ${small:+inner}; do
			[ "${PLFS_TEST_SPARSE:-1}" = 1 ] || [ $((nr++ % 3)) = 0 ] || continue
			rm -rf "${B:?}" "$W/plain"
			mkdir -p "$B/run7/d" "$B/run8" "$W/plain/d"
			ONE=outer OTHER=inner
			[ $first = outer ] || { ONE=inner OTHER=outer; }
			echo "--- $ONE, then $OTHER, $small"
			"$1"
		done
	done
}

# A script in the directory under one of the mappings; its output is in $W/out.
_as() { # outer|inner SCRIPT
	local dir=$PFX/run7 map=$OUTER
	[ "$1" = outer ] || { dir=/inner map=$INNER; }
	MAP=$map _under sh -c "cd $dir && $2" >"$W/out"
	[ $rc = 0 ] || _fail "$1: $2: exit code $rc: $(cat "$W/err")"
	_no_errors "$1: $2"
}

# Nothing but the line that a backend lies in another.
_no_errors() {
	! grep -v 'lies in the backend' "$W/err" || _fail "$1: $(cat "$W/err")"
}

# The script does the same as in the plain directory.
_does() { # outer|inner SCRIPT
	(cd "$W/plain" && sh -c "$2" >"$W/want") || _fail "plain: $2"
	_as "$1" "$2"
	cmp "$W/want" "$W/out" || _fail "$1: $2: $(head -c 200 "$W/out" | tr '\0' .)"
}

_same_everywhere() {
	local who
	for who in outer inner; do
		_does $who 'find . -name .plfs -prune -o -type f -printf "%p %s\n" | LC_ALL=C sort; find . -name .plfs -prune -o -type f -exec md5sum {} + | LC_ALL=C sort'
	done
}

_make='seq 1 30000 >big; seq 1 20 >small; : >empty; seq 1 9000 >d/file; seq 1 9000 >cut; : >cut; truncate -s 3000000 holes; seq 1 400 >>holes'

_read() {
	_does $ONE "$_make"
	_same_everywhere
	_does $OTHER 'ls -l big | cut -d" " -f5; tail -c 5 big; stat -c "%s %b" d/file; cat cut; wc -c <holes'
}
read_by_both() { _both_ways _read; }

# Each command under the other mapping, on files of the one; then both read the same.
_use() {
	local use
	while read -r use; do
		_does $ONE "rm -rf big small empty d cut holes x; mkdir d; $_make"
		_does $OTHER "$use"
		_same_everywhere
	done
}

_changed() {
	_use <<'USES'
echo more >>big; cat big
echo more >>small; seq 1 40000 >>small; cat small
echo first >>empty; echo second >>cut; cat empty cut
exec 3<>big; head -c 3 <&3; printf XYZ >&3; cat big
truncate -s 300 cut; printf XYZ >>cut; cat cut
seq 5 >big; cat big
truncate -s 7 big; cat big
truncate -s 500000 big; truncate -s 70 cut; md5sum big cut
truncate -s 0 big; truncate -s 100 big; md5sum big
fallocate -p -o 10 -l 100 big; md5sum big
USES
}
changed_by_the_other() { _both_ways _changed; }

_named() {
	_use <<'USES'
chmod 600 big; stat -c %a big; cat big
mv big x; cat x
mv big d/x; cat d/x; mv d/file .
cp big x; cat x
ln big d/x; echo more >>d/x; cat big
python3 -c "import mmap; f = open('big', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[1:3] = b'##'; m.flush()"; cat big
exec 3<>big; rm big; cat <&3; echo more >&3
USES
}
renamed_and_removed_by_the_other() { _both_ways _named; }

# One writes and dies, or writes on; the other reads what is there.
_killed() {
	_as $ONE 'exec 2>/dev/null; python3 -c "
import os, signal
f = os.open(\"big\", os.O_WRONLY | os.O_CREAT)
for i in range(5000): os.pwrite(f, b\"%09d\\n\" % i, 10 * i)
g = os.open(\"big2\", os.O_WRONLY | os.O_CREAT)
os.pwrite(g, b\"x\" * 100000, 0)
os.kill(os.getpid(), signal.SIGKILL)
"; true'
	(cd "$W/plain" && seq -f %09.0f 0 4999 >big && head -c 100000 /dev/zero | tr '\0' x >big2)
	# stat(2) of it under the other mapping waits for this, as on another host (plfs.1, size).
	_does $OTHER 'md5sum big big2; exec 3<big; stat -L -c %s /dev/fd/3'
	_does $OTHER 'echo more >>big; md5sum big; exec 3<>big2; head -c 1 <&3'
	_same_everywhere
}
killed_under_one() { _both_ways _killed; }

# Two processes with one mapping see each other's bytes and sizes at once, in a file whose container is in the other backend.
_seen_at_once() {
	_does $ONE "$_make"
	_does $OTHER 'python3 -c "
import os, subprocess
f = os.open(\"big\", os.O_RDWR)
size = os.fstat(f).st_size
for i in range(50):
    os.pwrite(f, b\"%09d\\n\" % i, size + 10 * i)
    got = subprocess.run([\"sh\", \"-c\", \"stat -c %s big; tail -c 10 big\"], stdout=subprocess.PIPE).stdout
    assert got == b\"%d\\n%09d\\n\" % (size + 10 * i + 10, i), (got, i)
"'
	_same_everywhere
}
processes_see_each_other() { _both_ways _seen_at_once; }

# What is removed takes its container with it, wherever that is.
_removed() {
	_does $ONE "$_make"
	_does $OTHER 'rm big small d/file; exec 3<empty; rm empty; cat <&3; echo x >y; mv y cut; rm cut holes'
	_is "containers left" "$(find "$B" -path '*.plfs/??/*' -type d -name '????????????????????????????????')" ""
}
removed_with_the_container() { _both_ways _removed; }

# Out of the inner backend a file is copied; one of the outer moves.
_moved_out() {
	_does $ONE "$_make"
	MAP=$OUTER _under sh -c "cd $PFX && mv run7/big run8/big && mv run7/d run8/d && mv run7/small . && cat run8/big run8/d/file small" >"$W/out"
	[ $rc = 0 ] || _fail "mv: $(cat "$W/err")"
	(cd "$W/plain" && cat big d/file small) | cmp - "$W/out" || _fail "moved out"
	(cd "$W/plain" && rm -r big d/file d small)
	sleep 0.05
	"$BUILD/plfs" gc -a 0 "$B/run7" >/dev/null || _fail "gc"
	"$BUILD/plfs" gc -a 0 "$B" >/dev/null || _fail "gc of the outer"
	MAP=$OUTER _under sh -c "cd $PFX && cat run8/big | md5sum; md5sum <run8/d/file" >"$W/out"
	_is "moved out, after gc" "$(cat "$W/out")" "$(seq 1 30000 | md5sum; seq 1 9000 | md5sum)"
	# The whole inner backend moves, with its .plfs.
	_does outer 'ls -d'
	MAP=$OUTER _under sh -c "cd $PFX && mv run7 run9 && md5sum <run9/holes" >"$W/out"
	_is "moved with its backend" "$(cat "$W/out")" "$(md5sum <"$W/plain/holes")"
}
moved_out_of_the_inner() { _both_ways _moved_out; }

# link(2) and rename(2) of what would lose its container.
_refused() {
	_does inner 'seq 1 30000 >big; mkdir e; seq 1 30000 >e/f'
	_does outer 'seq 1 30000 >ours'
	MAP=$OUTER _under python3 -c "
import os, errno
os.chdir('$PFX')
for call, a, b in ((os.rename, 'run7/big', 'big'), (os.link, 'run7/big', 'run8/big'), (os.rename, 'run7/e', 'e'),
                   (os.rename, '$PFX/run7/e/f', '$B/run8/f')):
    try:
        call(a, b)
        raise SystemExit('%s %s' % (call, a))
    except OSError as e:
        assert e.errno == errno.EXDEV, e
os.rename('run7/ours', 'run8/ours')
os.link('run7/e/f', 'run7/d/f')
os.rename('run7/e/f', 'run7/f')
os.chdir('run7/d')
os.rename('f', '../g')
"
	[ $rc = 0 ] || _fail "$(cat "$W/err")"
	MAP=$OUTER _under md5sum $PFX/run7/g $PFX/run7/f $PFX/run8/ours >"$W/out"
	_is "bytes" "$(cut -d' ' -f1 "$W/out" | sort -u)" "$(seq 1 30000 | md5sum | cut -d' ' -f1)"
}
renames_that_part_a_file_from_its_container() { _both_ways _refused; }

# A backend copied to a place below itself has its own bytes there.
_copied_below() {
	_does outer 'seq 1 30000 >big; seq 1 20 >small'
	cp -a "$B" "$W/copy" && mv "$W/copy" "$B/backup"
	MAP=$OUTER _under sh -c "echo changed 1<>$PFX/run7/big; echo more >>$PFX/backup/run7/big"
	MAP=$OUTER _under md5sum $PFX/backup/run7/big >"$W/out"
	_is "the copy" "$(cut -d' ' -f1 "$W/out")" "$({ seq 1 30000; echo more; } | md5sum | cut -d' ' -f1)"
	MAP=/plfs=$B/backup _under md5sum /plfs/run7/big >"$W/out"
	_is "the copy, mapped" "$(cut -d' ' -f1 "$W/out")" "$({ seq 1 30000; echo more; } | md5sum | cut -d' ' -f1)"
}
copied_below_itself() { _both_ways _copied_below; }

# One line says it when the second is made, and plfs run says it each time.
said_in_one_line() {
	mkdir "$B/run7"
	_under sh -c "echo x >$PFX/run7/f"
	[ ! -s "$W/err" ] || _fail "nothing to say: $(cat "$W/err")"
	MAP=/inner=$B/run7 _under sh -c 'echo x >/inner/g; seq 1 30000 >/inner/h; seq 1 30000 >/inner/i'
	_is "lines" "$(grep -c 'lies in the backend' "$W/err") $(wc -l <"$W/err")" "1 1"
	MAP=/inner=$B/run7 _under sh -c 'seq 1 30000 >/inner/j'
	[ ! -s "$W/err" ] || _fail "said again: $(cat "$W/err")"
	[ -z "$SANITIZED" ] || _skip "plfs run has no sanitizer in front"
	"$BUILD/plfs" run -m "/inner=$B/run7" cat /inner/g >"$W/out" 2>"$W/err"
	_is "plfs run" "$(cat "$W/out") $(grep -c "lies in the backend $B" "$W/err")" "x 1"
	"$BUILD/plfs" run -m "$PFX=$B" cat "$PFX/run7/g" >"$W/out" 2>"$W/err"
	_is "plfs run of the outer" "$(cat "$W/out") $(wc -c <"$W/err")" "x 0"
}

# A container that another user has put in the way is not taken for the file's.
passed_over_if_a_strangers() {
	_need_root
	chmod 1777 "$B"
	mkdir "$B/x" && chown 65533 "$B/x" && chmod 777 "$B/x"
	_user sh -c "seq 1 30000 >$PFX/x/ck"
	local c
	c=$(_container)
	mkdir -p "$B/x/.plfs/$(basename "$(dirname "$c")")"
	cp -r "$c" "$B/x/.plfs/$(basename "$(dirname "$c")")/"
	cp "$B/.plfs/format" "$B/x/.plfs/"
	mv "$c" "$W/kept"
	# As it was copied its files are root's; they are the stranger's, or even the victim's own.
	local whose
	for whose in 65533 65534; do
		chown -R $whose "$B/x/.plfs" && chown 65533 "$B/x/.plfs"
		chmod -R a+rwX "$B/x/.plfs"; chmod 755 "$B/x/.plfs"
		_user cat "$PFX/x/ck" >"$W/out"
		_is "as the victim, containers of $whose" "$rc $(wc -c <"$W/out")" "1 0"
		_under cat "$PFX/x/ck" >"$W/out"
		_is "as root, containers of $whose" "$rc $(wc -c <"$W/out")" "1 0"
	done
	# The victim's own .plfs counts.
	chown 65534 "$B/x/.plfs"
	_user cat "$PFX/x/ck" >"$W/out"
	seq 1 30000 | cmp - "$W/out" || _fail "the victim's own"
}
