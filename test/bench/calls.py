# SPDX-License-Identifier: BSD-3-Clause
"""What calls cost that have nothing to do with a mapped file, and starting a program."""
import os
import statistics
import time

from harness import LIBRARY, PLAIN, clean_env, run, turns


def start_up_ns(env, count, nr_fds):
    """Spawning an empty program that inherits some descriptors, and waiting for its end: the least of several."""
    fds = [os.dup(0) for _ in range(nr_fds)]
    for fd in fds:
        os.set_inheritable(fd, True)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], env), 0)
        times.append((time.perf_counter() - start) * 1e9)
    for fd in fds:
        os.close(fd)
    return min(times)


def section_calls(places, out):
    place, rounds = places[0], 3 * out.rounds
    room = place.new_room()
    # Not of the same length: then a path of the one would look like the other's at first sight, which costs 0.1 us.
    plain, backend = room + "/plain", room + "/backend"
    os.mkdir(plain)
    os.mkdir(backend)
    extra = {} if PLAIN else {"LD_PRELOAD": LIBRARY, "PLFS_MAP": f"/plfs-elsewhere={backend}"}
    envs = {"without": {}, "with": extra}
    result = {}
    for _, which in turns(envs, rounds):
        times = run("bench_calls", [plain + "/file"], envs[which])
        times["start a program"] = start_up_ns({**clean_env(), **envs[which]}, 15, 0)
        times["start, 256 files open"] = start_up_ns({**clean_env(), **envs[which]}, 15, 256)
        for name, ns in times.items():
            result.setdefault(name, {}).setdefault(which, []).append(ns)
    out.details["calls"] = result
    print(f"\nNot ours: a plain file, PLFS_MAP set to something else; /bin/true from spawn to end; rounds: {rounds}")
    print("%-22s %11s %11s   %-8s %7s   %s" % ("", "without, ns", "with, ns", "more", "", "(least..greatest)"))
    for name, runs in result.items():
        runs["more"] = [b - a for a, b in zip(runs["without"], runs["with"])]
        middle = {which: statistics.median(times) for which, times in runs.items()}
        out.figure(f"calls/{name}", runs["more"])
        print("%-22s %11.0f %11.0f   %+-8.1f %+6.1f%%   (%+.1f..%+.1f)" % (
            name, middle["without"], middle["with"], middle["more"], 100 * middle["more"] / middle["without"],
            min(runs["more"]), max(runs["more"])), flush=True)
