# SPDX-License-Identifier: BSD-3-Clause
# Bad input: each is a clear message or errno, and nothing is lost. A case runs by itself in $W, an empty directory, with the
# backend $B below the prefix $PFX, all files as logs; it fails at the first check that does not hold. Exit code 77: cannot run here.

_fail() {
	echo "not so: $*"
	exit 1
}

_skip() {
	echo "$*"
	exit 77
}

# Run under the library; standard error is kept in $W/err and shown, the exit status in $rc.
_under() {
	rc=0
	env LD_PRELOAD="$PRE" PLFS_MAP="${MAP-$PFX=$B{small=0\}}" "$@" 2>"$W/err" || rc=$?
	cat "$W/err" >&2
}

_user() { # the same as an unprivileged user
	rc=0
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		env LD_PRELOAD="$PRE" PLFS_MAP="${MAP-$PFX=$B{small=0\}}" "$@" 2>"$W/err" || rc=$?
	cat "$W/err" >&2
}

_need_root() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to become another user"
	chmod 755 "$W"
	# What an unprivileged user cannot load, it cannot test.
	setpriv --reuid 65534 --regid 65534 --clear-groups test -r "${PRE##*:}" || _skip "another user cannot read ${PRE##*:}"
}

_is() { # WHAT GOT WANT
	[ "$2" = "$3" ] || _fail "$1 is '$2', not '$3'"
}

# The process ended with 78 and one line that holds each of the words, before it did anything.
_refuses() { # MAP WORD...
	local map=$1 word before
	shift
	before=$(find "$B")
	MAP=$map _under sh -c 'echo ran; echo x >'"$W"'/ran' >"$W/out"
	[ $rc = 78 ] || _fail "PLFS_MAP='$map': exit code $rc, not 78"
	[ "$(wc -l <"$W/err")" = 1 ] || _fail "PLFS_MAP='$map': $(wc -l <"$W/err") lines on standard error: $(cat "$W/err")"
	for word in libplfs "$@"; do
		grep -qF -- "$word" "$W/err" || _fail "PLFS_MAP='$map': no '$word' in: $(cat "$W/err")"
	done
	[ ! -e "$W/ran" ] && [ ! -s "$W/out" ] || _fail "PLFS_MAP='$map': the program ran"
	[ "$(find "$B")" = "$before" ] || _fail "PLFS_MAP='$map': something was made"
}

_run() {
	set +e
	B=$W/back
	mkdir "$B" || exit
	"$1"
	exit
}

_container() { # the directory of the only container
	local c
	c=$(find "$B/.plfs" -mindepth 2 -maxdepth 2 -type d)
	[ -d "$c" ] || _fail "one container: $c"
	echo "$c"
}

file_system_mounted_below_a_backend() {
	[ "$(id -u)" = 0 ] && unshare -m true 2>"$W/unshare" || _skip "needs to mount: $(cat "$W/unshare")"
	mkdir "$B/m"
	cat >"$W/inside.sh" <<-'EOF'
		mount -t tmpfs none "$B/m" || exit 77
		env LD_PRELOAD="$PRE" PLFS_MAP="$PFX=$B{small=0}" sh -c '
			echo one >$PFX/m/f && echo two >>$PFX/m/f && cat $PFX/m/f && stat -c "%A %s" $PFX/m/f
			umask 077; set -C; echo three >$PFX/m/g; chmod u-w $PFX/m/g; cat $PFX/m/g; mv $PFX/m/f $PFX/m/h'
		stat -c "%A %s" "$B/m/g"; cat "$B/m/h"
	EOF
	PRE=$PRE PFX=$PFX B=$B unshare -m bash "$W/inside.sh" >"$W/out" 2>&1
	[ $? != 77 ] || _skip "needs to mount: $(cat "$W/out")"
	_is "what is seen there" "$(cat "$W/out")" "$(printf '%s\n' one two '-rw-r--r-- 8' three '-r-------- 6' one two)"
	[ ! -e "$B/.plfs" ] || _fail "a container was made: $(find "$B")"
}

backend_missing() {
	_refuses "$PFX=$W/none" "$W/none"
	_refuses "$W/none" "$W/none"
	_refuses "$PFX=$B,$W/none" "$W/none"
	_refuses "$PFX=$B:/plfs-other=$W/none" "$W/none"
	[ ! -e "$W/none" ] || _fail "it is still missing"
}

