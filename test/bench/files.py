# SPDX-License-Identifier: BSD-3-Clause
"""Many small files, and stat of one: what the library makes of them, as logs and in flat mode, over plain files."""
import collections
import statistics

from harness import PLAIN, ratios, run, spread_text, turns

FILES = 10000
WHOLE = ("create", "stat", "unlink")


def section_files(places, out):
    place, rounds = places[0], out.rounds
    seconds = {how: collections.defaultdict(list) for how in (None, "log", "flat")}
    for _, how in turns(seconds, rounds):
        env, target = place.library(how)
        for phase, s in run("bench_files", ["-n", FILES, target], env).items():
            seconds[how][phase].append(s)
    for phases in seconds.values():
        phases["all"] = [sum(parts) for parts in zip(*(phases[phase] for phase in WHOLE))]
    out.details["files"] = {str(how): phases for how, phases in seconds.items()}
    print(f"\n{FILES} files of 1 KiB, {place.fs}: us a file, and over plain{' (no library anywhere)' if PLAIN else ''}")
    print("%-9s %8s | %8s  %-20s | %8s  %-20s" % ("", "plain", "log", " over plain", "flat", " over plain"))
    for phase, plain in seconds[None].items():
        cells = []
        for how in ("log", "flat"):
            values = ratios(seconds[how][phase], plain)
            out.figure(f"files/{how}/{phase}", values)
            cells.append("%8.2f  %-20s" % (statistics.median(seconds[how][phase]) * 1e6 / FILES, spread_text(values)))
        print("%-9s %8.2f | %s" % (phase, statistics.median(plain) * 1e6 / FILES, " | ".join(cells)), flush=True)
