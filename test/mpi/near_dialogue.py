# SPDX-License-Identifier: BSD-3-Clause
# A host that writes near (near=) and one that reads: before, during and after the drain, files that are new and files that are written
# over. The reader gets the newest released bytes or EIO, never zeros or older bytes.
#
#     near_dialogue.py DIR BACKEND NEAR PLFS LIBRARY COMMAND-ON-HOST-1 COMMAND-ON-HOST-2
#
# DIR: below the mapped /plfs; COMMAND: a command line to which one more is added.
import os
import shlex
import subprocess
import sys
import time

from two_hosts_agent import Host

directory, backend, near, plfs, library = sys.argv[1:6]
commands = [shlex.split(c) for c in sys.argv[6:8]]
LEN = 400000
# What a read gives: the version of all these bytes, or the error. "short": it ends before what is an error.
LOOK = f"""
import errno
def V(n, size={LEN}):
    return b"".join(b"%d:%06d|" % (n, i) for i in range(size // 9 + 1))[:size]
def look(f, off, size):
    try:
        got = os.pread(f, size, off)
    except OSError as e:
        return errno.errorcode[e.errno]
    for n in (1, 2, 3):
        if got and got == V(n)[off:off + len(got)]:
            return n if len(got) == size else "short"
    return "wrong: %r" % got[:50]
"""


def host(nr, options):
    env = [f"LD_PRELOAD={library}", f"PLFS_MAP=/plfs={backend}{{small=0,near={near},{options}}}"]
    h = Host(f"h{nr + 1}", commands[nr] + ["env"] + env)
    h(f"os.chdir({directory!r})")
    h(f"exec({LOOK!r}, globals())")
    return h


def says(h, line, *wanted):
    answer = h(line)
    if answer not in [repr(w) for w in wanted] and answer not in wanted:
        sys.exit(f"{h.name}: {line}: {answer}, not {' or '.join(map(str, wanted))}")
    return answer


def drain(*options, wait=True, on=0, what=None):
    p = subprocess.Popen(commands[on] + [plfs, "drain", *options, what or near])
    return p if not wait else p.wait()


def write(h, name, version, off=0, size=LEN, release="os.close(f)"):
    h(f"f = os.open('{name}', os.O_RDWR | os.O_CREAT, 0o644)")
    says(h, f"os.pwrite(f, V({version})[{off}:{off + size}], {off})", size)
    says(h, release, "None")


def opened(h, name):
    h(f"g = os.open('{name}', os.O_RDONLY)")


def before_during_and_after():
    """release=near: an error until the drain is through."""
    a, b = host(0, "drain=none"), host(1, "drain=none")
    write(a, "new", 1)
    opened(b, "new")
    says(b, "os.fstat(g).st_size", LEN)
    says(b, f"look(g, 0, {LEN})", "EIO")
    says(b, "look(g, 1000, 9)", "EIO")
    says(a, f"look(os.open('new', os.O_RDONLY), 0, {LEN})", 1)
    slow = drain("--rate=256K", wait=False)
    seen = set()
    while slow.poll() is None:
        seen.add(says(b, f"look(os.open('new', os.O_RDONLY), 0, {LEN})", "EIO", 1))
        time.sleep(0.1)
    if "'EIO'" not in seen or slow.returncode:
        sys.exit(f"the drain was over at once, or failed: {slow.returncode}")
    says(b, f"look(g, 0, {LEN})", 1)
    says(b, f"look(os.open('new', os.O_RDONLY), 0, {LEN})", 1)
    for h in (a, b):
        h.stop()


