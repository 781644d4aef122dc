# SPDX-License-Identifier: BSD-3-Clause
"""The same numbers for other programs: a table as CSV, a trace as Perfetto and Chrome read it."""
import csv
import io
import json

import load
import page
import stats

MOST_CALLS = 500000  # a viewer does not take many more

INDEX = ["records", "logs", "sequential", "strided", "random", "first_offset", "end_offset"]
COLUMNS = ["file", "no", "rank", "host", "pid", "bytes", "pieces", "from", "to", "ended"] + INDEX + \
    ["seconds", "slowest", "read_bytes", "read_calls"]


def table(job):
    """A line for each process and file; what is not known is empty."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for f in job.files:
        indexed = {w["no"]: w for w in f.writers}
        for r in f.rows:
            w = indexed.get(r.no, {})
            lines.writerow([f.path, r.no, r.rank, r.host, r.pid, r.bytes, r.pieces, f"{r.begin:.6f}", f"{r.end:.6f}", int(r.ended)]
                           + [w.get(c) for c in INDEX] + [r.seconds, r.slowest, r.read_bytes, r.read_calls])
    return out.getvalue()


def perfetto(job, plfs):
    """A track for each process, with its calls if they were traced; a counter of bytes a second for each host."""
    events, hosts = [], {}
    first = min((f.begin for f in job.files if f.rows), default=0)

    def host_no(name):
        if name not in hosts:
            hosts[name] = len(hosts) + 1
            events.append({"ph": "M", "name": "process_name", "pid": hosts[name], "args": {"name": f"host {name}"}})
        return hosts[name]

    for lines in job.traces:
        where = lines[0]["directory"]
        calls, nr = load.calls_of(plfs, where, MOST_CALLS)
        first = min([first] + [c["begin_ns"] / 1e9 for c in calls])
        if nr > len(calls):
            job.notes.append(f"{where}: has {nr:,} calls and runs; the first {len(calls):,} are in the trace")
        for c in calls:
            many = f" {c['count']} times" if c["count"] > 1 else ""
            events.append({"ph": "X", "name": c["kind"] + many + (", failed" if c["failed"] else ""), "cat": "call",
                           "pid": host_no(stats.host_of(c["node"])), "tid": c["pid"],
                           "ts": c["begin_ns"] / 1e3 - first * 1e6, "dur": c["span_ns"] / 1e3,
                           "args": {n: c[n] for n in ("file", "offset", "bytes", "count", "stride")}})

    for f in job.files:
        short = f.path.rsplit("/", 1)[-1]
        for r in f.rows:
            pid = host_no(r.host)
            events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": r.pid, "args": {"name": f.name(r.no)}})
            events.append({"ph": "X", "name": "write " + short, "cat": "file", "pid": pid, "tid": r.pid,
                           "ts": (r.begin - first) * 1e6, "dur": (r.end - r.begin) * 1e6,
                           "args": {"file": f.path, "bytes": r.bytes, "pieces": r.pieces}})
        begin, width, lines, _ = page.rates(f) if f.rows else (0, 0, [], "")
        for host, values in lines:
            pid = host_no(host)
            for i, value in enumerate(values):
                events.append({"ph": "C", "name": "bytes a second", "pid": pid, "ts": max(begin - first + i * width, 0) * 1e6,
                               "args": {short: round(value)}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"
