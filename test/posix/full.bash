# SPDX-License-Identifier: BSD-3-Clause
# A backend that is full: what a write acknowledged reads back, and writing goes on when there is room again.
. "$HERE/alone.bash"

# In a small tmpfs: everything that a write acknowledged reads back, and writing goes on when there is room again.
backend_full() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount a small file system"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	export B PFX PRE W
	unshare -m bash -c '. "$HERE/full.bash"; mount -t tmpfs -o size=8m none "$B" || exit 77; _full'
}

backend_full_ext4() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount a small file system"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	export B PFX PRE W
	truncate -s 24M "$W/disk"
	mkfs.ext4 -q -N 512 -O ^has_journal "$W/disk" 2>/dev/null || _skip "no mkfs.ext4"
	unshare -m bash -c '. "$HERE/full.bash"; mount -o loop "$W/disk" "$B" 2>/dev/null || _skip "no loop devices"; _full'
}

_full() {
	cat >"$W/fill.py" <<'END'
import errno, os, sys
path, limit, block = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pattern = bytes(i * 7 % 251 for i in range(251)) * (block // 251 + 2)
fd = os.open(path, os.O_RDWR | os.O_CREAT)
done, seen = os.lseek(fd, 0, os.SEEK_END), 'no error'
start = done
try:
    while done - start < limit:
        done += os.write(fd, pattern[done % 251:][:block])
except OSError as e:
    seen = errno.errorcode[e.errno]
ok = os.pread(fd, done, 0)
print(seen, done == os.fstat(fd).st_size, ok == (pattern * (done // len(pattern) + 1))[:done])
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
pattern = bytes(i * 7 % 251 for i in range(251)) * (len(data) // 251 + 1)
print(len(data) > int(sys.argv[2]), data == pattern[:len(data)])
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
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
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
    n = libc.splice(r, None, fd, None, ctypes.c_size_t(20000), 0) # os.splice() is of Python 3.10
    if n < 0:
        raise OSError(ctypes.get_errno(), 'splice')
    return n
took = fill('splice', through_the_pipe)
left = os.read(r, 100000)
print(took + len(left) == sent, len(left) > 0, all(left[i] == byte(took + i) for i in range(len(left))))
with open(outside, 'wb') as f:
    f.write(bytes(byte(i) for i in range(251)) * 130000)
a = os.open(outside, os.O_RDONLY)
took = fill('sendfile', lambda fd: os.sendfile(fd, a, None, 3000000))
print(os.lseek(a, 0, os.SEEK_CUR) == took)
END
	unshare -m bash -c '. "$HERE/full.bash"; mount -t tmpfs -o size=12m none "$B" || exit 77
		_under python3 "$W/copies.py" $PFX "$W/outside" >"$W/out"
		_is "what was copied" "$(cat "$W/out")" "ENOSPC
splice True True
True True True
ENOSPC
sendfile True True
True"'
}

# A descriptor that the library has no room to look behind, or that has no name, is of no use: it must not be the stub.
_no_stub_behind() { # COMMAND...: what reads and writes descriptor 5
	seq 1 30000 >"$W/want"
	_under sh -c "cat $W/want >$PFX/a; cat $W/want >$PFX/b"
	_under "$@" >"$W/out"
	grep -qa PLFSTUB "$W/out" && _fail "it reads the stub"
	grep -q 'libplfs: .* descriptor 5, but cannot be opened ([A-Z][A-Za-z ]*): calls with it say EBADF' "$W/err" || _fail "a line: $(cat "$W/err")"
	_under cat $PFX/a >"$W/out"
	cmp "$W/out" "$W/want" || _fail "the file has lost bytes"
}

no_descriptor_for_an_inherited_file() {
	_no_stub_behind sh -c "exec 5<>$PFX/a; ulimit -n 6; exec sh -c 'head -c 8 <&5; echo X >&5'"
}

no_proc_for_an_inherited_file() {
	_need_root
	unshare -m umount -l /proc 2>"$W/unshare" || _skip "needs to mount: $(cat "$W/unshare")"
	_no_stub_behind sh -c "exec 5<>$PFX/a; exec unshare -m sh -c 'umount -l /proc; exec sh -c \"head -c 8 <&5; echo X >&5\"'"
}

# It may be anybody's plain file, with the sticky bit.
no_proc_for_a_sticky_file_that_only_writes() {
	_need_root
	unshare -m umount -l /proc 2>"$W/unshare" || _skip "needs to mount: $(cat "$W/unshare")"
	echo one >"$W/sticky"
	chmod +t "$W/sticky"
	_under unshare -m sh -c "umount -l /proc; exec 6>>$W/sticky; exec sh -c 'echo two >&6'"
	_is "the file" "$(cat "$W/sticky")" $'one\ntwo'
}
