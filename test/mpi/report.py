#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report.py WORK PLAIN: compares what plfs report says of a job (WORK/said.*) with what strace (WORK/calls.RANK) saw the same
job's ranks do below PLAIN, and with where and when they ran (WORK/who.RANK). Ranks of a job that was killed (WORK/killed) have
done a part of these calls, as many as WORK/killed says, or more. Of ranks that write by fwrite() (WORK/streams) the bytes are
compared and not the number of calls: a plain file's stream has a buffer of the file system's block, a logical file's of BUFSIZ."""
import bisect
import collections
import csv
import glob
import html
import json
import os
import re
import sys

WORK, PLAIN = sys.argv[1:]
KILLED = os.path.exists(WORK + "/killed")
STREAMS = os.path.exists(WORK + "/streams")
SIEVED = os.path.exists(WORK + "/sieved")  # ROMIO reads before it writes, up to where the file ends just then
WRITES = ("write", "writev", "pwrite64", "pwritev")
READS = ("read", "readv", "pread64", "preadv")
KINDS = {**dict.fromkeys(WRITES, "write"), **dict.fromkeys(READS, "read"), "close": "closes", "fsync": "syncs",
         "fdatasync": "syncs", "ftruncate": "truncates"}
SLACK = 0.05  # seconds: clocks of the kernel's files go by ticks

Call = collections.namedtuple("Call", "kind file off len")
Rank = collections.namedtuple("Rank", "host pid start calls writes")


def fail(text):
    sys.exit(text)


def equal(what, got, want):
    if got != want:
        fail(f"{what}: the report has {got!r}, known is {want!r}")


# ---- what is known ----

def lines_of(path):
    """The lines of strace, those whole again that another thread's came between."""
    begun = {}
    for line in open(path, errors="replace"):
        thread, line = line.rstrip("\n").split(" ", 1)
        if line.endswith(" <unfinished ...>"):
            begun[thread] = line[:-len(" <unfinished ...>")]
            continue
        resumed = re.match(r"\s*<\.\.\. \w+ resumed>(.*)", line)
        yield begun.pop(thread) + resumed[1] if resumed and thread in begun else line.lstrip()


def calls_of(path):
    """The calls of a rank on files below PLAIN, in their order."""
    calls, at = [], {}
    for line in lines_of(path):
        opened = re.match(r"(?:open|openat|creat)\(.*= (\d+)<([^>]*)>$", line)
        other = re.match(r"(\w+)\((\d+)<([^>]*)>(.*)\)\s+= (\d+)$", line)
        fd, name = opened.group(1, 2) if opened else other.group(2, 3) if other else (0, "")
        if os.path.dirname(name) != PLAIN or os.path.basename(name) not in FILES:
            continue
        name = os.path.basename(name)
        if opened:
            at[fd] = 0
            calls.append(Call("opens", name, 0, 0))
            continue
        what, args, ret = other[1], other[4], int(other[5])
        if what == "lseek":
            at[fd] = ret
            continue
        own = what.startswith("p")
        off = int(args.rsplit(", ", 1)[1]) if own else at.get(fd, 0)
        if KINDS[what] in ("write", "read") and not own:
            at[fd] = off + ret
        calls.append(Call(KINDS[what], name, off, ret))
    return calls


def ranks_of():
    ranks = {}
    for path in glob.glob(WORK + "/who.*"):
        rank, host, pid, start = open(path).read().split()
        calls = calls_of(f"{WORK}/calls.{rank}")
        ranks[int(rank)] = Rank(host, int(pid), float(start), calls, [c for c in calls if c.kind == "write"])
    return ranks


def sums(calls):
    """{file: [calls, bytes]}"""
    out = {}
    for c in calls:
        one = out.setdefault(c.file, [0, 0])
        one[0] += 1
        one[1] += c.len
    return out


FILES = {f for f in os.listdir(PLAIN) if not f.endswith(".lock")}  # OMPIO's own, where there are two hosts
RANKS = ranks_of()
BEGAN, ENDED = float(open(WORK + "/began").read()), float(open(WORK + "/ended").read())
HOSTS = {r.host for r in RANKS.values()}


