# SPDX-License-Identifier: BSD-3-Clause
# What is in a file of hdf5_slab's rows after its ranks were killed: near_rows.py FILE OFFSET DONE CHECK [lost], under the library. OFFSET
# is that of the dataset; DONE.RANK has a byte for each row that was written; lost: those of ranks 0 and 2 are, which plfs check names in
# CHECK if the file was closed. If it was not, they may be as if they had not been written.
import errno
import os
import re
import struct
import sys

ROWS, COLS, RANKS = 240, 500, 4
path, offset, done, check = sys.argv[1], int(sys.argv[2]), sys.argv[3], open(sys.argv[4]).read()
lost_ranks = (0, 2) if sys.argv[5:] else ()
written = [os.path.getsize(f"{done}.{rank}") for rank in range(RANKS)]
fd = os.open(path, os.O_RDONLY)
closed = min(written) == ROWS // RANKS
nr = {"right": 0, "lost": 0, "unwritten": 0}
for row in range(ROWS):
    want = struct.pack(f"<{COLS}i", *(row * 1000 + c for c in range(COLS)))
    at = offset + row * len(want)
    try:
        got = os.pread(fd, len(want), at)
    except OSError as e:
        got = e.errno
    state = row // RANKS - written[row % RANKS]  # < 0: written; 0: perhaps
    if got == want and (state <= 0 and row % RANKS not in lost_ranks):
        nr["right"] += 1
    elif row % RANKS in lost_ranks and state < 0 and (got == errno.EIO or not closed and not got.strip(b"\0")):
        nr["lost"] += 1
    elif state >= 0 and (got == errno.EIO or not got.strip(b"\0")):
        nr["unwritten"] += 1
    else:
        sys.exit(f"row {row}, state {state}: {got if isinstance(got, int) else got[:40]!r}")
if bool(nr["lost"]) != bool(lost_ranks) or not nr["right"]:
    sys.exit(f"{nr}")
said = [(int(a), int(b) + 1) for a, b in re.findall(r"lost: bytes (\d+) to (\d+)", check)]
end_of_said = offset + ROWS * COLS * 4
total = re.search(r"more ranges; in all (\d+) bytes", check)  # plfs check names the first hundred
if total:
    end_of_said = said[-1][1]
    if int(total[1]) < nr["lost"] * COLS * 4:
        sys.exit(f"{nr['lost']} rows are lost, and plfs check says {total[0]}")
for row in range(ROWS if closed else 0):
    at, end = offset + row * COLS * 4, offset + (row + 1) * COLS * 4
    is_said = any(a <= at and end <= b for a, b in said)
    if end <= end_of_said and (is_said != (row % RANKS in lost_ranks) or any(a < end and at < b for a, b in said) != is_said):
        sys.exit(f"row {row} is {'' if is_said else 'not '}lost, says plfs check: {said[:10]}")
print(nr, said[:5], total and total[0])
