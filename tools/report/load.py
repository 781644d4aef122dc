# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a job: from the index of its files and from its traces (plfs report --json), and from what its
processes counted (stats.py). All together is a File."""
import fnmatch
import json
import os
import subprocess

import stats

FILES_DRAWN = 6  # the largest; the others are in the table


class Trouble(Exception):
    """One line for the user; "": a plfs command has said it."""


class Row:
    """A process that wrote a file, as the page shows it; times in seconds since 1970."""

    def __init__(self, no, host, node, pid):
        self.no, self.host, self.node, self.pid = no, host, node, pid
        self.rank, self.ended, self.program = None, True, ""
        self.bytes = self.pieces = self.begin = self.end = 0
        self.seconds = self.slowest = self.read_bytes = self.read_calls = None  # not known


class File:
    """A file: its facts, by the index, a trace or both, and what was counted; either may be None."""

    def __init__(self, path):
        self.path = path
        self.facts, self.counted = None, None
        self.writers, self.readers = [], []  # of the facts, by their numbers; readers: those that did not write
        self.rows = []                       # of both
        self.ranked = False
        self.advised = []                    # (what, why) by the stats file

    def __getattr__(self, name):
        facts = self.__dict__.get("facts") or {}
        try:
            return facts[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def has_index(self):
        return bool(self.facts) and bool(self.writers) and "index_records" in self.facts

    @property
    def is_traced(self):
        return bool(self.facts) and self.facts.get("source") == "trace"

    @property
    def is_drawn(self):
        """Whether there are pictures of its bytes."""
        return bool(self.facts) and bool(self.writers) and "offset_time" in self.facts

    @property
    def is_counted(self):
        return self.counted is not None

    @property
    def has_calls(self):
        """Whether calls are known, not only pieces."""
        return self.is_counted or self.is_traced

    @property
    def in_logs(self):
        return self.counted.stored == "logs" if self.is_counted else self.facts["storage"] == "log"

    @property
    def begin(self):
        if self.is_counted and not self.is_traced:
            return self.counted.write.first or 0
        return self.facts.get("from_ns", 0) / 1e9

    @property
    def seconds(self):
        """From the first to the last write."""
        if self.is_counted and not self.is_traced:
            return max(self.counted.write.last - self.begin, 0)
        return max(self.facts.get("to_ns", 0) - self.facts.get("from_ns", 0), 0) / 1e9

    @property
    def drawn_seconds(self):
        """The same by the facts: the pictures have these moments."""
        return max(self.to_ns - self.from_ns, 0) / 1e9

    @property
    def whole_size(self):
        return self.facts["size"] if self.facts else self.counted.end

    @property
    def processes_read(self):
        """[(bytes, whether it has written the file too)]"""
        if self.is_counted:
            return [(p.read.bytes, bool(p.write.calls or p.write.bytes)) for p in self.counted.processes.values()
                    if p.read.calls or p.read.bytes]
        return [(w["read_bytes"], True) for w in self.writers if w.get("read_calls")] + [(w["read_bytes"], False) for w in self.readers]

    def name(self, no):
        """What the page calls writer number @no."""
        return f"rank {self.rows[no].rank}" if self.ranked else f"process {no}"

    # ---- putting both together ----

    def join(self):
        """Make the rows; with ranks, these are the order of the writers, and so of their colours."""
        if self.is_counted:
            self.rows = self.counted_rows()
        else:
            self.rows = [self.index_row(w) for w in self.writers]
        if self.is_drawn and self.is_counted:
            self.renumber()
        ranks = {r.rank for r in self.rows}
        self.ranked = None not in ranks and 0 < len(ranks) == len(self.rows)  # else several runs

    def index_row(self, w):
        row = Row(w["no"], w["host"], w["node"], w["pid"])
        row.bytes, row.pieces, row.ended = w["bytes"], w["pieces"], not w["open"]
        row.begin, row.end = w["from_ns"] / 1e9, w["to_ns"] / 1e9
        row.rank, row.program = w.get("rank"), w.get("program", "")
        row.seconds, row.slowest = w.get("seconds"), w.get("slowest")
        row.read_bytes, row.read_calls = w.get("read_bytes"), w.get("read_calls")
        return row

    def counted_rows(self):
        mine = [p for p in self.counted.processes.values() if p.write.calls or p.write.bytes]
        order = {(w["node"], w["pid"]): w["no"] for w in self.writers}
        far = len(order)
        mine.sort(key=lambda p: (p.rank is None, p.rank or 0, order.get((p.node, p.pid), far), p.node, p.pid))
        rows = []
        for no, p in enumerate(mine):
            row = Row(no, p.host, p.node, p.pid)
            row.rank, row.ended, row.program = p.rank, p.ended, p.program
            row.bytes, row.pieces = p.write.bytes, p.write.calls
            row.begin, row.end = p.write.first or p.start, p.write.last
            row.seconds, row.slowest = p.write.seconds, p.write.slowest
            row.read_bytes, row.read_calls = p.read.bytes, p.read.calls
            rows.append(row)
        return rows

    def renumber(self):
        """The writers of the facts become the rows; those that nobody counted come behind."""
        known = {(r.node, r.pid): r.no for r in self.rows}
        to = []
        for w in self.writers:
            no = known.get((w["node"], w["pid"]))
            if no is None:
                no = len(self.rows)
                self.rows.append(self.index_row(dict(w, no=no)))
            to.append(no)
        facts = self.facts = dict(self.facts)
        facts["offset_time"] = [[[renumbered(n, to), nr] for n, nr in row] for row in self.offset_time]
        facts["owners"] = [renumbered(n, to) for n in self.owners]
        facts["beginning"] = [[off, length, renumbered(n, to)] for off, length, n in facts.get("beginning", [])]
        if len(self.writers_and_offsets) == len(to):
            rows = [[0] * len(self.writers_and_offsets[0]) for _ in self.rows]
            for n, row in enumerate(self.writers_and_offsets):
                rows[to[n]] = row
            facts["writers_and_offsets"] = rows
        for n, w in enumerate(self.writers):
            w["no"] = to[n]
        self.writers.sort(key=lambda w: w["no"])


def renumbered(no, to):
    return to[no] if no >= 0 else no


class Job:
    def __init__(self):
        self.files = []   # drawn
        self.others = []  # (path, size) of those that are in the table alone
        self.stats, self.traces = [], []
        self.notes = []   # lines for the user, which the page has too


# ---- the index ----

def run(plfs, maps, words, quiet=False):
    """The JSON lines of a plfs command. None: it failed, and has said why unless @quiet."""
    command = [plfs, words[0], "--json"] + [w for m in maps for w in ("-m", m)] + words[1:-1] + ["--", words[-1]]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if quiet else None, check=False)
    if process.returncode:
        return None
    return [json.loads(line) for line in process.stdout.decode("utf-8", "surrogateescape").splitlines()]


def index_of(plfs, maps, path, quiet=False):
    """[File]: one by its index, or with @quiet none."""
    lines = run(plfs, maps, ["report", path], quiet)
    if lines is None:
        if quiet:
            return []
        raise Trouble("")
    return files_of(lines)


def files_of(lines):
    files = []
    for line in lines:
        if line["type"] == "file":
            files.append(File(line["file"]))
            files[-1].facts = line
        elif line["type"] in ("writer", "reader"):
            (files[-1].writers if line["type"] == "writer" else files[-1].readers).append(line)
    return files


def directory(job, plfs, maps, path):
    found = run(plfs, maps, ["du", "-v", path])
    if found is None:
        raise Trouble("")
    logical = sorted((f for f in found[:-1] if f["logical"]), key=lambda f: -f["apparent"])
    if not logical:
        raise Trouble(f"{path}: no file below it is stored in logs, and it has no traces")
    for one in logical[:FILES_DRAWN]:
        job.files += index_of(plfs, maps, one["name"])
    job.others += [(one["name"], one["apparent"]) for one in logical[FILES_DRAWN:]]


# ---- traces, and what was counted ----

def same_file(f, path, processes):
    """Whether a file by its index is one that processes call @path: the name, or its end and some of its processes."""
    if path in (f.path, f.facts["path"]):
        return True
    return os.path.basename(f.path) == os.path.basename(path) and any((w["node"], w["pid"]) in processes for w in f.writers)


def find_index(job, plfs, maps, path, processes, named):
    """The file, out of those of the job, or with its index from where it is found; None."""
    for f in job.files:
        if f.facts and same_file(f, path, processes):
            return f
    found = [] if named else index_of(plfs, maps, path, quiet=True)
    return found[0] if found and found[0].has_index and same_file(found[0], path, processes) else None


def add_trace(f, traced):
    """What is in a trace replaces what the index has of the same; the numbers of writers are the trace's."""
    if f.has_index:
        no = {(w["node"], w["pid"]): w["no"] for w in traced.writers}
        to = [no.get((w["node"], w["pid"]), -1) for w in f.writers]
        kept = {name: value for name, value in f.facts.items() if name not in ("owners", "owner_rows")}
        kept["beginning"] = [[off, length, renumbered(n, to)] for off, length, n in f.facts["beginning"]]
        f.facts = dict(kept, **{n: v for n, v in traced.facts.items() if n not in ("file", "path", "storage")})
    else:
        f.facts = traced.facts
    f.path, f.writers, f.readers = traced.path, traced.writers, traced.readers


