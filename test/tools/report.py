#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report.py CHECK FILE [ARGUMENT...]: compares what plfs report printed with what is known of the job."""
import csv
import html
import html.parser
import json
import os
import random
import struct
import sys

FILE, MORE = sys.argv[2], sys.argv[3:]


def facts():
    lines = [json.loads(line) for line in open(FILE)]
    assert lines[0]["type"] == "file" and all(w["type"] == "writer" for w in lines[1:]), lines[0]["type"]
    return lines[0], lines[1:]


def equal(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, not {want!r}")


def owners(f):
    """[(offset, writer)] of the sampled bytes."""
    nr = len(f["owners"])
    return [(f["size"] * (2 * i + 1) // (2 * nr), no) for i, no in enumerate(f["owners"])]


def cells(f):
    """[(column, row, writer)] of the picture offset x time."""
    for y, row in enumerate(f["offset_time"]):
        x = 0
        for no, nr in row:
            for _ in range(nr):
                if no >= 0:
                    yield x, y, no
                x += 1


def strided():
    """ranks, count, block; then how many logs are open. Writer i has the blocks i, i + ranks, ..."""
    f, writers = facts()
    ranks, count, block = map(int, MORE[:3])
    size = ranks * count * block
    equal("size", (f["size"], f["bytes"], f["pieces"]), (size, size, ranks * count))
    equal("logs", (f["logs"], f["open_logs"], f["writers"], f["hosts"]), (ranks, int(MORE[3]) if MORE[3:] else 0, ranks, 1))
    equal("complete", (f["complete"], f["damaged_blocks"], f["lost_blocks"], f["overwritten_bytes"]), (True, 0, 0, 0))
    equal("common sizes", f["common_sizes"], [[block, ranks * count]])
    equal("sizes", f["sizes"], [[1 << block.bit_length() - 1, ranks * count, size]])
    for no, w in enumerate(writers):
        equal(f"writer {no}", (w["no"], w["bytes"], w["pieces"], w["first_offset"], w["end_offset"]),
              (no, count * block, count, no * block, ((count - 1) * ranks + no + 1) * block))
        assert w["strided"] >= count - 2 and w["sequential"] + w["strided"] + w["random"] == count, w
        assert f["from_ns"] <= w["from_ns"] <= w["to_ns"] <= f["to_ns"] and w["to_ns"] - w["from_ns"] < 60e9, w
    for off, no in owners(f):
        equal(f"the owner of byte {off}", no, off // block % ranks)
    equal("the beginning", f["beginning"][:20], [[i * block, block, i % ranks] for i in range(20)])
    assert abs(sum(sum(line["bytes"]) for line in f["bandwidth"]) - size) < 500, "bytes over time"
    for row in f["writers_and_offsets"]:
        assert abs(sum(row) - count * block) < 128, sum(row)
        assert min(row) > 0 or ranks * block > size / len(row), row
    rows = len(f["offset_time"])
    for no in range(ranks):  # each wrote all over the file, from its beginning to its end
        mine = [(x, y) for x, y, who in cells(f) if who == no]
        assert min(y for _, y in mine) < rows * 0.1 and max(y for _, y in mine) > rows * 0.9, (no, len(mine))
        assert sorted(mine)[0][1] <= sorted(mine)[-1][1], "the file's end was written before its beginning"


def segments():
    f, writers = facts()
    ranks, block = map(int, MORE)
    equal("pieces", (f["pieces"], f["size"], len(writers)), (ranks, ranks * block, ranks))
    for off, no in owners(f):
        equal(f"the owner of byte {off}", no, off // block)
    height = len(f["offset_time"]) // ranks
    for x, y, no in cells(f):
        assert no in (y // height, (y - 1) // height), (x, y, no)
    for no, row in enumerate(f["writers_and_offsets"]):
        part = len(row) // ranks
        equal(f"where {no} wrote", [v > 0 for v in row], [i // part == no for i in range(len(row))])


def overwritten():
    f, writers = facts()
    equal("bytes", (f["bytes"], f["size"], f["overwritten_bytes"], len(writers)), (600000, 400000, 200000, 5))
    last = max(writers, key=lambda w: w["from_ns"])["no"]
    for off, no in owners(f):
        equal(f"the owner of byte {off}", writers[no]["no"] == last, off < 200000)


def cut():
    f, writers = facts()
    last = max(writers, key=lambda w: w["from_ns"] if w["bytes"] == 200000 else 0)["no"]
    for off, no in owners(f):
        equal(f"the owner of byte {off}", no, last if off < 50000 else -1)


def anew():
    f, writers = facts()
    equal("bytes", (f["bytes"], f["size"], len(writers)), (100000, 100000, 1))


def places():
    rng = random.Random(7)
    return [(rng.randrange(0, 5000000), rng.choice([1, 100, 7000, 12345])) for _ in range(500)]


def write_random():
    fd = os.open(FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    for off, length in places():
        os.pwrite(fd, b"x" * length, off)
    os.close(fd)


def random_places():
    f, writers = facts()
    equal("bytes", (f["bytes"], f["pieces"]), (sum(n for _, n in places()), 500))
    equal("common sizes", sorted(f["common_sizes"]), sorted([n, [m for _, m in places()].count(n)] for n in (1, 100, 7000, 12345)))
    assert writers[0]["random"] > 490, writers
    for off, no in owners(f):
        equal(f"the owner of byte {off}", no, 0 if any(a <= off < a + n for a, n in places()) else -1)


BRICK = (12, 40, 30, 50)  # planes, rows and columns of a brick, in elements of 50 bytes; 2 x 2 x 2 bricks


def write_brick():
    """Brick MORE[0] of a cube: piece by piece, row by row, plane by plane."""
    planes, rows, columns, element = BRICK
    brick = int(MORE[0])
    z0, y0, x0 = brick // 4 * planes, brick // 2 % 2 * rows, brick % 2 * columns
    fd = os.open(FILE, os.O_WRONLY | os.O_CREAT, 0o600)
    for z in range(planes):
        for y in range(rows):
            off = (((z0 + z) * 2 * rows + y0 + y) * 2 * columns + x0) * element
            os.pwrite(fd, b"x" * columns * element, off)
    os.close(fd)


def bricks():
    f, writers = facts()
    planes, rows, columns, element = BRICK
    size = 8 * planes * rows * columns * element
    equal("sizes", (f["size"], f["bytes"], f["pieces"], len(writers)), (size, size, 8 * planes * rows, 8))
    assert f["records"] < 200, f["records"]  # they are nested runs
    first = {((no // 4 * planes * 2 * rows + no // 2 % 2 * rows) * 2 * columns + no % 2 * columns) * element: no for no in range(8)}
    brick = [first[w["first_offset"]] for w in writers]
    for off, no in owners(f):
        x, y, z = off // element % (2 * columns), off // element // (2 * columns) % (2 * rows), off // element // (2 * columns) // (2 * rows)
        equal(f"the owner of byte {off}", brick[no], z // planes * 4 + y // rows * 2 + x // columns)


class Page(html.parser.HTMLParser):
    VOID = {"meta", "link", "br", "img", "image"}

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text, self.headings = [], {}, "", []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.seen[tag] = self.seen.get(tag, 0) + 1
        assert tag not in ("script", "link", "iframe", "object"), tag
        assert not any(name.startswith("on") for name in attrs), attrs
        for name in ("src", "href"):
            assert attrs.get(name, "#").startswith(("#", "data:image/png")), attrs
        if tag == "svg":
            assert attrs["role"] == "img" and attrs["aria-labelledby"], attrs
        if tag in ("h1", "h2", "h3"):
            level = int(tag[1])
            assert level <= (self.headings[-1] if self.headings else 0) + 1, (self.headings, tag)
            self.headings.append(level)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            equal("end of", tag, self.open.pop())

    def handle_data(self, data):
        self.text += data


def hints():
    """All that plfs advise says, with its reasons."""
    text = html.unescape(open(FILE, encoding="utf-8").read())
    for line in map(json.loads, open(MORE[0])):
        assert f"<code>{line['advice']}</code>: {line['reason']}." in text, line


def page():
    """Well-formed, without scripts and network, each picture with its words; and it says the texts."""
    data = open(FILE, encoding="utf-8").read()
    p = Page()
    p.feed(data)
    p.close()
    equal("open at the end", p.open, [])
    equal("descriptions", p.seen.get("desc", 0), p.seen.get("svg", 0))
    equal("captions", p.seen.get("figcaption", 0), p.seen.get("figure", 0))
    assert "prefers-color-scheme: dark" in data and '<html lang="en">' in data
    assert len(data) < 5e6, len(data)
    for text in MORE:
        assert text in p.text, f"the page does not say: {text}"


def table():
    rows = list(csv.DictReader(open(FILE)))
    equal("rows", [(r["bytes"], r["pieces"], r["ended"]) for r in rows], [("50000", "50", "1")] * 4)


def perfetto():
    events = json.load(open(FILE))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    equal("slices", [e["args"]["bytes"] for e in slices], [50000] * 4)
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in slices), slices
    assert any(e["ph"] == "C" for e in events)


def trace():
    """Traces into the directory FILE: of 4 ranks, as plfs-stats(5) has them. Rank i writes quarter 3 - i of 4 * 80000 bytes, in
    80 writes of 1000 at 1 kHz, a second behind rank i - 1, the first 40 as a run. Rank 0 is first in the last of 300 s."""
    words = MORE
    start = 1795000000 * 10**9

    def word(kind, b1=0, h2=0, w4=0, q8=0):
        return struct.pack("<BBHIQ", kind, b1, h2, w4, q8 % 2**64)

    def call(kind, stream, ns, dur, off, length):
        e = max(dur.bit_length() - 11, 0)
        return word(kind, stream, (dur >> e) | e << 11, ns // 64 % 2**32, off | length << 40)

    for rank in range(4):
        path = b"/plfs/a/long/name/of/a/file/s"
        out = [word(32, 3, 7, 1234, 1), *(struct.pack("<BBH12s", 33, len(path[i:i + 12]), 7, path[i:i + 12]) for i in range(0, len(path), 12))]
        first = (300 + rank) * 10**9
        base = 80000 * (3 - rank)
        out += [word(35, q8=first), word(34, 3, q8=base), call(1, 3, first - 5000, 2000, 0, 0o101)]
        out += [call(4, 3, first, 500 * 1000, 0, 1000), word(16, w4=40, q8=1000), word(17, w4=40 * 10**6 // 64, q8=20 * 10**6)]
        for i in range(40, 80):
            one = call(4 if i % 2 else 5, 3, first + i * 10**6, 500 * 1000 + (10**8 if (rank, i) == (2, 79) else 0), 1000 * i, 1000)
            out += [word(36, q8=1000), one[:13] + b"\0\0\0"] if i == 50 else [one]
        out += [call(4 + 64, 3, first + 10**9 // 2, 1000, 0, 28), call(3, 3, first + 9 * 10**8, 100 * 1000, 0, 500),
                call(2, 3, first + 9 * 10**8 + 10**6, 5000, 0, 0)]
        if "damaged" in words and rank == 1:
            out.insert(20, word(99))
        if "full" in words:
            out += [word(47), word(4, 77)]
        head = struct.pack("<8sIIQIIIIIIQQ64s64s64s", b"PLFSTRC1", 2 if "newer" in words else 1, 4096, start, 64, 100 + rank, rank, 4,
                           0 if "killed" in words and rank == 3 else 1, 0, 7 if "full" in words else 0, 7000 if "full" in words else 0,
                           b"n1-0123abcd", b"4711", b"sim").ljust(4096, b"\0")
        data = head + b"".join(out)
        with open(f"{FILE}/trace.n{1 + rank // 2}-0123abcd.{100 + rank}.0", "wb") as f:
            f.write(data[:3000] if "cut" in words and rank == 2 else data[:-5] if "torn" in words else data)


def traced():
    lines = [json.loads(line) for line in open(FILE)]
    job, f, writers = lines[0], lines[1], lines[2:]
    equal("job", (job["type"], job["job"], job["processes"], job["left_out"]), ("trace", "4711", 4, 0))
    equal("file", (f["source"], f["file"], f["size"], f["bytes"], f["pieces"], f["errors"], f["opens"], f["closes"], f["read_bytes"]),
          ("trace", "/plfs/a/long/name/of/a/file/s", 320000, 320000, 320, 4, 4, 4, 2000))
    equal("common sizes", f["common_sizes"], [[1000, 320]])
    start = 1795000000 * 10**9
    for rank, w in enumerate(writers):
        equal(f"writer {rank}", (w["no"], w["rank"], w["host"], w["pid"], w["program"], w["bytes"], w["pieces"], w["first_offset"], w["end_offset"]),
              (rank, rank, f"n{1 + rank // 2}", 100 + rank, "sim", 80000, 80, 80000 * (3 - rank), 80000 * (4 - rank)))
        equal("kinds", (w["sequential"], w["strided"], w["random"]), (80, 0, 0))
        begin = start + (300 + rank) * 10**9
        assert abs(w["from_ns"] - begin) < 64 and abs(w["to_ns"] - begin - 79500000 - (10**8 if rank == 2 else 0)) < 10**5, (w, begin)
        assert abs(w["seconds"] - 0.04 - (0.1 if rank == 2 else 0)) < 1e-4 and abs(w["slowest"] - (0.1005 if rank == 2 else 0.0005)) < 1e-4, w
    for off, no in owners(f):
        equal(f"the owner of byte {off}", no, 3 - off // 80000)
    width, height = 480, len(f["offset_time"])
    for x, y, no in cells(f):
        t = x / width * (f["to_ns"] - f["from_ns"]) / 1e9
        assert no - 0.02 < t < no + 0.25, (x, no, t)
        assert y * 4 // height in (3 - no, min(3 - no + 1, 3)), (y, no)
    for line in f["bandwidth"]:
        assert abs(sum(line["bytes"]) - 160000) < 300, line["host"]


def stats():
    """A stats file of the job whose facts are in FILE: path, name, then what is special. Rank 0 has the last part."""
    f, writers = facts()
    name, special = MORE[0], MORE[1:]
    for w in writers:
        begin = f["from_ns"] // 1000000000
        rank = len(writers) - 1 - w["no"]
        line = {"plfs_stats": 2 if "newer" in special else 1, "job": "4711", "host": w["node"], "pid": w["pid"], "start": begin + 0.0,
                "rank": rank, "ranks": len(writers), "program": "writer", "ended": rank != 1, "file": name, "stored": "logs", "files": 1,
                "opens": 1, "closes": 1, "end": f["size"],
                "write": {"calls": 50, "bytes": 50000, "seconds": 0.5, "slowest": 0.25 + rank / 100, "slowest_at": begin + 2.0,
                          "first": begin + 1.0, "last": begin + 3.0 + rank, "strided": 48, "random": 2,
                          "sizes": [0] * 9 + [50], "common": [{"len": 1000, "stride": 4000, "calls": 49}]},
                "read": {"calls": 5, "bytes": 5000} if rank == 2 else {},
                "records": 1, "rate": {"from": begin + 1.0, "width": 0.0625 * (1 + rank // 2), "written": [20000, 30000]}}
        print(json.dumps(line))
    reader = dict(line, pid=1, rank=None, write={}, read={"calls": 7, "bytes": 70000}, rate={})
    print(json.dumps(reader) if "reader" in special else "")
    if "null" in special:
        print(json.dumps(dict(line, file=None, files=400)))
    if "plain" in special:
        print(json.dumps(dict(line, file="/home/u/out.dat", stored="plain")))
        print(json.dumps(dict(line, pid=2, file="/home/u/out.dat", stored="plain")))
    if "cut" in special:
        print(json.dumps(line)[:100], end="")


def counted():
    """The CSV of a file and its stats."""
    rows = list(csv.DictReader(open(FILE)))
    equal("ranks", [(r["rank"], r["bytes"], r["first_offset"], r["ended"], r["seconds"]) for r in rows],
          [(str(i), "50000", str(1000 * (3 - i)), str(int(i != 1)), "0.5") for i in range(4)])


def perfetto_calls():
    events = [e for e in json.load(open(FILE))["traceEvents"] if e.get("cat") == "call"]
    equal("calls", len(events), 4 * (1 + 1 + 40 + 1 + 1 + 1))  # open, run, writes, failed write, read, close
    runs = [e for e in events if e["args"]["count"] == 40]
    equal("runs", [(e["name"], round(e["dur"] / 1e3), round((e["ts"] - runs[0]["ts"]) / 1e6), e["args"]["offset"]) for e in runs],
          [("write 40 times", 40, i, 80000 * (3 - i)) for i in range(4)])
    assert min(e["ts"] for e in events) >= 0


{"hints": hints, "strided": strided, "write_brick": write_brick, "bricks": bricks, "perfetto_calls": perfetto_calls, "stats": stats, "trace": trace, "traced": traced, "counted": counted, "segments": segments, "overwritten": overwritten, "cut": cut, "anew": anew, "write_random": write_random,
 "random": random_places, "page": page, "csv": table, "perfetto": perfetto}[sys.argv[1]]()
