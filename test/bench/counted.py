# SPDX-License-Identifier: BSD-3-Clause
"""What counters (PLFS_STATS) and a trace (PLFS_TRACE) add to a small write."""
import os
import statistics

from harness import LIBRARY, PLAIN, run, turns


def section_counted(places, out):
    place, rounds = places[-1], 3 * out.rounds
    room = place.new_room()
    os.mkdir(room + "/backend")
    base = {} if PLAIN else {"LD_PRELOAD": LIBRARY, "PLFS_MAP": f"/plfs={room}/backend{{small=0}}"}
    file = room + "/file" if PLAIN else "/plfs/file"
    envs = {"neither": base, "counters": {**base, "PLFS_STATS": room + "/s.jsonl"},
            "trace": {**base, "PLFS_TRACE": room + "/trace"}}
    result = {}
    for _, which in turns(envs, rounds):
        result.setdefault(which, []).append(run("bench_counted", [file], envs[which])["write"])
    out.details["counted"] = result
    print(f"\nA strided write of 64 bytes, {place.name}: " + ", ".join(
        "%s %.1f ns" % (which, statistics.median(times)) for which, times in result.items()), flush=True)
    for which in ("counters", "trace"):
        out.figure(f"counted/{which}", [a - b for a, b in zip(result[which], result["neither"])])