backend_is_no_directory() {
	echo text >"$W/file"
	ln -s none "$W/dangling"
	_refuses "$PFX=$W/file" "$W/file"
	_refuses "$W/file" "$W/file"
	_refuses "$PFX=$W/dangling" "$W/dangling"
	_refuses "$PFX=/dev/null" /dev/null
	_is "the file" "$(cat "$W/file")" text
}

mapping_is_nonsense() {
	local map
	for map in = "$PFX=" "=$B" relative "relative=$B" "$PFX=relative" "$PFX==$B" "$PFX=$B=$B" "$PFX=$B:" ":$PFX=$B" "$PFX=$B::" \
		"$PFX=$B,"  "$PFX=,$B" "$PFX=$B{" "$PFX=$B{mode=log" "$PFX=$B}" "$PFX=$B{mode=odd}" "$PFX=$B{odd=1}" "$PFX=$B{mode}" \
		"$PFX=$B{match=}" "$PFX=$B{mode=log}x" "$PFX=$B:$PFX=$B" "/=$B" / "$PFX=/" "{mode=log}" : , "$PFX=$B{mode=log,}" \
		"$PFX=$B{,}" "$PFX=$B{{}}" "$(printf '/%05000d' 0)=$B" "$PFX=$(printf '/%05000d' 0)" ' ' "$PFX $B" "../x=$B"; do
		_refuses "$map"
	done
}

mappings_that_overlap() {
	mkdir "$B/below"
	_refuses "$PFX=$B:$PFX/=$B/below" "$PFX"
	# One inside the other is fine as long as no path has two meanings.
	MAP="$PFX=$B:$PFX-more=$W/more"
	mkdir "$W/more"
	_under sh -c "echo one >$PFX/a; echo two >$PFX-more/a; cat $PFX/a $PFX-more/a" >"$W/out"
	_is output "$(cat "$W/out")" $'one\ntwo'
}

settings_are_nonsense() {
	export PLFS_CONSISTENCY=odd
	_refuses "$PFX=$B" PLFS_CONSISTENCY
	unset PLFS_CONSISTENCY
	export PLFS_VERIFY=odd
	_refuses "$PFX=$B" PLFS_VERIFY
	unset PLFS_VERIFY
	export PLFS_DEBUG=odd
	_refuses "$PFX=$B" PLFS_DEBUG
	PLFS_DEBUG=all@$W/none/x
	_refuses "$PFX=$B" PLFS_DEBUG
	unset PLFS_DEBUG
	export PLFSRC=$W/none
	_refuses "" "$W/none"
	echo "$PFX=$W/missing" >"$W/rc"
	PLFSRC=$W/rc
	_refuses "" "$W/missing"
	printf '# a site\n\n%s\nnonsense\n' "$PFX=$B" >"$W/rc"
	_refuses "" nonsense
	printf '# a site\n\n%s{mode=log}\n' "$PFX=$B" >"$W/rc"
	MAP= _under sh -c "echo x >$PFX/a; cat $PFX/a" >"$W/out"
	_is output "$(cat "$W/out")" x
}

no_mapping_is_no_error() {
	MAP= _under sh -c "echo x >$W/a; cat $W/a" >"$W/out"
	_is "output" "$(cat "$W/out")" x
	env -u PLFS_MAP LD_PRELOAD="$PRE" cat "$W/a" >"$W/out" || _fail "cat ran"
}

backend_inside_a_container_directory() {
	_under sh -c "echo x >$PFX/a"
	_refuses "$PFX=$B/.plfs" .plfs
	_refuses "$B/.plfs" .plfs
	_refuses "$PFX=$(_container)" .plfs
	_refuses "/plfs-other=$B:$PFX=$B/.plfs" .plfs
	_under cat "$PFX/a" >"$W/out"
	_is content "$(cat "$W/out")" x
}