def join_traces(job, plfs, maps, named):
    """@named: whether files were named. Then others are in the table alone."""
    for lines in job.traces:
        for traced in files_of(lines):
            f = find_index(job, plfs, maps, traced.path, {(w["node"], w["pid"]) for w in traced.writers},
                           named or traced.facts["storage"] != "log" or not traced.is_drawn)
            if f is None and (named or not (traced.is_drawn or traced.readers)):
                job.others.append((traced.path, traced.facts["size"]))
                continue
            if f is None:
                f = File(traced.path)
            if f not in job.files:
                job.files.append(f)
            add_trace(f, traced)
        info = lines[0]
        if info["left_out"]:
            job.notes.append(f"{info['directory']}: {info['left_out']:,} calls, of {info['left_out_bytes']:,} bytes, did not fit into the "
                             "traces: PLFS_TRACE=DIR,max=SIZE has room for more")


def join_stats(job, plfs, maps, named):
    counted = {}
    for one in job.stats:
        for path, c in one.files.items():
            counted.setdefault(path, c)  # of several stats files the first has it
    some = False
    for c in sorted(counted.values(), key=lambda c: -(c.write.bytes + c.read.bytes)):
        f = find_index(job, plfs, maps, c.path, {(p.node, p.pid) for p in c.processes.values()},
                       named or c.stored != "logs" or len(job.files) >= FILES_DRAWN)
        some |= f is not None
        if f is None and (named or len(job.files) >= FILES_DRAWN):
            job.others.append((c.path, c.end))
            continue
        if f is None:
            f = File(c.path)
        if f not in job.files:
            f.path = c.path
            job.files.append(f)
        f.counted = c
        f.advised = [(a["advice"], a["reason"]) for one in job.stats for a in one.advice if is_about(a["about"], c.path)]
    if named and counted and not some:
        job.notes.append(f"{job.stats[0].path}: counts none of these files: it is of another job")


