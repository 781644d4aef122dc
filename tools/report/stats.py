# SPDX-License-Identifier: BSD-3-Clause
"""A stats file, as plfs-stats(5) has it: what each process counted on each file. Lines are added up as they come, so that
those of 100,000 processes take little memory."""
import json

VERSION = 1
MOST = 1 << 63
NARROWEST = 1 / 16  # second, of an interval
HOST_END = 9  # "-1a2b3c4d" behind a host's name


class Calls:
    """The write or read calls of one process, or of all, on one file."""
    __slots__ = ("calls", "bytes", "seconds", "slowest", "slowest_at", "first", "last", "sequential", "strided", "random")

    def __init__(self):
        self.calls = self.bytes = self.sequential = self.strided = self.random = 0
        self.seconds = self.slowest = self.slowest_at = self.last = 0.0
        self.first = None

    def add(self, one):
        for name in ("calls", "bytes", "seconds", "sequential", "strided", "random"):
            setattr(self, name, getattr(self, name) + number(one, name))
        if number(one, "slowest") > self.slowest:
            self.slowest, self.slowest_at = number(one, "slowest"), number(one, "slowest_at")
        if number(one, "first"):
            self.first = min(self.first or number(one, "first"), number(one, "first"))
        self.last = max(self.last, number(one, "last"))


class Process:
    __slots__ = ("node", "host", "pid", "start", "rank", "program", "ended", "opens", "closes", "syncs", "errors",
                 "meta_seconds", "write", "read", "records")

    def __init__(self, line):
        self.node, self.pid, self.start = str(line.get("host", "?")), number(line, "pid"), number(line, "start")
        self.host = host_of(self.node)
        self.opens = self.closes = self.syncs = self.errors = self.records = 0
        self.meta_seconds = 0.0
        self.write, self.read = Calls(), Calls()

    def add(self, line):
        self.rank = line["rank"] if isinstance(line.get("rank"), int) else None
        self.program, self.ended = str(line.get("program", "")), bool(line.get("ended"))
        for name in ("opens", "closes", "syncs", "errors"):
            setattr(self, name, getattr(self, name) + number(line, name))
        self.records = max(self.records, number(line, "records"))
        self.meta_seconds += sum(number(line, n) for n in ("open_seconds", "close_seconds", "sync_seconds"))
        self.write.add(part(line, "write"))
        self.read.add(part(line, "read"))


class Counted:
    """A file, as all processes together counted it."""

    def __init__(self, path):
        self.path = path
        self.stored = "plain"
        self.processes = {}
        self.write, self.read = Calls(), Calls()
        self.sizes = {"write": [], "read": []}
        self.common = {}  # length: calls
        self.rates = {}   # (host, width): {number of the interval: bytes written}
        self.end = 0

    def add(self, line):
        key = (line.get("host"), line.get("pid"), line.get("start"))
        process = self.processes.setdefault(key, None) or Process(line)
        self.processes[key] = process
        process.add(line)
        self.stored = line.get("stored", self.stored)
        self.end = max(self.end, number(line, "end"))
        for name, calls in (("write", self.write), ("read", self.read)):
            one = part(line, name)
            calls.add(one)
            sizes = self.sizes[name]
            counts = one.get("sizes") or []
            sizes.extend([0] * (len(counts) - len(sizes)))
            for i, nr in enumerate(counts):
                sizes[i] += nr
        for common in part(line, "write").get("common") or []:
            self.common[common["len"]] = self.common.get(common["len"], 0) + common["calls"]
        rate = part(line, "rate")
        width = number(rate, "width")
        if width >= NARROWEST:
            first = round(number(rate, "from") / width)
            into = self.rates.setdefault((process.host, width), {})
            for i, nr in enumerate(rate.get("written") or []):
                if 0 < nr < MOST:
                    into[first + i] = into.get(first + i, 0) + nr

    def bandwidth(self):
        """(from, width, {host: [bytes in each interval]})."""
        width = max((w for _, w in self.rates), default=0)
        filled = {}
        for (host, narrow), counts in self.rates.items():
            into = filled.setdefault(host, {})
            for i, nr in counts.items():
                wide = int(i * narrow // width)
                into[wide] = into.get(wide, 0) + nr
        all_of_them = [i for counts in filled.values() for i in counts]
        if not all_of_them:
            return 0, 0, {}
        first, last = min(all_of_them), max(all_of_them)
        while (last - first) // 2 > 400:
            filled = {host: halved(counts) for host, counts in filled.items()}
            first, last, width = first // 2, last // 2, width * 2
        return first * width, width, {host: [counts.get(i, 0) for i in range(first, last + 1)] for host, counts in filled.items()}


def halved(counts):
    out = {}
    for i, nr in counts.items():
        out[i // 2] = out.get(i // 2, 0) + nr
    return out


def host_of(node):
    return node[:-HOST_END] if len(node) > HOST_END and node[-HOST_END] == "-" else node


def number(line, name):
    value = line.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST else 0


def part(line, name):
    value = line.get(name)
    return value if isinstance(value, dict) else {}


class Stats:
    def __init__(self, path):
        self.path = path
        self.files = {}  # path: Counted; None: those that were more than a process counts one by one
        self.jobs = set()
        self.nr_others = 0
        self.advice = []  # lines of plfs advise
        self.cut, self.newer = [], 0  # lines that are no whole objects; lines of a newer version

    def read(self):
        with open(self.path, encoding="utf-8", errors="surrogateescape") as lines:
            for no, text in enumerate(lines, 1):
                self.add(no, text)
        return self

    def add(self, no, text):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict) or "plfs_stats" not in line or not text.endswith("\n"):
            if text.strip():
                self.cut.append(no)
        elif number(line, "plfs_stats") > VERSION:
            self.newer += 1
        elif line.get("file") is None:
            self.nr_others += number(line, "files")
        else:
            self.add_line(no, line)

    def add_line(self, no, line):
        path = str(line["file"])
        counted = self.files.get(path) or Counted(path)
        try:
            counted.add(line)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):  # an object, but not of ours
            self.cut.append(no)
            return
        self.files[path] = counted
        self.jobs.add(str(line.get("job", "")))

    def complaints(self):
        """Lines for the user."""
        if self.cut:
            nr = len(self.cut)
            yield (f"{self.path}: line {self.cut[0]} is not whole{f', and {nr - 1} more' if nr > 1 else ''}: the disk was full, or the "
                   "file was cut; the processes of such lines are missing in the report")
        if self.newer:
            yield f"{self.path}: {self.newer} lines are of a newer version of libplfs: use its plfs report for them"
        if not self.files and not self.cut and not self.newer:
            yield f"{self.path}: no process counted anything"


def is_one(path):
    """Whether the file is a stats file, perhaps cut or damaged: it begins like one."""
    try:
        with open(path, "rb") as f:
            head = f.read(4096)
    except OSError:
        return False  # who opens it then says why
    return head.lstrip().startswith(b'{"plfs_stats"') or (head.startswith(b"{") and b'"plfs_stats"' in head)