backend_not_writable() {
	_need_root
	chmod 755 "$B"
	_under sh -c "echo x >$PFX/a"
	_user sh -c "cat $PFX/a; echo y >>$PFX/a" >"$W/out"
	_is content "$(cat "$W/out")" x
	grep -q 'Permission denied' "$W/err" || _fail "permission is denied: $(cat "$W/err")"
	_user sh -c "echo y >$PFX/new"
	grep -qi 'Permission denied' "$W/err" || _fail "permission is denied to make a file"
	_user sh -c "rm -f $PFX/a"
	grep -qi 'Permission denied' "$W/err" || _fail "permission is denied to remove a file"
	rm -rf "$B/.plfs" "$B/a"
	_user sh -c "ls $PFX; echo y >$PFX/new"
	grep -qi 'Permission denied' "$W/err" || _fail "permission is denied in a backend that was never used"
	[ ! -e "$B/.plfs" ] || _fail "nothing was made"
}

backend_not_searchable() {
	_need_root
	_under sh -c "echo x >$PFX/a"
	chmod 700 "$B"
	_user sh -c "cat $PFX/a" >"$W/out"
	[ $rc != 0 ] || _fail "an error"
	chmod 755 "$B"
	_user sh -c "cat $PFX/a" >"$W/out"
	_is content "$(cat "$W/out")" x
}

small_files_of_two_users() {
	_need_root
	chmod 1777 "$B"
	MAP=$PFX=$B
	_under sh -c "umask 0; echo root >$PFX/r; echo both >$PFX/both"
	_user sh -c "umask 0; echo user >$PFX/u; echo user >>$PFX/both; cat $PFX/r $PFX/both" >"$W/out"
	[ ! -s "$W/err" ] || _fail "no message"
	_is "what the user reads" "$(cat "$W/out")" $'root\nboth\nuser'
	_under sh -c "echo root >>$PFX/both; chmod 600 $PFX/r $PFX/both; cat $PFX/both" >"$W/out"
	_is "what root reads" "$(cat "$W/out")" $'both\nuser\nroot'
	_user sh -c "cat $PFX/r; echo x >>$PFX/both" >"$W/out"
	[ $rc != 0 ] && [ ! -s "$W/out" ] || _fail "no reading"
	_under sh -c "head -c 70000 /dev/zero >>$PFX/u" # from here on in logs
	_user sh -c "echo end >>$PFX/u; tail -c 4 $PFX/u" >"$W/out"
	_is "the user's end" "$(cat "$W/out")" end
	[ -z "$(find "$B" -name 'data.*' -perm /022)" ] || _fail "logs that others could write"
}

shared_backend_of_two_users() {
	_need_root
	chmod 1777 "$B"
	_under sh -c "umask 0; echo root >$PFX/r; echo both >$PFX/both"
	_user sh -c "umask 0; echo user >$PFX/u; echo user >>$PFX/both; cat $PFX/r $PFX/both" >"$W/out"
	[ ! -s "$W/err" ] || _fail "no message"
	_is "what the user reads" "$(cat "$W/out")" $'root\nboth\nuser'
	_under sh -c "echo root >>$PFX/both; echo root >>$PFX/u; cat $PFX/both $PFX/u" >"$W/out"
	_is "what root reads" "$(cat "$W/out")" $'both\nuser\nroot\nuser\nroot'
	_under sh -c "rm $PFX/u; chmod 600 $PFX/r $PFX/both; cat $PFX/both" >"$W/out"
	_user sh -c "cat $PFX/r" >"$W/out"
	[ $rc != 0 ] && [ ! -s "$W/out" ] || _fail "no reading"
	find "$B/.plfs" -type f -name 'data.*' -uid 0 >"$W/logs"
	[ -s "$W/logs" ] || _fail "root's logs"
	while read -r log; do
		setpriv --reuid 65534 --regid 65534 --clear-groups head -c 1 "$log" 2>/dev/null | grep -q . &&
			_fail "another's data is not to be had from the logs either: $(ls -l "$log")"
	done <"$W/logs"
	_user sh -c "rm -f $PFX/r"
	_under sh -c "cat $PFX/r" >"$W/out"
	_is "root's file" "$(cat "$W/out")" root
}

read_only_backend() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	_under sh -c "echo x >$PFX/a"
	export B PFX PRE W
	unshare -m bash -c '. "$HERE/bad.bash"; mount --bind "$B" "$B" && mount -o remount,ro,bind "$B" || exit 77
		_under sh -c "cat $PFX/a; echo y >$PFX/b; echo z >>$PFX/a" >"$W/out"
		_is content "$(head -n 1 "$W/out")" x
		[ "$(grep -c "Read-only file system" "$W/err")" = 2 ] || _fail "read-only: $(cat "$W/err")"'
}