def is_about(about, path):
    """Advice is about a file, or about all whose names differ in numbers alone."""
    return about == path or fnmatch.fnmatchcase(os.path.basename(path), about)


def add_parts(plfs, path):
    """What killed processes have counted is beside the stats file; plfs stats puts it in."""
    if os.path.isdir(path + ".parts"):
        subprocess.run([plfs, "stats", "-q", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def read_stats(job, plfs, maps, path):
    try:
        one = stats.Stats(path).read()
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from None
    complaints = list(one.complaints())
    if not one.files:
        raise Trouble(complaints[0])
    job.notes += complaints
    one.advice = run(plfs, maps, ["advise", path], quiet=True) or []
    job.stats.append(one)


def is_traces(path):
    try:
        return any(name.startswith("trace.") for name in os.listdir(path))
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}") from None


def calls_of(plfs, path, most):
    """The first @most calls or runs of the traces in a directory, and how many there are in all."""
    process = subprocess.Popen([plfs, "report", "--json", "-v", "--", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    calls, nr = [], 0
    for line in process.stdout:
        if line.startswith(b'{"type": "call"'):
            nr += 1
            if nr <= most:
                calls.append(json.loads(line.decode("utf-8", "surrogateescape")))
    process.wait()
    return calls, nr


def load(plfs, maps, names):
    job = Job()
    named = False
    for name in names:
        add_parts(plfs, name)
        if os.path.isdir(name) and is_traces(name):
            lines = run(plfs, maps, ["report", name])
            if lines is None:
                raise Trouble("")
            job.traces.append(lines)
        elif os.path.isdir(name):
            directory(job, plfs, maps, name)
            named = True
        elif os.path.isfile(name) and stats.is_one(name):
            read_stats(job, plfs, maps, name)
        else:
            job.files += index_of(plfs, maps, name)
            named = True
    join_traces(job, plfs, maps, named)
    join_stats(job, plfs, maps, named or bool(job.traces))
    for f in job.files:
        f.join()
    return job
