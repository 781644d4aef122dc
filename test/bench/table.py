# SPDX-License-Identifier: BSD-3-Clause
"""The table at the end: a line for each figure that has a goal, and what is only looked at below."""
import collections

from harness import MIB, PLAIN, short, spread

# goal: at least (more) or at most (less); None: no goal.
Row = collections.namedtuple("Row", "name text goal more unit")


def size_text(block):
    return "1 MiB" if block == MIB else "%d KiB" % (block // 1024) if block % 1024 == 0 else "%d B" % block


def rows_of_writing():
    goals = {64: 4, 512: 3, 4096: 1.3, 47001: 1.0, MIB: 0.97}
    for where in ("disk", "tmpfs"):
        for block, goal in goals.items():
            yield Row(f"write/{where}/{block}", f"N-1 write over direct N-N, {{{where}}}, {size_text(block)}", goal, True, "")


def rows_of_reading():
    for where in ("disk", "tmpfs"):
        for block, goal in {4096: 0.7, 47001: 0.95, MIB: 0.97}.items():
            yield Row(f"read shifted over N-1/{where}/{block}",
                      f"read shifted by one rank over direct N-1, {{{where}}}, {size_text(block)}", goal, True, "")
    for where in ("disk", "tmpfs"):
        yield Row(f"read sequential/{where}/4096", f"one process reads pieces of 4 KiB, over a plain file, {{{where}}}", 0.9,
                  True, "")


def rows_of_copies():
    for where in ("disk", "tmpfs"):
        yield Row(f"mirror/{where}", f"N-1 write and close with mirror=2, over one backend, {{{where}}}", 1.05, False, "")


def rows_of_sharing():
    for where in ("disk", "tmpfs"):
        yield Row(f"locks/{where}", f"lock, read 8 B, write 8 B, unlock by 4 processes, CPU over plain, {{{where}}}", 4,
                  False, "")
    for threads in (2, 4):
        yield Row(f"threads read/{threads}/4096", f"{threads} threads read one file in pieces of 4 KiB, over plain", 0.9, True,
                  "")
    for where in ("disk", "tmpfs"):
        for block in (4096, 47001, MIB):
            yield Row(f"verified read shifted/{where}/{block}",
                      f"checked first read over unchecked, {{{where}}}, {size_text(block)}", 0.9, True, "")
        yield Row(f"verified read scattered/{where}/4096",
                  f"checked first read out of order over unchecked, {{{where}}}, 4 KiB", 0.5, True, "")
    yield Row("calls/start a program", "/bin/true under a mapping, more than without", 250000, False, "ns")


def rows_of_opening():
    for name, text, goal in (("strided", "4M strided records in 16 logs", 5), ("random", "4M random records", 100),
                             ("logs", "31M strided records in 10240 logs", 300)):
        for which in ("first", "cached"):
            yield Row(f"open {which}/{name}", f"open to first byte, {which}: {text}", goal, False, "ms")
    yield Row("index/worst", "index on disk, strided patterns, a process", 128, False, "B")
    yield Row("index/random", "index on disk, random offsets, a record", 16, False, "B")
    for which in ("first", "cached", "reading"):
        yield Row(f"memory {which}", f"reader's memory, {which}: 31M strided records in 10240 logs", 50, False, "MB")
    for what, goal, unit in (("seconds", 10, "s"), ("memory", 200, "MB"), ("page", 5, "MB")):
        yield Row(f"report/{what}", f"plfs report, {what}: 31M strided records in 10240 logs", goal, False, unit)


def rows_of_files():
    for where in ("disk", "tmpfs"):
        yield Row(f"files/{where}/log/stat_one", f"stat of a closed file over stat of a plain file, {{{where}}}", 1.3, False, "")
    for how, goal in (("log", 3), ("flat", 1.1)):
        for where in ("disk", "tmpfs"):
            for phase, text in (("all", "create+write+close+stat+unlink"), ("create", "create+write 1 KiB+close"),
                                ("stat", "stat"), ("unlink", "unlink")):
                yield Row(f"files/{where}/{how}/{phase}", f"{text}: small files over plain, {{{where}}}, {how}", goal,
                          False, "")


def rows_of_reopening():
    for where in ("disk", "tmpfs"):
        for how, text in (("log", ""), ("small=0", ", small=0")):
            yield Row(f"reopened/{where}/{how}/growth",
                      f"open, append a line, close: the last of 16384 over the first, {{{where}}}{text}", 1.5, False, "")
            yield Row(f"reopened/{where}/{how}/over plain", f"the same over plain, {{{where}}}{text}", None, False, "")
            yield Row(f"each/{where}/{how}/growth",
                      f"a new process appends a line: the last of 4096 over the first, {{{where}}}{text}", 1.5, False, "")
            yield Row(f"each/{where}/{how}/over plain", f"the same over plain, {{{where}}}{text}", None, False, "")


def rows_of_counting():
    yield Row("counted/counters", "PLFS_STATS: what it adds to a write of 64 B", 2, False, "ns")
    yield Row("counted/trace", "PLFS_TRACE: what it adds to a write of 64 B", 30, False, "ns")


# Measured by make bench-cluster, which leaves them in bench-cluster.json in the build directory.
CLUSTER = [
    Row("cluster/N-1/4096", "make bench-cluster: CephFS, 2 hosts: N-1 over direct N-1, 4 KiB", 12, True, ""),
    Row("cluster/N-1/47001", "make bench-cluster: CephFS, 2 hosts: N-1 over direct N-1, 47001 B", 12, True, ""),
    Row("cluster/N-N/4096", "make bench-cluster: CephFS, 2 hosts: N-1 over N-N, 4 KiB", 0.9, True, ""),
    Row("cluster/N-N/47001", "make bench-cluster: CephFS, 2 hosts: N-1 over N-N, 47001 B", 0.9, True, ""),
    Row("cluster/near/ceph-ec/wait/1048576/512/home", "make bench-cluster: wait for a checkpoint near over in CephFS", 0.1, False, ""),
    Row("cluster/near/ceph-ec/wait/1048576/512/nn", "make bench-cluster: the same over a file for each rank there", 1.2, False, ""),
    Row("cluster/near/ceph-ec/drain/drain", "make bench-cluster: rate of plfs drain over cp and sync", 0.9, True, ""),
    Row("cluster/near/ceph-ec/compute/without", "make bench-cluster: computing ranks beside a drain, over alone", 1.03, False, ""),
]

GOALS = [*rows_of_writing(), *rows_of_reading(), *rows_of_copies(), *rows_of_sharing(), *rows_of_opening(), *CLUSTER,
         *rows_of_files(), *rows_of_reopening(), *rows_of_counting()]


def others(figures):
    """What has no goal: a row each, under its own name."""
    known = {row.name for row in GOALS}
    for name in figures:
        if name not in known:
            cost = name.startswith(("calls/", "storm calls", "files/", "index/"))
            unit = "ns" if name.startswith("calls/") else "B" if name.startswith("index/") else ""
            words = [size_text(int(word)) if word.isdigit() and int(word) >= 64 else "{%s}" % word
                     if word in ("disk", "tmpfs") else word for word in name.split("/")]
            yield Row(name, ", ".join(words), None, not cost, unit)


def reached(row, value):
    return None if row.goal is None else value >= row.goal if row.more else value <= row.goal


FORMAT = "%-66s %-9s %8s %-2s %-18s %s"


def line(row, values, text):
    goal = "" if row.goal is None else "%s %g%s" % (">=" if row.more else "<=", row.goal, row.unit and " " + row.unit)
    if values is None:
        return FORMAT % (text, goal, "-", "", "", "not measured")
    s = spread(values)
    good = reached(row, s["median"])
    return FORMAT % (text, goal, short(s["median"]), row.unit,
                     "%s..%s" % (short(s["min"]), short(s["max"])) if len(values) > 1 else "",
                     "" if good is None or PLAIN else "yes" if good else "NO")


def show(figures, file_systems, everything, about):
    """Prints it, with everything the rows that were not measured as well."""
    print("\n%s\n\n%s" % (about, FORMAT % ("", "goal", "median", "", "least..greatest", "reached")))
    counts = [0, 0]
    for row in [*GOALS, *others(figures)]:
        values = figures.get(row.name)
        if values or everything:
            print(line(row, values, row.text.format_map(file_systems)))
        if values and row.goal is not None:
            counts[not reached(row, spread(values)["median"])] += 1
    if PLAIN:
        print("\nThe library was nowhere: over N-1 and over plain files a ratio of 1 is expected, and the rest is noise.")
    else:
        print("\nReached %d of the %d goals measured." % (counts[0], sum(counts)))