def bounds(rank):
    """(least, most) calls that the rank has made."""
    nr = len(RANKS[rank].writes)
    if not KILLED:
        return nr, nr
    words = open(WORK + "/killed").read().split()  # "rows BYTES": WORK/done.RANK has a byte a row; "step FILE": that is complete
    if words[0] == "step":
        return max((i + 1 for i, c in enumerate(RANKS[rank].writes) if c.file == words[1]), default=0), nr
    rows = [i for i, c in enumerate(RANKS[rank].writes) if c.len == int(words[1])] + [nr, nr]
    done = os.path.getsize(f"{WORK}/done.{rank}") if os.path.exists(f"{WORK}/done.{rank}") else 0
    return rows[done - 1] + 1 if done else 0, rows[done] + 1


def made(how, rank, said, part):
    """How many calls the rank has made, for @part of which (0: calls, 1: bytes) the report has @said, by file."""
    least, most = bounds(rank)
    for nr in range(least, most + 1):
        if {f: n[part] for f, n in sums(RANKS[rank].writes[:nr]).items()} == said:
            return nr
    return fail(f"by the {how}, rank {rank} has {said}, known is "
                f"{[sums(RANKS[rank].writes[:n]) for n in sorted({least, most})]}")


# ---- the table ----

def table(how):
    """The lines of plfs report --format=csv, by rank and file."""
    by_rank, where = {}, {(r.host, r.pid): no for no, r in RANKS.items()}
    for row in csv.DictReader(open(f"{WORK}/said.{how}")):
        rank, name = where.get((row["host"], int(row["pid"]))), os.path.basename(row["file"])
        if rank is None:
            fail(f"by the {how}, a process wrote that is no rank: {row}")
        if row["rank"] or how != "index":
            equal(f"by the {how}, the rank of process {row['pid']} on {row['host']}", int(row["rank"]), rank)
        if name in by_rank.setdefault(rank, {}):
            fail(f"by the {how}, rank {rank} is there twice: {row}")
        by_rank[rank][name] = row
    return by_rank


def check_times(how, by_rank):
    """All in the time in which the rank ran; no checkpoint before all ranks were through with the one before."""
    last = {}
    for rank, rows in by_rank.items():
        for name, row in rows.items():
            begin, end = float(row["from"]), float(row["to"])
            if not RANKS[rank].start - SLACK <= begin <= end <= ENDED + SLACK:
                fail(f"by the {how}, rank {rank} ran from {RANKS[rank].start} to {ENDED} at most: {row}")
            if row["seconds"] and not 0 < float(row["slowest"]) <= 1.001 * float(row["seconds"]) <= 1.001 * (end - begin + SLACK):
                fail(f"by the {how}, time in calls: {row}")
            step = re.match(r"ck\.(\d+)\.", name)
            if step:
                span = last.setdefault(int(step[1]), [begin, end])
                last[int(step[1])] = [min(span[0], begin), max(span[1], end)]
    for a, b in zip(sorted(last), sorted(last)[1:]):
        if last[a][1] > last[b][0] + SLACK:
            fail(f"by the {how}, step {a} was written until {last[a][1]}, step {b} from {last[b][0]}")


def check_table(how):
    """{rank: calls made}"""
    by_rank, nr = table(how), {}
    check_times(how, by_rank)
    for rank, r in RANKS.items():
        rows = by_rank.get(rank, {})
        part = 1 if how == "index" or STREAMS else 0
        nr[rank] = made(how, rank, {f: int(row["bytes" if part else "pieces"]) for f, row in rows.items()}, part)
        writes = r.writes[:nr[rank]]
        for name, row in rows.items():
            mine = [c for c in writes if c.file == name]
            equal(f"by the {how}, bytes of rank {rank} in {name}", int(row["bytes"]), sum(c.len for c in mine))
            if row["end_offset"]:
                equal(f"where rank {rank} wrote {name}", (int(row["first_offset"]), int(row["end_offset"])),
                      (min(c.off for c in mine), max(c.off + c.len for c in mine)))
            if how == "index":
                equal(f"kinds of rank {rank} in {name}", sum(int(row[k]) for k in ("sequential", "strided", "random")), int(row["pieces"]))
                if not 0 < int(row["records"]) <= int(row["pieces"]) <= len(mine):
                    fail(f"records of rank {rank} in {name}: {row}")
            if how != "index" and (KILLED and rank % 2 == 0 or not KILLED):
                equal(f"by the {how}, whether rank {rank} ended", row["ended"], str(int(not KILLED)))
    return nr


