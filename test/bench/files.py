# SPDX-License-Identifier: BSD-3-Clause
"""Many small files, and stat of one: what the library makes of them, as logs and in flat mode, over plain files."""
import collections
import statistics

from harness import PLAIN, ratios, run, spread_text, turns

WHOLE = ("create", "stat", "unlink")


def section_files(places, out):
    for place in places:
        measure(place, out, min(out.rounds, 5), 2500 if out.quick else 10000)  # a round takes seconds


def measure(place, out, rounds, nr_files):
    seconds = {how: collections.defaultdict(list) for how in (None, "log", "flat")}
    for _, how in turns(seconds, rounds):
        env, target = place.library(how, full=True)
        for phase, s in run("bench_files", ["-n", nr_files, target], env).items():
            seconds[how][phase].append(s)
    for phases in seconds.values():
        phases["all"] = [sum(parts) for parts in zip(*(phases[phase] for phase in WHOLE))]
    out.details[f"files {place.name}"] = {str(how): phases for how, phases in seconds.items()}
    print(f"\n{nr_files} files of 1 KiB, {place.fs}: us a file, and over plain{' (no library anywhere)' if PLAIN else ''}")
    print("%-9s %8s | %8s  %-20s | %8s  %-20s" % ("", "plain", "log", " over plain", "flat", " over plain"))
    for phase, plain in seconds[None].items():
        cells = []
        for how in ("log", "flat"):
            values = ratios(seconds[how][phase], plain)
            out.figure(f"files/{place.name}/{how}/{phase}", values)
            cells.append("%8.2f  %-20s" % (statistics.median(seconds[how][phase]) * 1e6 / nr_files, spread_text(values)))
        print("%-9s %8.2f | %s" % (phase, statistics.median(plain) * 1e6 / nr_files, " | ".join(cells)), flush=True)
