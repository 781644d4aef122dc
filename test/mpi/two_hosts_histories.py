# SPDX-License-Identifier: BSD-3-Clause
# Short histories of calls by two hosts on one file, each on a plain directory and on others, compared call by call. What
# is promised between hosts needs a release and an acquire: each call that changes bytes is followed by a release, and
# each call on a descriptor has an acquire before it if the other host has acted since.
#
#     two_hosts_histories.py [--length N] [--every N] [--seed N] [--run HISTORY] PLAIN OTHER... -- HOST1... -- HOST2...
#
# PLAIN: a local directory, on which the first host plays both parts; OTHER: NAME=DIRECTORY, the last of them without the
# library if its NAME is "plain". HOST1 and HOST2: command lines to which one more is added.
# What differs in the same way on the other plain directory is the file system's own doing, and is counted apart.
import argparse
import itertools
import os
import subprocess
import sys

# What an agent runs. Each call returns what the program would see of it.
AGENT = r'''
import errno, fcntl, mmap, os, sys
fd = {}
def runs(b):
    out, at = [], 0
    while at < len(b):
        end = at
        while end < len(b) and b[end] == b[at]:
            end += 1
        out.append("%d*%s" % (end - at, chr(b[at]) if b[at] else "0"))
        at = end
    return " ".join(out) or "nothing"
def open_(h, flags):
    fd[h] = os.open("f", flags | os.O_CREAT, 0o644)
def over(byte):
    f = os.open("h", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(f, byte * 40)
    os.close(f)
    os.rename("h", "f")
def store(f, byte):
    with mmap.mmap(f, 4096) as m:
        m[20:30] = byte * 10
        m.flush()
def look():
    f = os.open("f", os.O_RDONLY)
    try:
        return runs(os.pread(f, 1000, 0)) + ", size %d" % os.fstat(f).st_size
    finally:
        os.close(f)
def lock(f):
    fcntl.lockf(f, fcntl.LOCK_EX)
    fcntl.lockf(f, fcntl.LOCK_UN)
def stat(st):
    return "%d bytes, %d names" % (st.st_size, st.st_nlink)
calls = {
    "open": lambda h, b: open_(h, os.O_RDWR), "append": lambda h, b: open_(h, os.O_RDWR | os.O_APPEND),
    "trunc": lambda h, b: open_(h, os.O_RDWR | os.O_TRUNC), "rdonly": lambda h, b: open_(h, os.O_RDONLY),
    "w0": lambda h, b: os.pwrite(fd[h], b * 100, 0), "w50": lambda h, b: os.pwrite(fd[h], b * 100, 50),
    "wfar": lambda h, b: os.pwrite(fd[h], b * 100, 300), "write": lambda h, b: os.write(fd[h], b * 60),
    "cut0": lambda h, b: os.truncate("f", 0), "cut70": lambda h, b: os.truncate("f", 70),
    "fcut30": lambda h, b: os.ftruncate(fd[h], 30), "fcut200": lambda h, b: os.ftruncate(fd[h], 200),
    "pread": lambda h, b: runs(os.pread(fd[h], 1000, 0)), "fstat": lambda h, b: stat(os.fstat(fd[h])),
    "end": lambda h, b: os.lseek(fd[h], 0, os.SEEK_END), "stat": lambda h, b: stat(os.stat("f")),
    "store": lambda h, b: store(fd[h], b), "over": lambda h, b: over(b), "unlink": lambda h, b: os.unlink("f"),
    "close": lambda h, b: os.close(fd.pop(h)), "sync": lambda h, b: os.fsync(fd[h]), "lock": lambda h, b: lock(fd[h]),
    "look": lambda h, b: look(), "done": lambda h, b: h in fd and os.close(fd.pop(h)),
    "remove": lambda h, b: os.path.exists("f") and os.unlink("f"),
}
for line in sys.stdin:
    word, host, byte, directory = line.rstrip("\n").split("\t")
    os.chdir(directory)
    try:
        answer = calls[word](host, byte.encode())
    except OSError as e:
        answer = errno.errorcode[e.errno]
    except Exception as e:
        answer = repr(e)
    print(answer, flush=True)
'''

OPENS = ("open", "append", "trunc", "rdonly")
CHANGES = ("w0", "w50", "wfar", "write", "fcut30", "fcut200", "store")
LOOKS = ("pread", "fstat", "end", "stat")
ALPHABET = OPENS + CHANGES + ("cut0", "cut70", "over", "unlink", "close", "pread", "fstat", "stat")
NEEDS_NO_FD = OPENS + ("cut0", "cut70", "over", "unlink", "stat", "look", "remove")

