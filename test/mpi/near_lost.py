# SPDX-License-Identifier: BSD-3-Clause
# What a host can read of a file whose bytes are near on one that is lost.
#
#     near_lost.py read FILE CHECK GOT           under the library: exactly the ranges that plfs check has named in CHECK are errors; the other
#                                                bytes go to GOT
#     near_lost.py compare CHECK GOT SAVED LOGS  with what the lost host had: SAVED has its bytes, SAVED.map their logs (plfs map --json); LOGS
#                                                names its logs near, "closed" or "killed"; LOGS.home those at home, with their lengths
#
# A log that was continued behind a copy of it has bytes in both. What a killed process has not released is as if it had not been written.
import errno
import json
import os
import re
import sys

DATA_OFF = 65536  # of a log, plfs-format(5)


def merged(ranges):
    out = []
    for begin, end in sorted(ranges):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(end, out[-1][1])
        else:
            out.append([begin, end])
    return out


def said(path):
    return merged((int(a), int(b) + 1) for a, b in re.findall(r"lost: bytes (\d+) to (\d+)", open(path).read()))


def good(off, length):
    """The bytes that are read there; none: it is an error."""
    try:
        return os.pread(fd, length, off)
    except OSError as e:
        if e.errno != errno.EIO:
            raise
        return b""


def take(begin, end):
    """All bytes of a range that is not lost."""
    while begin < end:
        data = good(begin, min(65536, end - begin))
        if not data:
            sys.exit(f"{path}: an error at {begin}, lost is {lost[:20]}")
        os.pwrite(out, data, begin)
        begin += len(data)


def take_none(begin, end):
    """Its first and last byte, some between, and all at once are errors."""
    for off, length in [(off, 1) for off in [*range(begin, end, 4099), end - 1]] + [(begin, end - begin)]:
        if good(off, length):
            sys.exit(f"{path}: no error at {off}, lost is {lost[:20]}")


def compare(got, saved, logs):
    state = dict(line.split() for line in open(logs))
    home = {log: int(size) - DATA_OFF for log, size in map(str.split, open(logs + ".home"))}
    closed, killed = [], []
    for piece in map(json.loads, open(saved + ".map")):
        log = os.path.basename(piece["log"] or "")
        there = max(home.get(log, 0) - piece["log_offset"], 0) if log in state else piece["length"]
        if there < piece["length"]:
            (killed if state[log] == "killed" else closed).append((piece["offset"] + there, piece["offset"] + piece["length"]))
    got, want = open(got, "rb").read(), open(saved, "rb").read()
    for begin, end in merged(killed):  # an error, or nothing there
        if got[begin:end].strip(b"\0"):
            sys.exit(f"{saved}: other bytes in {begin} to {end - 1}")
    want = bytearray(want[:len(got)].ljust(len(got), b"\0"))
    for begin, end in killed + lost:
        want[begin:min(end, len(got))] = bytes(max(min(end, len(got)) - begin, 0))
        got = got[:begin] + bytes(max(min(end, len(got)) - begin, 0)) + got[end:]
    if got != want:
        sys.exit(f"{saved}: wrong bytes at {next(i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1])}")
    for begin, end in closed:
        if not any(b <= begin and end <= e for b, e in lost):
            sys.exit(f"{saved}: {begin} to {end - 1} are lost, and plfs check says {lost[:20]}")
    if sum(e - b for b, e in lost) > sum(e - b for b, e in merged(closed + killed)):
        sys.exit(f"{saved}: plfs check says {lost[:20]}, lost are {merged(closed + killed)}")
    print(f"{os.path.basename(saved)}: lost {lost}, not released {merged(killed)}")


if sys.argv[1] == "read":
    path, lost = sys.argv[2], said(sys.argv[3])
    fd, out = os.open(path, os.O_RDONLY), os.open(sys.argv[4], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    size = os.fstat(fd).st_size
    os.ftruncate(out, size)
    at = 0
    for begin, end in lost + [[size, size]]:
        take(at, begin)
        if end > begin:
            take_none(begin, end)
        at = end
    print("lost" if lost else "nothing lost")
else:
    lost = said(sys.argv[2])
    compare(*sys.argv[3:])
