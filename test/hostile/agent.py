# SPDX-License-Identifier: BSD-3-Clause
"""
A process of one user, which carries out calls for the driver: a line of JSON in, a line of JSON out. Victims
run it under the library; the hostile user runs it without, and with it. It decides and judges nothing.
Answers: {"ok": RESULT} or {"errno": NAME}. Bytes are strings of the characters 0 to 255.
"""

import errno
import fcntl
import json
import os
import shutil
import signal
import struct
import sys
import time

fds = {}
held = []  # children that hold locks
loops = []  # children that move names, or write, until they are stopped
copy_max = 1 << 20


def text(data):
    return data.decode("latin-1")


def data_of(string):
    return string.encode("latin-1")


# ---- what victims do ----


def v_open(slot, path, flags, mode):
    v_close(slot)
    fds[slot] = os.open(path, flags | os.O_CLOEXEC, mode)
    return fds[slot]


def v_close(slot):
    if slot in fds:
        os.close(fds.pop(slot))


def v_pwrite(slot, data, off):
    return os.pwrite(fds[slot], data_of(data), off)


def v_append(slot, data):
    return os.write(fds[slot], data_of(data))


def v_pread(slot, size, off):
    return text(os.pread(fds[slot], size, off))


def v_size(slot):
    return os.fstat(fds[slot]).st_size


def v_ftruncate(slot, size):
    os.ftruncate(fds[slot], size)


def v_mapped(slot, data, off):
    """Bytes that are there already are written over through a shared mapping."""
    import mmap

    size = os.fstat(fds[slot]).st_size
    if size < off + len(data):
        return 0
    with mmap.mmap(fds[slot], size) as m:
        m[off : off + len(data)] = data_of(data)
        m.flush()
    return len(data)


def v_fsync(slot):
    os.fsync(fds[slot])


def v_stat(path):
    return os.stat(path).st_size


def v_truncate(path, size):
    os.truncate(path, size)


def v_rename(old, new):
    os.rename(old, new)


def v_unlink(path):
    os.unlink(path)


def v_chmod(path, mode):
    os.chmod(path, mode)


def v_chown(path, uid):
    os.chown(path, uid, -1, follow_symlinks=False)


def v_mkdir(path, mode):
    os.mkdir(path)
    os.chmod(path, mode)


def v_list(path):
    return len(os.listdir(path))


# Whether some bytes of a file that this user may open hold the secret.
def holds(path, secret):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        data = b""
        for _ in range(64):
            piece = os.read(fd, 1 << 16)
            data = data[-64:] + piece
            if secret in data:
                return True
            if not piece:
                break
        return False
    finally:
        os.close(fd)


def v_grep(root, secret, skip):
    """The files below root that this user can open and that hold the secret."""
    found = []
    for where, dirs, files in os.walk(root):
        dirs[:] = [d for d in dirs if not os.path.islink(os.path.join(where, d)) and len(where) < 3000]
        for name in files:
            path = os.path.join(where, name)
            try:
                if not any(path.startswith(s) for s in skip) and holds(path, data_of(secret)):
                    found.append(path)
            except OSError:
                pass
    return found


def v_writable(paths):
    """Those of the paths, and of what is below, that this user may write."""
    found = []
    for top in paths:
        below = [os.path.join(where, n) for where, dirs, files in os.walk(top) for n in dirs + files]
        found += [p for p in [top] + below if not os.path.islink(p) and os.access(p, os.W_OK)]
    return found


# ---- what the hostile user does with the kernel alone ----


def libc():
    import ctypes

    return ctypes.CDLL(None, use_errno=True), ctypes


def b_rename(old, new):
    os.rename(old, new)


def b_exchange(one, other):
    lib, ctypes = libc()
    if lib.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):
        raise OSError(ctypes.get_errno(), "renameat2")


def b_link(old, new):
    os.link(old, new, follow_symlinks=False)


def b_symlink(target, path):
    os.symlink(target, path)


def b_mkfifo(path):
    os.mkfifo(path)
    os.chmod(path, 0o666)


def b_mkdir(path, mode):
    os.mkdir(path)
    os.chmod(path, mode)


def b_unlink(path):
    os.unlink(path)


def b_rmdir(path):
    os.rmdir(path)


def b_rmtree(path):
    shutil.rmtree(path, ignore_errors=True)


def writable(path):
    return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)


def b_create(path, mode, data, size):
    if data.startswith("INDEX:"):
        from forge import huge_index

        data = text(huge_index(*map(int, data.split(":")[1:])))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    os.write(fd, data_of(data))
    if size > len(data):
        os.ftruncate(fd, size)
    os.fchmod(fd, mode)
    os.close(fd)


def b_write(path, off, data):
    fd = writable(path)
    try:
        os.pwrite(fd, data_of(data), off)
    finally:
        os.close(fd)


def b_truncate(path, size):
    fd = writable(path)
    try:
        os.ftruncate(fd, size)
    finally:
        os.close(fd)


def b_chmod(path, mode):
    os.chmod(path, mode)


def b_utime(path, when):
    os.utime(path, (when, when))


def b_acl(path, which, uid, perm):
    entries = [(1, 7, -1), (2, perm, uid), (4, 7, -1), (16, 7, -1), (32, 7, -1)]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", t, p, i & 0xFFFFFFFF) for t, p, i in entries)
    os.setxattr(path, "system.posix_acl_" + which, value)