# In a small tmpfs: everything that a write acknowledged reads back, and writing goes on when there is room again.
backend_full() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount a small file system"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	export B PFX PRE W
	unshare -m bash -c '. "$HERE/bad.bash"; mount -t tmpfs -o size=8m none "$B" || exit 77; _full'
}

backend_full_ext4() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount a small file system"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	export B PFX PRE W
	truncate -s 24M "$W/disk"
	mkfs.ext4 -q -N 512 -O ^has_journal "$W/disk" 2>/dev/null || _skip "no mkfs.ext4"
	unshare -m bash -c '. "$HERE/bad.bash"; mount -o loop "$W/disk" "$B" 2>/dev/null || _skip "no loop devices"; _full'
}

_full() {
	cat >"$W/fill.py" <<'END'
import errno, os, sys
path, limit, block = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fd = os.open(path, os.O_RDWR | os.O_CREAT)
done, seen = os.lseek(fd, 0, os.SEEK_END), 'no error'
start = done
try:
    while done - start < limit:
        data = bytes((done + i) * 7 % 251 for i in range(block))
        done += os.write(fd, data)
except OSError as e:
    seen = errno.errorcode[e.errno]
ok = os.pread(fd, done, 0)
print(seen, done == os.fstat(fd).st_size, len(ok) == done and all(ok[o] == o * 7 % 251 for o in range(0, done, 13)))
try:
    os.fsync(fd)
except OSError as e: # what is staged finds no room in the log; it is kept where it is
    seen == 'ENOSPC' and e.errno == errno.ENOSPC or print('fsync', errno.errorcode[e.errno])
try:
    os.close(fd)
    print('closed')
except OSError as e:
    print(errno.errorcode[e.errno])
END
	cat >"$W/check.py" <<'END'
import sys
data = open(sys.argv[1], 'rb').read()
print(len(data) > int(sys.argv[2]), all(data[o] == o * 7 % 251 for o in range(len(data))))
END
	local block
	for block in 700 50000; do
		head -c 2000000 /dev/zero >"$B/plain-ballast"
		_under python3 "$W/fill.py" $PFX/f$block 60000000 $block >"$W/out"
		_is "filling with blocks of $block" "$(cat "$W/out")" $'ENOSPC True True\nclosed'
		_under python3 "$W/check.py" $PFX/f$block 10000 >"$W/out"
		_is "read back by another process" "$(cat "$W/out")" "True True"
		_under sh -c "echo x >$PFX/other" >"$W/out"
		rm "$B/plain-ballast"
		_under python3 "$W/fill.py" $PFX/f$block 50000 $block >"$W/out"
		_is "with room again" "$(cat "$W/out")" $'no error True True\nclosed'
		_under python3 "$W/check.py" $PFX/f$block 60000 >"$W/out"
		_is "read back by another process" "$(cat "$W/out")" "True True"
		_under rm $PFX/f$block
	done
	_under sh -c "echo small >$PFX/small; cat $PFX/small" >"$W/out"
	_is "a small file at the end" "$(cat "$W/out")" small
}

# What a full disk does not take stays where it came from: in the pipe, behind the offset.
copies_to_a_full_backend() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount a small file system"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	export B PFX PRE W
	cat >"$W/copies.py" <<'END'
import errno, os, sys
prefix, outside = sys.argv[1:]
def byte(o): return o * 7 % 251
def check(name, fd, took):
    data = os.pread(fd, took + 1, 0)
    print(name, os.fstat(fd).st_size == took, len(data) == took and all(data[o] == byte(o) for o in range(0, took, 7)))
