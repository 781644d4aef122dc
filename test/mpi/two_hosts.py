# SPDX-License-Identifier: BSD-3-Clause
# Two hosts that share files, without MPI: an agent on each does what the driver says, line by line; the driver prints
# the dialogue, which run compares with the same dialogue on a plain directory. SCENES names some of the scenes.
#
#     two_hosts.py DIR COMMAND-ON-HOST-1 COMMAND-ON-HOST-2      each a command line to which one more is added
import os
import shlex
import sys

from two_hosts_agent import Host


def both(line):
    for host in hosts:
        host.send(line)
    print(f"both> {line}", *[host.answer() for host in hosts], sep="\n")


def closed_then_opened():
    a("f = os.open('closed', os.O_RDWR | os.O_CREAT, 0o644)")
    a("os.write(f, b'from one to the other')")
    a("os.close(f)")
    b("os.stat('closed').st_size")
    b("f = os.open('closed', os.O_RDWR)")
    b("os.read(f, 100)")
    b("os.pwrite(f, b'back', 5)")
    b("os.close(f)")
    a("open('closed').read()")


def synced():
    both("f = os.open('synced', os.O_RDWR | os.O_CREAT, 0o644)")
    for turn in range(4):
        writer, reader = hosts[turn % 2], hosts[(turn + 1) % 2]
        writer(f"os.pwrite(f, b'turn {turn} ' * 3, {turn} * 10)")
        writer("os.fsync(f)")
        reader("os.fsync(f)")
        reader("os.pread(f, 100, 0)")
        reader("os.fstat(f).st_size")
    both("os.close(f)")


def locked():
    both("f = os.open('locked', os.O_RDWR | os.O_CREAT, 0o644)")
    for turn in range(6):
        host, other = hosts[turn % 2], hosts[(turn + 1) % 2]
        host("fcntl.lockf(f, fcntl.LOCK_EX)")
        other("fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)")
        host("n = int(os.pread(f, 10, 0) or b'0') + 1; os.pwrite(f, b'%d' % n, 0)")
        host("fcntl.lockf(f, fcntl.LOCK_UN)")
        other("fcntl.flock(f, fcntl.LOCK_SH)")
        other("os.pread(f, 10, 0)")
        other("fcntl.flock(f, fcntl.LOCK_UN)")
    both("os.close(f)")


def counted_at_once():
    both("f = os.open('counter', os.O_RDWR | os.O_CREAT, 0o644)")
    both("exec('for i in range(100):\\n fcntl.lockf(f, fcntl.LOCK_EX)\\n n = int(os.pread(f, 10, 0) or b\"0\")\\n"
         " os.pwrite(f, b\"%d\" % (n + 1), 0)\\n fcntl.lockf(f, fcntl.LOCK_UN)')")
    both("os.fsync(f)")
    a("os.pread(f, 10, 0)")
    both("os.close(f)")


def appended():
    both("f = os.open('appended', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)")
    both("sum(os.write(f, b'%s %03d\\n' % (socket.gethostname().encode(), i)) for i in range(200))")
    both("os.close(f)")
    both("sorted(open('appended')) == ['h%d %03d\\n' % (h, i) for h in (1, 2) for i in range(200)]")
    a("os.rename('appended', 'appended.away')")
    b("os.unlink('appended.away')")


def strided():
    both("f = os.open('strided', os.O_RDWR | os.O_CREAT, 0o644)")
    both("me = int(socket.gethostname()[1]) - 1; data = bytes(47 + me for i in range(4700))")
    both("sum(os.pwrite(f, data, 4700 * (2 * i + me)) for i in range(300))")
    both("os.close(f)")
    both("hashlib.md5(open('strided', 'rb').read()).hexdigest()")


def truncated():
    a("f = os.open('truncated', os.O_RDWR | os.O_CREAT, 0o644)")
    a("os.write(f, b'x' * 5000)")
    a("os.fsync(f)")
    b("g = os.open('truncated', os.O_RDWR | os.O_TRUNC)")
    b("os.write(g, b'short')")
    b("os.fsync(g)")
    a("os.fsync(f)")
    a("os.fstat(f).st_size, os.pread(f, 100, 0)")
    a("os.pwrite(f, b'again', 5)")
    a("os.ftruncate(f, 8)")
    a("os.fsync(f)")
    b("os.fsync(g)")
    b("os.fstat(g).st_size, os.pread(g, 100, 0)")
    b("os.pwrite(g, b'end', 20)")
    b("os.close(g)")
    a("os.close(f)")
    both("os.stat('truncated').st_size, open('truncated', 'rb').read()")


def replaced_and_removed():
    a("f = os.open('current', os.O_RDWR | os.O_CREAT, 0o644)")
    a("os.write(f, b'old')")
    a("os.fsync(f)")
    b("g = os.open('current.new', os.O_RDWR | os.O_CREAT, 0o644)")
    b("os.write(g, b'new')")
    b("os.close(g)")
    b("os.rename('current.new', 'current')")
    a("os.pread(f, 10, 0), os.fstat(f).st_nlink, open('current').read()")
    a("os.write(f, b' but alive')")
    a("os.pread(f, 20, 0)")
    a("os.close(f)")
    a("f = os.open('current', os.O_RDWR)")
    b("os.unlink('current')")
    a("os.pwrite(f, b'unlinked', 3)")
    a("os.pread(f, 20, 0), os.fstat(f).st_nlink")
    a("os.open('current', os.O_RDONLY)")
    a("os.close(f)")
    both("sorted(os.listdir('.'))")


def killed():
    a("f = os.open('killed', os.O_RDWR | os.O_CREAT, 0o644)")
    a("os.write(f, b'written before the kill')")
    b("g = os.open('killed', os.O_RDWR)")
    a.send("os.kill(os.getpid(), 9)")
    a.stop()
    b("os.fsync(g)")
    b("os.pread(g, 100, 0)")
    a.start()  # with the same process id
    a(f"os.chdir({directory!r})")
    a("f = os.open('killed', os.O_RDWR)")
    a("os.pwrite(f, b'after ', 8)")
    a("os.close(f)")
    b("os.fsync(g)")
    b("os.pread(g, 100, 0), os.fstat(g).st_size")
    b("os.close(g)")
    b("os.unlink('killed')")  # the size that stat tells of such a file may be stale when nobody has it open


directory = sys.argv[1]
hosts = a, b = [Host(f"h{i + 1}", shlex.split(command)) for i, command in enumerate(sys.argv[2:4])]
both(f"os.chdir({directory!r})")
both("socket.gethostname(), os.getpid()")
for scene in (closed_then_opened, synced, locked, counted_at_once, appended, strided, truncated, replaced_and_removed, killed):
    if scene.__name__ in os.environ.get("SCENES", scene.__name__).split():
        print("==", scene.__name__)
        scene()
for host in hosts:
    host.stop()
