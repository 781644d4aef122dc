# SPDX-License-Identifier: BSD-3-Clause
"""report.py RUNS NEAR OUT: the tables of make bench-cluster from its runs, one JSON object a line; all as JSON to OUT."""
import json
import os
import platform
import statistics
import sys
import time

GOALS = {("ceph-ec", 4096): (12, 0.9), ("ceph-ec", 47001): (12, 0.9)}  # over N-1, over N-N


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def rate(run, phase):
    return 4 * run["block"] * run["blocks"] / 1e6 / run[phase]


def ratios(rounds, phase, other):
    return [rate(r["plfs"], phase) / rate(r[other], phase) for r in rounds]


def text(r):
    return "%6.2f (%.2f..%.2f)" % (r["median"], r["min"], r["max"])


runs = [json.loads(line) for line in open(sys.argv[1])]
rows = {}
for run in runs:
    rows.setdefault((run["engine"], run["block"], run["row"]), {}).setdefault(run["round"], {})[run["variant"]] = run
out = {"machine": " ".join(platform.uname()), "processors": os.cpu_count(), "date": time.strftime("%Y-%m-%d %H:%M"),
       "figures": {}, "rows": [], "runs": runs}
print("4 ranks on 2 hosts, write with fsync, read of what the other host wrote; ratios of speed: median (least..greatest);\n"
      "blocks: that a rank writes, and in brackets where it is fewer in a direct N-1 file\n")
print("%-17s %8s %12s | %8s %8s %8s MB/s | %-22s %-22s | %-22s" % (
    "engine", "block", "blocks", "N-1", "N-N", "plfs", "plfs/N-1", "plfs/N-N", "read, plfs/N-N"))
for (engine, block, blocks), by_round in sorted(rows.items()):
    rounds = [r for r in by_round.values() if len(r) == 3]
    if not rounds:
        continue
    speed = {v: statistics.median(rate(r[v], "write_fsync") for r in rounds) for v in ("n1", "nn", "plfs")}
    row = {"engine": engine, "block": block, "blocks": blocks, "mb_per_s": speed,
           "over_n1": spread(ratios(rounds, "write_fsync", "n1")), "over_nn": spread(ratios(rounds, "write_fsync", "nn")),
           "read_over_nn": spread(ratios(rounds, "read_shifted", "nn"))}
    out["rows"].append(row)
    if engine == "ceph-ec" and blocks > 1:  # the rows of make bench's table (test/bench/table.py)
        for name, other in (("N-1", "n1"), ("N-N", "nn")):
            out["figures"][f"cluster/{name}/{block}"] = ratios(rounds, "write_fsync", other)
    goal = GOALS.get((engine, block)) if blocks > 1 else None
    met = "" if not goal else "  goals %g, %g: %s" % (
        *goal, "met" if row["over_n1"]["median"] >= goal[0] and row["over_nn"]["median"] >= goal[1] else "missed")
    direct = rounds[0]["n1"]["blocks"]
    print("%-17s %8d %12s | %8.2f %8.2f %8.2f      | %-22s %-22s | %-22s%s" % (
        engine, block, blocks if direct == blocks else f"{blocks} ({direct})", speed["n1"], speed["nn"], speed["plfs"],
        text(row["over_n1"]), text(row["over_nn"]), text(row["read_over_nn"]), met))


# name of the run: (text, what is divided by what, goal, whether it is the least that it may be); None: a floor, to compare with
NEAR = {
    "wait": [("wait for a checkpoint near, over directly in CephFS", "near", "home", 0.1, False),
             ("a file for each rank there, over directly in CephFS", "nn", "home", None, False),
             ("wait for a checkpoint near, over a file for each rank there", "near", "nn", 1.2, False)],
    "drain": [("rate of the drain over cp and sync", "cp", "drain", 0.9, True)],
    "compute": [("time of computing ranks, with a drain at 200 MB/s", "with", "without", 1.03, False),
                ("time of computing ranks, with dd past the cache at 200 MB/s", "dd", "without", None, False)],
}
near = {}
for line in open(sys.argv[2]):
    run = json.loads(line)
    near.setdefault((run["engine"], run["name"]), []).append(run)
if near:
    print("\n8 ranks on 2 hosts with near= in memory, open to close without fsync; medians (least..greatest)\n")
    print("%-17s %-78s %-8s | %-22s" % ("engine", "", "goal", "ratio"))
for (engine, name), these in near.items():
    kind, _, size = name.partition("/")
    block, _, blocks = size.partition("/")
    for text_of, above, below, goal, more in NEAR[kind]:
        r = [run[above] / run[below] for run in these]
        s = spread(r)
        bound = "" if goal is None else "%s %g" % (">=" if more else "<=", goal)
        met = "" if goal is None else " met" if (s["median"] >= goal if more else s["median"] <= goal) else " MISSED"
        out["figures"][f"cluster/near/{engine}/{name}/{below if goal else f'{above} over {below}'}"] = r
        print("%-17s %-78s %-8s | %-22s%s; seconds %.3f, %.3f" % (
            engine, text_of + (f", {blocks} x {block} B" if blocks else ""), bound, text(s), met,
            *(statistics.median(run[key] for run in these) for key in (above, below))))
    if kind == "compute":
        share = [run["helper_cpu"] / run["helper_wall"] / os.cpu_count() for run in these]
        print("%-17s %-78s %8s | %-22s" % (engine, f"processor time of the drain, of all {os.cpu_count()}", "", text(spread(share))))
        out["figures"][f"cluster/near/{engine}/compute/share"] = share
out["near"] = near and [run for these in near.values() for run in these]
with open(sys.argv[3], "w") as f:
    json.dump(out, f, indent=1)
print("\neverything measured is in", sys.argv[3])