def fill(name, step):
    fd = os.open(prefix + '/f', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    took = 0
    try:
        while n := step(fd):
            took += n
        print('no error')
    except OSError as e:
        print(errno.errorcode[e.errno])
    check(name, fd, took)
    os.unlink(prefix + '/f')
    os.close(fd)
    return took
r, w = os.pipe()
sent = 0
def through_the_pipe(fd):
    global sent
    sent += os.write(w, bytes(byte(sent + i) for i in range(20000)))
    return os.splice(r, fd, 20000)
took = fill('splice', through_the_pipe)
left = os.read(r, 100000)
print(took + len(left) == sent, len(left) > 0, all(left[i] == byte(took + i) for i in range(len(left))))
with open(outside, 'wb') as f:
    f.write(bytes(byte(i) for i in range(251)) * 130000)
a = os.open(outside, os.O_RDONLY)
took = fill('sendfile', lambda fd: os.sendfile(fd, a, None, 3000000))
print(os.lseek(a, 0, os.SEEK_CUR) == took)
END
	unshare -m bash -c '. "$HERE/bad.bash"; mount -t tmpfs -o size=12m none "$B" || exit 77
		_under python3 "$W/copies.py" $PFX "$W/outside" >"$W/out"
		_is "what was copied" "$(cat "$W/out")" "ENOSPC
splice True True
True True True
ENOSPC
sendfile True True
True"'
}

container_is_gone() {
	_under sh -c "echo content >$PFX/a"
	rm -r "$(_container)"
	_under cat $PFX/a >"$W/out"
	_is "exit code" $rc 1
	grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	grep '^libplfs' "$W/err" | grep -q "$B/a\|$PFX/a" || _fail "a line names the file: $(cat "$W/err")"
	_under ls -l $PFX >"$W/out"
	_is "ls" $rc 0
	_under rm $PFX/a
	[ $rc = 0 ] && [ ! -e "$B/a" ] || _fail "it can be removed"
}

one_log_is_missing() {
	_under sh -c "echo first >$PFX/a"
	_under sh -c "echo second >>$PFX/a"
	rm "$(find "$B/.plfs" -name 'data.*' | sort | head -n 1)"
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err" "$W/out")"
	grep '^libplfs' "$W/err" | grep -q data || _fail "a line names the log: $(cat "$W/err")"
	grep -q . <<<"$(tr -d '\0' <"$W/out" | grep -v '^second$\|^libplfs\|^cat:')" && _fail "no other bytes: $(cat "$W/out")"
	[ "$(find "$B/.plfs" -name 'data.*')" ] || _fail "the other log is still there"
}

log_is_cut_short() {
	_under sh -c "seq 1 5000 >$PFX/a"
	local log
	log=$(find "$B/.plfs" -name 'data.*')
	truncate -s $(($(stat -c %s "$log") - 8000)) "$log"
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	grep '^libplfs' "$W/err" | grep -q data || _fail "a line names the log: $(cat "$W/err")"
	cmp -n $(($(grep -v '^libplfs\|^cat:' "$W/out" | wc -c) / 4096 * 4096)) "$W/out" <(seq 1 5000) || _fail "no wrong bytes"
}