# ---- the counts ----

def check_stats():
    """All that processes counted, not the writes alone."""
    where, lines = {(r.host, r.pid): no for no, r in RANKS.items()}, {}
    for line in map(json.loads, open(WORK + "/job.jsonl")):
        if line["file"] and os.path.basename(line["file"]) in FILES:
            lines[where[line["host"][:-9], line["pid"]], os.path.basename(line["file"])] = line
    for rank, r in RANKS.items():
        for name in FILES:
            mine, line = [c for c in r.calls if c.file == name], lines.get((rank, name), {})
            for kind in ("opens", "closes", "syncs", "truncates"):
                if kind == "truncates" and len(HOSTS) > 1:  # HDF5 sets the size if it seems another; that of other hosts may lag
                    continue
                equal(f"{kind} of rank {rank} on {name}", line.get(kind, 0), sum(c.kind == kind for c in mine))
            for kind in () if STREAMS else ("write",) if SIEVED else ("write", "read"):
                way, calls = line.get(kind, {}), [c for c in mine if c.kind == kind]
                equal(f"{kind}s of rank {rank} on {name}", (way.get("calls", 0), way.get("bytes", 0)), (len(calls), sum(c.len for c in calls)))
                sizes = [0] * 64
                for c in calls:
                    sizes[max(c.len.bit_length() - 1, 0)] += 1
                equal(f"sizes of the {kind}s of rank {rank} on {name}", way.get("sizes", []) + [0] * (64 - len(way.get("sizes", []))), sizes)
            if SIEVED:
                continue
            equal(f"the end of rank {rank} in {name}", line.get("end", 0), max((c.off + c.len for c in mine if c.kind in ("write", "read")), default=0))


# ---- whose the bytes are ----

def covered(calls):
    """Bytes of the file that some call has."""
    total = end = 0
    for off, to in sorted((c.off, c.off + c.len) for c in calls):
        total += max(to - max(off, end), 0)
        end = max(end, to)
    return total


def owners_at(f, writers, name):
    """For each sampled byte: its place, and the rank that the report says it is of; None: nobody's."""
    nr = len(f["owners"])
    for i, no in enumerate(f["owners"]):
        yield f["size"] * (2 * i + 1) // (2 * nr), None if no < 0 else writers[name][no]


def check_facts(nr):
    """plfs report --json, by the index."""
    where, files, writers = {(r.host, r.pid): no for no, r in RANKS.items()}, {}, {}
    for line in map(json.loads, open(WORK + "/said.facts")):
        if line["type"] == "file":
            name = os.path.basename(line["file"])
            files[name] = line
        elif line["type"] == "writer":
            writers.setdefault(name, {})[line["no"]] = where[line["host"], line["pid"]]
    written = {name: {rank: [c for c in r.writes[:nr[rank]] if c.file == name] for rank, r in RANKS.items()} for name in files}
    equal("the files", set(files), FILES & {c.file for rank, r in RANKS.items() for c in r.writes[:nr[rank]]})
    for name, f in files.items():
        calls = [c for mine in written[name].values() for c in mine]
        who = {rank for rank, mine in written[name].items() if mine}
        equal(f"bytes of {name}", f["bytes"], sum(c.len for c in calls))
        equal(f"writers and hosts of {name}", (f["writers"], f["hosts"]), (len(who), len({RANKS[rank].host for rank in who})))
        equal(f"damage of {name}", (f["damaged_blocks"], f["lost_blocks"], f["complete"]), (0, 0, True))
        if not KILLED:
            equal(f"size of {name}", f["size"], os.path.getsize(PLAIN + "/" + name))
            equal(f"open logs of {name}", f["open_logs"], 0)
        if not f["overwritten_is_estimate"]:
            equal(f"what is overwritten of {name}", f["overwritten_bytes"], f["bytes"] - covered(calls))
        bins = [b for host in f["bandwidth"] for b in host["bytes"]]
        total = sum(bins)
        if abs(total - f["bytes"]) > 0.5 * len(bins):  # each is rounded
            fail(f"bytes over time of {name}: {total}, known is {f['bytes']}")
        ranges = {rank: sorted((c.off, c.off + c.len) for c in mine) for rank, mine in written[name].items()}
        for off, rank in owners_at(f, writers, name):
            able = {r for r, mine in ranges.items() if any(a <= off < b for a, b in mine[:bisect.bisect(mine, (off, 1 << 62))])}
            if rank not in (able or {None}):
                fail(f"byte {off} of {name} is of rank {rank} by the report; known is that {able or 'nobody'} wrote it")


