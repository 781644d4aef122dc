#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report.py CSV CALLS DIR PLAIN [streams]: compares plfs report's table of the files below DIR with what strace (CALLS.RANK) saw the
same job's ranks write below PLAIN. streams: the ranks write by fwrite(). A plain file's stream has a buffer of the file system's
block, a logical file's one of BUFSIZ. So the bytes are compared, and not the number of calls."""
import csv
import glob
import os
import re
import sys

TABLE, CALLS, DIR, PLAIN = sys.argv[1:5]

want = {}
for path in glob.glob(CALLS + ".*"):
    rank = int(path.rsplit(".", 1)[1])
    for line in open(path, errors="replace"):
        call = re.search(r"p?writev?2?(?:64)?\(\d+<([^>]*)>.*= (\d+)$", line)
        if call and call[1].startswith(PLAIN + "/"):
            one = want.setdefault((os.path.basename(call[1]), rank), [0, 0])
            one[0] += 1
            one[1] += int(call[2])
got, processes = {}, set()
for row in csv.DictReader(open(TABLE)):
    got[os.path.basename(row["file"]), int(row["rank"])] = [int(row["pieces"]), int(row["bytes"])]
    processes.add((row["host"], row["pid"]))
    if not (float(row["from"]) <= float(row["to"]) and 0 < float(row["seconds"]) < 600 and row["ended"] == "1"):
        sys.exit(f"times of {row}")
    if (int(row["end_offset"] or 0)) > os.path.getsize(PLAIN + "/" + os.path.basename(row["file"])):
        sys.exit(f"bytes behind the end: {row}")
if sys.argv[5:] == ["streams"]:
    for k in set(got) & set(want):
        if not 0 < got[k][0] <= got[k][1]:
            sys.exit(f"{k}: {got[k][0]} calls")
        got[k][0] = want[k][0]
if not want or got != want:
    differ = sorted(k for k in set(got) | set(want) if got.get(k) != want.get(k))
    sys.exit(f"{len(differ)} of {len(want)} differ; [calls, bytes] of the report and of strace: "
             + "; ".join(f"{k}: {got.get(k)}, {want.get(k)}" for k in differ[:8]))
print(f"{len({f for f, _ in got})} files, {len({r for _, r in got})} ranks: {sum(c for c, _ in got.values())} calls, "
      f"{sum(b for _, b in got.values())} bytes, as strace saw them")