log_is_unreadable() {
	_need_root
	chmod 755 "$B"
	_under sh -c "echo content >$PFX/a"
	find "$B/.plfs" -name 'data.*' -exec chmod 000 {} +
	_user cat $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "an error: $(cat "$W/out")"
	grep -q 'Permission denied\|Input/output error' "$W/err" || _fail "an errno: $(cat "$W/err")"
	find "$B/.plfs" -name 'data.*' -exec chmod 644 {} +
	_user cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

index_is_damaged() {
	_under sh -c "seq 1 5000 >$PFX/a"
	local index
	index=$(find "$B/.plfs" -name 'index.*' | head -n 1)
	printf 'XXXXXXXX' | dd of="$index" bs=1 seek=20 conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	if [ $rc = 0 ]; then
		seq 1 5000 | cmp - "$W/out" || _fail "wrong bytes"
	else
		grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
		grep '^libplfs' "$W/err" | grep -q index || _fail "a line names the index: $(cat "$W/err")"
	fi
}

index_is_missing() {
	_under sh -c "seq 1 5000 >$PFX/a"
	find "$B/.plfs" -name 'index.*' -delete
	_under cat $PFX/a >"$W/out"
	if [ $rc = 0 ]; then
		seq 1 5000 | cmp - "$W/out" || _fail "wrong bytes: $(head -c 100 "$W/out" | od -c | head -n 3)"
	else
		grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	fi
}

newer_stub() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$W/copy"
	printf '\2' | dd of="$B/a" bs=1 seek=8 conv=notrunc status=none # the version
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "an error: $(cat "$W/out")"
	grep -q "^libplfs.*$B/a\|^libplfs.*$PFX/a" "$W/err" || _fail "a line names it: $(cat "$W/err")"
	_under sh -c "echo more >>$PFX/a"
	[ $rc != 0 ] || _fail "no writing"
	_under sh -c ": >$PFX/a"
	[ $rc != 0 ] || _fail "no truncating"
	dd if="$W/copy" of="$B/a" conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

unknown_feature_of_a_stub() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$W/copy"
	printf '\200' | dd of="$B/a" bs=1 seek=23 conv=notrunc status=none # incompatible features
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "an error: $(cat "$W/out")"
	dd if="$W/copy" of="$B/a" conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

newer_backend() {
	_under sh -c "echo content >$PFX/a"
	local format=$B/.plfs/format
	cp -p "$format" "$W/format"
	sed -i 's/^plfs-format 1/plfs-format 2/' "$format"
	cmp -s "$format" "$W/format" && _fail "the format file has a version"
	chmod "$(stat -c %a "$W/format")" "$format"
	_under sh -c "echo more >$PFX/b"
	[ $rc != 0 ] || _fail "an error"
	grep -q '^libplfs.*format' "$W/err" || _fail "a line says why: $(cat "$W/err")"
	_under cat $PFX/a >"$W/out"
	[ $rc = 0 ] && [ "$(cat "$W/out")" != content ] && _fail "right bytes or none"
	cat "$W/format" >"$format"
	_under sh -c "cat $PFX/a; echo x >$PFX/c; cat $PFX/c" >"$W/out"
	_is content "$(cat "$W/out")" $'content\nx'
}

garbage_format_file() {
	_under sh -c "echo content >$PFX/a"
	head -c 300 /dev/urandom >"$B/.plfs/format"
	_under sh -c "echo more >$PFX/b"
	[ $rc != 0 ] || _fail "an error"
	grep -q '^libplfs.*format' "$W/err" || _fail "a line says why: $(cat "$W/err")"
	[ -d "$(_container)" ] || _fail "the container is still there"
}

garbage_stub() {
	head -c 9000 /dev/urandom >"$B/g"
	chmod 1644 "$B/g"
	cp -p "$B/g" "$W/copy"
	_under cat $PFX/g >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	grep -q "^libplfs.*/g" "$W/err" || _fail "a line names it: $(cat "$W/err")"
	_under sh -c "echo more >>$PFX/g"
	[ $rc != 0 ] || _fail "no writing"
	_under ls -l $PFX >"$W/out"
	_is ls $rc 0
	cmp "$B/g" "$W/copy" || _fail "it is untouched"
	_under rm $PFX/g
	[ ! -e "$B/g" ] || _fail "it can be removed"
}

half_a_stub() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$W/copy"
	printf 'XX' | dd of="$B/a" bs=1 seek=30 conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO for a wrong checksum: $(cat "$W/err")"
	dd if="$W/copy" of="$B/a" conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

plain_files_stay_plain() {
	echo plain >"$B/p"
	mkdir "$B/d"
	echo PLFSTUB1 >"$B/d/almost"
	_under sh -c "cat $PFX/p $PFX/d/almost; echo more >>$PFX/p; stat -c %s $PFX/p; cp $PFX/p $PFX/copy; cat $PFX/copy" >"$W/out"
	_is output "$(cat "$W/out")" $'plain\nPLFSTUB1\n11\nplain\nmore'
	_is "the file without the library" "$(cat "$B/p")" $'plain\nmore'
}

bytes_by_another_road_are_the_oldest_layer() {
	_under sh -c "printf 0123456789 >$PFX/a; printf AB | dd of=$PFX/a bs=1 seek=4 conv=notrunc status=none"
	printf xyz | dd of="$B/a" bs=1 seek=$((4096 + 12)) conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(tr '\0' . <"$W/out")" "0123AB6789..xyz"
}

copied_stub_without_the_library() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$B/b"
	cp "$B/a" "$W/note"
	grep -aq 'plfs flatten' "$W/note" || _fail "a stub explains itself"
	_under cat $PFX/a $PFX/b >"$W/out"
	_is content "$(cat "$W/out")" $'content\ncontent'
}