def written_over():
    """release=near: the older byte is never read again by who opens or synced the file."""
    a, b, old = host(0, "drain=none"), host(1, "drain=none"), host(1, "drain=none")
    write(a, "over", 1)
    drain()
    opened(old, "over")
    says(old, f"look(g, 0, {LEN})", 1)
    write(a, "over", 2, 100000, 200000)
    opened(b, "over")
    for h in (b, old):
        h("os.fsync(g)")
        says(h, "look(g, 0, 100000), look(g, 300000, 100000)", "(1, 1)")
        for off, size in ((100000, 200000), (100000, 1), (150000, 9), (299999, 1), (299990, 20)):
            says(h, f"look(g, {off}, {size})", "EIO")
        for off, size in ((0, LEN), (99999, 2)):
            says(h, f"look(g, {off}, {size})", "EIO", "short")
    slow = drain("--rate=256K", wait=False)
    while slow.poll() is None:
        for h in (b, old):
            h("os.fsync(g)")
            says(h, "look(g, 150000, 100000)", "EIO", 2)
        time.sleep(0.1)
    for h in (b, old):
        h("os.fsync(g)")
        says(h, "look(g, 100000, 200000), look(g, 0, 100000)", "(2, 1)")
    for h in (a, b, old):
        h.stop()


def waited_for():
    """wait=: the read takes as long as the drain."""
    a, b = host(0, "drain=none"), host(1, "drain=none,wait=100")
    write(a, "waited", 1)
    opened(b, "waited")
    b.send(f"look(g, 0, {LEN})")
    time.sleep(0.5)
    drain("--rate=512K")
    if b.answer() != "1":
        sys.exit("a read that waits got something else")
    write(a, "waited", 2, 0, 100000)
    b("os.fsync(g)")
    b.send("look(g, 0, 100000)")
    time.sleep(0.5)
    drain()
    if b.answer() != "2":
        sys.exit("a read that waits got something else")
    for h in (a, b):
        h.stop()


def released():
    """release=home: what is closed, synced or unlocked is read at once."""
    a, b = host(0, "drain=none,release=home"), host(1, "drain=none,release=home")
    write(a, "home", 1)
    opened(b, "home")
    says(b, f"look(g, 0, {LEN})", 1)
    write(a, "home", 2, release="os.fsync(f)")
    b("os.fsync(g)")
    says(b, f"look(g, 0, {LEN})", 2)
    says(a, "fcntl.lockf(f, fcntl.LOCK_EX)", "None")
    says(a, f"os.pwrite(f, V(3), 0)", LEN)
    says(a, "fcntl.lockf(f, fcntl.LOCK_UN)", "None")
    says(b, "fcntl.lockf(g, fcntl.LOCK_SH)", "None")
    says(b, f"look(g, 0, {LEN})", 3)
    says(b, "fcntl.lockf(g, fcntl.LOCK_UN)", "None")
    # In turn, each over what the other wrote.
    b("os.close(g); g = os.open('home', os.O_RDWR)")
    for turn in range(6):
        h, other = (a, b)[turn % 2], (b, a)[turn % 2]
        mine, its = "fg"[turn % 2], "gf"[turn % 2]
        says(h, f"os.pwrite({mine}, V({turn % 3 + 1}), 0)", LEN)
        h(f"os.fsync({mine})")
        other(f"os.fsync({its})")
        says(other, f"look({its}, 0, {LEN})", turn % 3 + 1)
    a("os.close(f)")
    b("os.close(g)")
    for h in (a, b):
        h.stop()


def drained_apart():
    """Each host drains its own place; only of a file it says that another host has some."""
    a, b = host(0, "drain=none"), host(1, "drain=none")
    write(a, "both", 1, 0, 100000)
    write(b, "both", 1, 100000, 300000)
    path = f"{backend}/{os.path.basename(directory)}/both"
    if drain(on=1, what=path) != 75 or drain(on=1) != 0 or drain("--wait", on=1) != 0:
        sys.exit("h2 is answerable for h1")
    opened(b, "both")
    says(b, "look(g, 100000, 300000), look(g, 0, 100000)", "(1, 'EIO')")
    if drain("--wait", "--timeout=1", on=1, what=path) != 75 or drain("--wait") != 0 or drain("--wait", on=1, what=path) != 0:
        sys.exit("h1 is not drained")
    says(b, f"look(g, 0, {LEN})", 1)
    for h in (a, b):
        h.stop()


for scene in (before_during_and_after, written_over, waited_for, released, drained_apart):
    print("==", scene.__name__)
    scene()
    left = subprocess.run(commands[0] + ["find", near, "-name", "data.*"], capture_output=True, text=True).stdout
    if left:
        sys.exit(f"logs are left near: {left}")