# How histories begin: what is not alike for both hosts is played by a for each.
STATES = (
    "", "a.open a.w0 a.close", "a.open a.w0", "a.open a.w0 b.open", "a.open a.w0 b.open b.w50 b.pread a.pread",
    "a.append a.write b.append b.write", "a.open a.w0 b.open b.pread a.store", "a.open a.w0 b.open b.unlink",
    "a.open a.w0 b.open b.pread b.fcut30", "b.open b.w0 b.close a.rdonly a.pread b.open b.w50")


class Host:
    def __init__(self, command):
        self.process = subprocess.Popen(command + [sys.executable, "-c", AGENT], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __call__(self, word, host, byte, directory):
        print(word, host, byte, directory, sep="\t", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            sys.exit(f"{host} does not answer: {word} in {directory}")
        return answer


def parse(text):
    return [tuple(step.split(".")) for step in text.split()]


def is_possible(steps):
    """Descriptors are there where they are needed, and no host has two."""
    has = {"a": None, "b": None}
    there = False
    for host, word in steps:
        if word in OPENS:
            if has[host]:
                return False
            has[host], there = word, True
        elif word == "over":
            there = True
        elif word in ("cut0", "cut70", "unlink", "stat"):
            if not there:
                return False
            there = word != "unlink"
        elif not has[host] or (has[host] == "rdonly" and word in CHANGES):
            return False
        elif word == "close":
            has[host] = None
    return True


def completed(steps, nr):
    """The steps with what the promises ask for between them, and with looks by both at the end."""
    whole, fds = [], set()
    due = {"a": False, "b": False}  # the other has acted since this host acquired
    acquire = ("sync", "lock")[nr % 2]
    looks = [(host, word) for word in ("pread", "fstat") for host in "ab"]
    for host, word in steps + looks + [("a", "stat"), ("b", "look"), ("a", "look"), ("b", "stat")]:
        if word in LOOKS[:3] and host not in fds:
            continue
        if word not in NEEDS_NO_FD and due[host]:
            whole.append((host, "sync" if (host, "rdonly") in steps else acquire))
            due[host] = False
        whole.append((host, word))
        due["b" if host == "a" else "a"] = True
        if word in OPENS:
            due[host] = False
            fds.add(host)
        elif word == "close":
            fds.discard(host)
        elif word in CHANGES:
            whole.append((host, "sync"))
    return whole + [("a", "done"), ("b", "done"), ("b", "look"), ("a", "remove")]


def play(hosts, directory, whole):
    return [hosts[host](word, host, chr(ord("A") + i % 26), directory) for i, (host, word) in enumerate(whole)]


def first_difference(want, got):
    return next((i for i, answers in enumerate(zip(want, got)) if answers[0] != answers[1]), None)


def histories(length, every, seed):
    steps = [(host, word) for host in "ab" for word in ALPHABET]
    nr = seed
    for state in STATES:
        prefix = parse(state)
        for n in range(1, length + 1):
            for more in itertools.product(steps, repeat=n):
                if (n > 1 and more[-1][1] in LOOKS) or not is_possible(prefix + list(more)):
                    continue
                nr += 1
                if nr % every == 0:
                    yield nr // every, prefix + list(more)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run")
    parser.add_argument("plain")
    parser.add_argument("others", nargs="+")
    words = sys.argv[1:]
    second = len(words) - words[::-1].index("--")
    first = words.index("--") + 1
    args = parser.parse_args(words[:first - 1])
    hosts = {"a": Host(words[first:second - 1]), "b": Host(words[second:])}
    alone = {"a": hosts["a"], "b": hosts["a"]}
    others = [other.split("=", 1) for other in args.others]
    nr_played = nr_differ = nr_own = 0
    for nr, steps in [(0, parse(args.run))] if args.run else histories(args.length, args.every, args.seed):
        whole = completed(steps, nr)
        want = play(alone, args.plain, whole)
        got = {name: play(hosts, directory, whole) for name, directory in others}
        nr_played += 1
        for name, answers in got.items():
            at = first_difference(want, answers)
            if at is None or name == "plain":
                continue
            if "plain" in got and first_difference(want, got["plain"]) is not None:
                nr_own += 1
                continue
            nr_differ += 1
            if nr_differ > 20:
                continue
            print(f"{name}: {' '.join('.'.join(step) for step in steps)}")
            for i, (host, word) in enumerate(whole[:at + 1]):
                print(f"    {host}.{word:8} {want[i]}" + (f"    but here: {answers[i]}" if i == at else ""))
        if args.run:
            for i, (host, word) in enumerate(whole):
                print(f"    {host}.{word:8}", *dict.fromkeys([want[i]] + [answers[i] for answers in got.values()]), sep=" | ")
    print(f"{nr_played} histories of two hosts, {nr_differ} differ" +
          (f", {nr_own} more where the file system without the library does" if nr_own else ""))
    sys.exit(nr_differ > 0)


main()
