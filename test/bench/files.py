# SPDX-License-Identifier: BSD-3-Clause
"""Many small files, stat of one, and one that is opened for each line: as logs and otherwise, over plain files."""
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


LOGS = "small=0"


def reopened(place, out, name, options, nr_lines, rounds, text):
    seconds = {how: collections.defaultdict(list) for how in (None, "log", LOGS)}
    for _, how in turns(seconds, rounds):
        env, target = place.library(how)
        for which, s in run("bench_reopened", [*options, "-n", nr_lines, f"{target}/log"], env).items():
            seconds[how][which].append(s / (nr_lines / 8))
    out.details[f"{name} {place.name}"] = {str(how): dict(which) for how, which in seconds.items()}
    print(f"\n{nr_lines} lines, each appended by {text}, {place.fs}: us a line")
    print("%-9s %10s %10s  %-20s %s" % ("", "early", "late", " late over early", " late over plain"))
    for how, which in seconds.items():
        growth, over = ratios(which["late"], which["early"]), ratios(which["late"], seconds[None]["late"])
        medians = [statistics.median(which[when]) * 1e6 for when in ("early", "late")]
        print("%-9s %10.1f %10.1f  %-20s %s" % (how or "plain", *medians, spread_text(growth), spread_text(over)),
              flush=True)
        if how:
            out.figure(f"{name}/{place.name}/{how}/growth", growth)
            out.figure(f"{name}/{place.name}/{how}/over plain", over)


def section_reopened(places, out):
    for place in places:
        reopened(place, out, "reopened", [], 4096 if out.quick else 16384, min(out.rounds, 5), "open, write and close")
        reopened(place, out, "each", ["-p"], 1024 if out.quick else 4096, min(out.rounds, 3), "a new process")