def b_many(path, start, nr):
    """So many empty files, or directories in each other whose path is longer than any call takes."""
    if start == "deep":
        fd = os.open(path, os.O_DIRECTORY)
        for _ in range(nr):
            os.mkdir("d" * 200, 0o777, dir_fd=fd)
            below = os.open("d" * 200, os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(fd)
        return
    for i in range(nr):
        os.close(os.open(f"{path}/{start}{i}", os.O_CREAT | os.O_WRONLY, 0o666))


def patched(data, old_id, new_id, fix):
    if not old_id:
        return data
    from forge import with_id

    return with_id(data, bytes.fromhex(old_id), bytes.fromhex(new_id)) if fix else data


def b_copy(src, dst, old_id, new_id):
    """A copy whose headers name another container, with right checksums."""
    fd = os.open(src, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        data = os.read(fd, copy_max)
        mode = os.fstat(fd).st_mode & 0o7777
    finally:
        os.close(fd)
    fd = os.open(dst, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    os.write(fd, patched(data, old_id, new_id, True))
    try:
        os.fchmod(fd, mode | 0o644)
    finally:
        os.close(fd)


def b_copytree(src, dst, old_id, new_id):
    if not os.path.isdir(dst):
        os.mkdir(dst)
        os.chmod(dst, 0o777)
    for name in os.listdir(src):
        one, other = os.path.join(src, name), os.path.join(dst, name)
        if os.path.islink(one):
            continue
        if os.path.isdir(one):
            b_copytree(one, other, old_id, new_id)
        elif os.path.isfile(one):
            b_copy(one, other, old_id, new_id)


# ---- children of the hostile user: locks, and loops that run beside the victims ----


def child(function, ready=None):
    """A child that ends with this process, or by SIGTERM. ready: it reports that it has what it wants."""
    lib, _ = libc()
    r, w = os.pipe()
    pid = os.fork()
    if pid:
        os.close(w)
        said = os.read(r, 64) if ready else b"+"
        os.close(r)
        if said[:1] != b"+":
            os.waitpid(pid, 0)
            raise OSError(int(said or b"5"), "child")
        return pid
    lib.prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        function(w)
    except OSError as e:
        os.write(w, b"%d" % e.errno)
    os._exit(0)


LOCKS = {"rd": fcntl.F_RDLCK, "wr": fcntl.F_WRLCK}


def b_hold(path, how, start, size):
    def hold(w):
        flags = os.O_NONBLOCK | os.O_NOFOLLOW
        fd = os.open(path, flags | (os.O_RDWR if how[-2:] == "wr" and "lease" not in how else os.O_RDONLY))
        kind, _, sort = how.partition("-")
        if kind == "flock":
            fcntl.flock(fd, fcntl.LOCK_NB | (fcntl.LOCK_EX if sort == "ex" else fcntl.LOCK_SH))
        elif kind == "lease":
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, LOCKS[sort])
        else:
            command = {"posix": fcntl.F_SETLK, "ofd": 37}[kind]
            fcntl.fcntl(fd, command, struct.pack("hhqqi4x", LOCKS[sort], 0, start, size, 0))
        os.write(w, b"+")
        while True:
            signal.pause()

    held.append(child(hold, True))


def stop(children):
    for pid in children:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    del children[:]


def b_release():
    stop(held)


def b_stop():
    stop(loops)


def quietly(function, *args):
    try:
        function(*args)
        return True
    except OSError:
        return False


def swap_loop(one, other, pause):
    state = {"swapped": False, "stop": False}
    signal.signal(signal.SIGTERM, lambda *_: state.update(stop=True))
    while not state["stop"]:
        if quietly(b_exchange, one, other):
            state["swapped"] = not state["swapped"]
        if pause:
            time.sleep(pause)
    if state["swapped"]:
        quietly(b_exchange, one, other)


def b_loop_swap(one, other, pause):
    loops.append(child(lambda _: swap_loop(one, other, pause)))


def b_loop_trap(watched, bait, *pairs):
    """When a name appears there, others are exchanged for a moment, and bait has a file of that name."""

    def trap(_):
        before = set(os.listdir(watched))
        while True:
            try:
                new = set(os.listdir(watched)) - before
            except OSError:
                continue
            if new:
                quietly(b_create, f"{bait}/{list(new)[0]}", 0o666, "\xb0 forged by B", 0)
                swapped = [p for p in zip(pairs[::2], pairs[1::2]) if quietly(b_exchange, *p)]
                time.sleep(0.005)
                for pair in swapped:
                    quietly(b_exchange, *pair)
                before |= new

    loops.append(child(trap))


def b_loop_write(path, size, seed):
    """Writes over a file, and cuts and extends it, all the time."""

    def write(_):
        state = seed
        while True:
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            kind, at = state >> 8 & 7, (state >> 11) % max(size, 1)
            if kind == 0:
                quietly(b_truncate, path, at)
            elif kind == 1:
                quietly(b_truncate, path, size)
            else:
                quietly(b_write, path, at & ~7, text(bytes([0x80 | state >> 16 & 0x7F])) * (1 << kind))
            time.sleep(0.0002)

    loops.append(child(write))


def b_loop_spy(paths, secret, report):
    """Opens whatever appears there; what holds the secret is reported in a file."""

    def spy(_):
        while True:
            for path in paths:
                try:
                    for name in os.listdir(path):
                        if quietly(os.stat, f"{path}/{name}") and holds(f"{path}/{name}", data_of(secret)):
                            os.close(os.open(report, os.O_CREAT | os.O_WRONLY, 0o600))
                            b_write(report, 0, f"{path}/{name}")
                except OSError:
                    pass

    loops.append(child(spy))


def main():
    os.umask(0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    for line in sys.stdin.buffer:
        op, args = json.loads(line)
        try:
            answer = {"ok": globals()[op](*args)}
        except OSError as e:
            answer = {"errno": errno.errorcode.get(e.errno, str(e.errno))}
        except (KeyError, ValueError, shutil.Error):  # ValueError: a map of a file that is cut meanwhile
            answer = {"errno": "EBADF"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    stop(held)
    stop(loops)


main()