# ---- the page ----

UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
TIMES = {"s": 1, "ms": 1e-3, "\u00b5s": 1e-6}


def check_page(nr):
    """The first paragraph of each file; every picture is there."""
    text = html.unescape(open(WORK + "/said.html").read())
    for name in {c.file for rank, r in RANKS.items() for c in r.writes[:nr[rank]]}:
        lead = re.search(r"<h2[^>]*>[^<]*/" + re.escape(name) + r"</h2>\s*<p[^>]*>([^<]*)", text)
        lead = lead[1] if lead else fail(f"the page has no {name}")
        calls = {rank: [c for c in r.writes[:nr[rank]] if c.file == name] for rank, r in RANKS.items()}
        who = [rank for rank, mine in calls.items() if mine]
        said = re.match(r"(\d+) (?:ranks?|process(?:es)?) .*?on (\d+) hosts? wrote ([\d.]+) (bytes|kB|MB|GB) ", lead)
        if not said or (int(said[1]), int(said[2])) != (len(who), len({RANKS[rank].host for rank in who})):
            fail(f"{name}: {len(who)} ranks wrote it: {lead}")
        total, told = sum(c.len for mine in calls.values() for c in mine), float(said[3]) * UNITS[said[4]]
        if abs(total - told) > 0.05 * total:
            fail(f"{name}: {total} bytes: {lead}")
        took = re.search(r"it took ([\d.,]+) (s|ms|\u00b5s):", lead)
        if not took or float(took[1].replace(",", "")) * TIMES[took[2]] > ENDED - BEGAN + SLACK:
            fail(f"{name}: the job took {ENDED - BEGAN} s: {lead}")
    if text.count("<svg") < 3:
        fail("pictures are missing")


def main():
    equal("the ranks", sorted(RANKS), list(range(8)))
    nr = {how: check_table(how) for how in ("index", "stats", "traces")}
    if not nr["stats"] or not any(nr["stats"].values()):
        fail("nothing was written")
    for rank in RANKS:
        if max(n[rank] for n in nr.values()) - min(n[rank] for n in nr.values()) > 1:  # one that the kill interrupted
            fail(f"calls of rank {rank}: {[(how, n[rank]) for how, n in nr.items()]}")
    if not KILLED:
        check_stats()
    check_facts(nr["index"])
    check_page(nr["stats"])
    all_of = [c for rank, r in RANKS.items() for c in r.writes[:nr["stats"][rank]]]
    whole = sum(len(r.writes) for r in RANKS.values())
    if KILLED and len(all_of) >= whole:
        fail("the job was not killed before its end")
    print(f"{len({c.file for c in all_of})} files, {sum(n > 0 for n in nr['stats'].values())} ranks on {len(HOSTS)} hosts: {len(all_of)} calls"
          f"{f' of {whole}' if KILLED else ''}, {sum(c.len for c in all_of)} bytes, as strace saw them")


main()
