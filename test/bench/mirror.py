# SPDX-License-Identifier: BSD-3-Clause
"""What a program waits for copies of its logs (mirror=2), which a helper makes when they are closed."""
import glob
import os
import statistics
import time

from harness import LIBRARY, MIB, PLAIN, ratios, run, spread_text, turns

BLOCK = 47001
RANKS = 4


def environment(room, how):
    if PLAIN:
        return {}, room + "/home"
    backends = room + "/home" if how == "one" else f"{room}/home,{room}/other{{mirror=2}}"
    return {"LD_PRELOAD": LIBRARY, "PLFS_MAP": f"/plfs={backends}"}, "/plfs"


def wait_for_copies(room):
    """The helper must not run beside the next program."""
    while glob.glob(room + "/home/.plfs/queue.*"):
        time.sleep(0.1)
    time.sleep(0.2)


def section_mirror(places, out):
    for place in places:
        total = (64 if out.quick else 256) * MIB
        seconds = {"one": [], "mirror": []}
        for r, how in turns(seconds, max(5, out.rounds)):
            room = place.new_room()
            os.mkdir(room + "/home")
            os.mkdir(room + "/other")
            env, target = environment(room, how)
            args = ["-p", RANKS, "-b", BLOCK, "-n", total // BLOCK // RANKS, "-m", "n1", "-r", r, "-w", "write", target]
            place.settle()
            seconds[how].append(run("bench_n1", args, env)["write"])
            wait_for_copies(room)
        out.details[f"mirror {place.name}"] = seconds
        values = ratios(seconds["mirror"], seconds["one"])
        out.figure(f"mirror/{place.name}", values)
        print("\nmirror=2, %s: %d processes write %d MiB and close in %.3f s; over one backend: %s" % (
            place.fs, RANKS, total // MIB, statistics.median(seconds["mirror"]), spread_text(values)), flush=True)