socket_with_a_longer_name_behind_it() {
	local long=$B/$(printf '%0100d' 0)
	mkdir "$long"
	MAP=$PFX=$long _under python3 -c '
import os, socket, sys
p = sys.argv[1] + "/socket"
s, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
s.bind(p)
s.listen(1)
c.connect(p)
s.accept()[0].send(b"x")
print(c.recv(1), os.listdir(sys.argv[1]))
n = "n" * 60 + "m" * 30
try:
    socket.socket(socket.AF_UNIX).bind(sys.argv[1] + "/" + n)
except OSError as e:
    print(e.errno)
' "$PFX" >"$W/out"
	_is "what came" "$(paste -sd' ' "$W/out")" "b'x' ['socket'] 36"
	[ -S "$long/socket" ] || _fail "the socket is in the backend"
}

program_that_may_be_executed_but_not_read() {
	_need_root
	_under sh -c "cp /bin/echo $PFX/e; chmod 711 $PFX/e"
	PLFS_DEBUG=refuse _user env $PFX/e never
	_is "exit code" "$rc" 126
	grep -q "refuse.*EACCES" "$W/err" || _fail "no line that says why: $(cat "$W/err")"
	[ -k "$B/e" ] || _fail "it is still logical"
	_under env $PFX/e once >"$W/out"
	_user env $PFX/e plain >>"$W/out"
	_is "what was said" "$(paste -sd' ' "$W/out")" "once plain"
}

library_by_the_name_of_a_prefix_that_does_not_exist() {
	_under sh -c "cd $PFX && echo 'int x = 1;' | gcc -shared -fPIC -o libx.so -x c - && echo 'extern int x; int main(void) { return x; }' |
		gcc -o main -x c - -L. -lx -Wl,-rpath,$PFX"
	_under env $PFX/main
	grep -q "shared libraries: libx.so" "$W/err" || _fail "the loader does not say what it misses"
	_is "exit code" "$rc" 127
	_under env LD_LIBRARY_PATH=$PFX $PFX/main
	_is "exit code with LD_LIBRARY_PATH" "$rc" 127
	_under env LD_LIBRARY_PATH=$B $PFX/main
	_is "exit code by the backend's name" "$rc" 1
}

spawn_attribute_of_a_later_library() {
	cat >"$W/spawn.c" <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	posix_spawnattr_init(&attr);
	*(short *)&attr = 0x100; /* of glibc 2.39; this one's setter would refuse it */
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, argv[1], O_WRONLY | O_CREAT, 0644);
	puts(strerrorname_np(posix_spawn(&(pid_t){0}, "/bin/true", &fa, &attr, argv, NULL)));
	return argc - 2;
}
END
	gcc -w -o "$W/spawn" "$W/spawn.c"
	PLFS_DEBUG=refuse _under "$W/spawn" $PFX/out >"$W/out"
	_is "the error" "$(cat "$W/out")" EINVAL
	grep -q "refuse.*posix_spawn" "$W/err" || _fail "no line that says why: $(cat "$W/err")"
	[ ! -e "$B/out" ] || _fail "something was made"
}

# What goes with a close goes with the exec that closes the library's descriptors.
record_locks_end_with_exec() {
	cat >"$W/locks.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
static int fd;
static void look(const char *when)
{
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (!fork()) {
		fcntl(fd, F_GETLK, &lk);
		printf("%s: %s\n", when, lk.l_type == F_UNLCK ? "none" : "locked");
		exit(0);
	}
	wait(NULL);
}
int main(int argc, char **argv)
{
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (argc == 4) {
		fd = atoi(argv[3]);
		look("after exec");
		return flock(open(argv[2], O_RDONLY), LOCK_EX | LOCK_NB) ? 0 : 1;
	}
	fd = open(argv[2], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || fcntl(fd, F_SETLK, &lk) || flock(fd, LOCK_EX))
		return 2;
	look("before");
	snprintf(argv[1], 2, "%d", fd);
	execl("/proc/self/exe", argv[0], "again", argv[2], argv[1], (char *)NULL);
	return 3;
}
END
	gcc -w -o "$W/locks" "$W/locks.c"
	PLFS_DEBUG=refuse _under "$W/locks" number $PFX/a >"$W/out"
	_is "the exit code (3: no exec, 1: no flock any more)" $rc 0
	_is "what it says" "$(cat "$W/out")" $'before: locked\nafter exec: none'
	grep -q "refuse.*record locks" "$W/err" || _fail "no line that says so: $(cat "$W/err")"
}
