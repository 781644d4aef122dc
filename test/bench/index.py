# SPDX-License-Identifier: BSD-3-Clause
"""The index: its size on disk by pattern, and opening files with millions of records or thousands of logs."""
import contextlib
import glob
import os
import subprocess
import time

from harness import BUILD, MIB, PLAIN, Wrong, clean_env, run, spread_text

PATTERNS = ["strided", "header", "2d", "3d", "arrays"]
JUDGED = PATTERNS[:4]
HOSTS = 16


class Dataset:
    """A logical file of many records, alone in its backend."""

    def __init__(self, place, kind, logs, records, block, hosts=0):
        self.place = place
        self.args = ["-k", kind, "-p", logs, "-n", records, "-b", block]
        self.logs, self.records, self.hosts = logs, logs * records, hosts
        self.env, self.dir = place.library()
        self.room = place.room
        self.path = self.dir + "/index." + kind

    def make(self):
        run("bench_index", ["make", *self.args, *(["-u", self.hosts] if self.hosts else []), self.path], self.env,
            timeout=900)
        self.place.settle()

    def look(self, verb, *more):
        return run("bench_index", [verb, *self.args, *more, self.path], self.env)

    def files(self, pattern):
        return glob.glob(self.room + "/.plfs/??/*/" + pattern)

    def forget(self):
        """The next open is the first one."""
        for path in self.files("index.global"):
            os.unlink(path)

    def remove(self):
        subprocess.run(["rm", self.path], env={**clean_env(), **self.env}, check=True)

    def index_bytes(self):
        """Everything in the container's directories but data logs, words for readers, and caches; the checksums of
        the data, 4 bytes for 64 KiB, are in the logs."""
        return sum(os.stat(path).st_size for path in self.files("hostdir.*/*")
                   if not os.path.basename(path).startswith(("data.", "notice.")))


@contextlib.contextmanager
def dataset(*args, **kwargs):
    d = Dataset(*args, **kwargs)
    d.make()
    try:
        yield d
    finally:
        d.remove()


def section_index(places, out):
    if PLAIN:
        return out.remark("\nindex: nothing to measure without the library")
    print("\nIndex on disk, 16 processes: bytes a process")
    worst = 0
    for kind in PATTERNS:
        with dataset(places[0], kind, 16, 4096, 1000) as d:
            size = d.index_bytes() / d.logs
            d.look("read")
        out.figure(f"index/{kind}", [size])
        worst = max(worst, size if kind in JUDGED else 0)
        print("%-9s %9.0f" % (kind, size), flush=True)
    out.figure("index/worst", [worst])


def look_often(out, d, name, first_rounds, cached_rounds):
    """Opens of new processes: the first, which finds no index.global, and those after it."""
    first = []
    for _ in range(first_rounds):
        d.forget()
        first.append(d.look("open"))
    cached = [d.look("open") for _ in range(cached_rounds)]
    out.details[f"open {name}"] = {"first": first, "cached": cached, "global": bool(d.files("index.global"))}
    for which, looks in (("first", first), ("cached", cached)):
        out.figure(f"open {which}/{name}", [look["first_s"] * 1e3 for look in looks])
    print("%-34s first %-22s cached %-22s%s" % (
        name, spread_text(out.figures[f"open first/{name}"]), spread_text(out.figures[f"open cached/{name}"]),
        "" if d.files("index.global") else "  (there is no index.global)"), flush=True)


def section_open(places, out):
    if PLAIN:
        return out.remark("\nopen: nothing to measure without the library")
    place, rounds = places[0], out.rounds
    print("\nOpen to first byte in a new process, ms: with no index.global, and with it")
    with dataset(place, "strided", 16, 262144, 64) as d:
        look_often(out, d, "strided", rounds, 3 * rounds)
        if not out.quick:
            d.look("read")
    with dataset(place, "random", 16, 262144, 64) as d:
        look_often(out, d, "random", rounds, 3 * rounds)
        out.figure("index/random", [d.index_bytes() / d.records])
        print("%-34s %.1f bytes of index a record" % ("", d.index_bytes() / d.records), flush=True)
        d.look("read", "-l", 32 * MIB if out.quick else 256 * MIB)
    hosts = HOSTS if os.geteuid() == 0 else 0
    if not hosts:
        out.remark("open: all logs are of one host, since nobody but root may set a host name")
    with dataset(place, "strided", 10240, 3072, 16, hosts=hosts) as d:
        look_often(out, d, "logs", rounds, 3 * rounds)
        memory(out, d)
        report(out, d)


def report(out, d):
    """plfs report of 31 million pieces: its time and memory, of the command and of the page's program."""
    page = d.room + "/../report.html"
    begin = time.monotonic()
    process = subprocess.Popen([BUILD + "/plfs", "report", "-o", page, d.room + "/" + os.path.basename(d.path)])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise Wrong("plfs report has failed")
    out.figure("report/seconds", [time.monotonic() - begin])
    out.figure("report/memory", [usage.ru_maxrss * 1024 / 1e6])
    out.figure("report/page", [os.path.getsize(page) / 1e6])
    print("%-34s plfs report: %.1f s, %.0f MB of memory, a page of %.2f MB" % (
        "", *(out.figures["report/" + what][0] for what in ("seconds", "memory", "page"))), flush=True)
    os.unlink(page)


def memory(out, d):
    """What a reader's peak is above that of one with an empty file: after the first open, an open, and reading."""
    open(d.room + "/nothing", "w").close()
    empty = run("bench_index", ["empty", *d.args, d.dir + "/nothing"], d.env)["peak_kib"]
    d.forget()
    peaks = {}
    for which, verb in (("first", "open"), ("cached", "open"), ("reading", "read")):
        look = d.look(verb, "-l", 32 * MIB)
        peaks[which] = (look["peak_kib"] - empty) * 1024 / 1e6
        out.figure(f"memory {which}", [peaks[which]])
    out.details["memory"] = {"empty_kib": empty, "read_s": look["read_s"], "read_bytes": look["bytes"]}
    print("%-34s peak of memory, MB more than with an empty file: first open %.1f, cached %.1f, reading 32 MiB %.1f" % (
        "", *peaks.values()), flush=True)
