# SPDX-License-Identifier: BSD-3-Clause
"""N-1 jobs: writing over N-N, reading back, by one reader, by fewer ranks, by the threads of one process, through MPI,
and ranks that open, write little and close."""
import collections
import re
import shutil
import statistics
import subprocess
import tempfile

from harness import BIN, MIB, PLAIN, clean_env, has, ratios, run, spread_text, turns

MPI_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
BLOCKS = [64, 512, 4096, 47001, MIB]
# Variant: how the data are laid out, and whether the library is there.
DIRECT, NN, ONE, PLFS = ("n1", None), ("nn", None), ("one", None), ("n1", "log")
NAMES = {DIRECT: "N-1", NN: "N-N", ONE: "plain", PLFS: "plfs"}
STORM_RANKS = 64
TRACED_RANKS = 16
# Calls that reach no file system.
INNER = re.compile(r"futex|brk|mprotect|madvise|munmap|mremap|rt_sig\w+|get[pt]id|clock_\w+|sched_\w+|exit\w*")


def total_bytes(block, quick):
    """What all ranks write together: more where a block costs less time a byte, so that opening and closing weigh alike."""
    return (32 if block <= 64 else 64 if block <= 512 else 128 if quick or block <= 4096 else 256) * MIB


def launch(place, variant, phases, ranks, block, per_rank, round_nr, program="bench_n1"):
    mode, how = variant
    env, target = place.library(how, full=ranks == STORM_RANKS)
    args = ["-p", ranks, "-b", block, "-n", per_rank, "-m", mode, "-r", round_nr, "-w", ",".join(phases), target]
    if program == "bench_n1_mpi":
        options = [word for pair in env.items() for word in ("-x", "=".join(pair))]
        return run(program, args, MPI_ENV, ["mpirun.openmpi", "--oversubscribe", *options, "-n", str(ranks)])
    return run(program, args, env)


def measure(place, variants, phases, ranks, block, total, rounds, program="bench_n1"):
    """Seconds by variant and phase, interleaved, and how many bytes each phase moved. Not every layout has every phase."""
    per_rank = max(1, total // block // ranks)
    runs = {NAMES[v]: collections.defaultdict(list) for v in variants}
    for r, variant in turns(variants, rounds):
        for phase, seconds in launch(place, variant, phases, ranks, block, per_rank, r, program).items():
            runs[NAMES[variant]][phase].append(seconds)
    return {"fs": place.fs, "ranks": ranks, "block": block, "bytes": per_rank * block * ranks, "seconds": runs}


def speed(row, name, phase):
    return row["bytes"] / 1e6 / statistics.median(row["seconds"][name][phase])


def over(row, other, phase):
    """The library's speed over another's, round by round."""
    return ratios(row["seconds"][other][phase], row["seconds"]["plfs"][phase])


def write_head(title):
    print(f"\n{title}")
    speeds = "%6s %6s %6s  %-18s" % ("N-1", "N-N", "plfs", " plfs/N-N")
    print("%-21s| %-39s | %-39s | %-18s | %-18s" % ("", "write, MB/s", "write and fsync, MB/s", "read shifted", "read shifted"))
    print("%-8s%3s %9s | %s| %s| %-18s | %-18s" % ("fs", "P", "block", speeds, speeds, " plfs/N-1", " plfs/N-N"))


def write_row(row):
    cells = []
    for phase in ("write", "write_fsync"):
        if phase in row["seconds"]["plfs"]:
            cells.append("%6.0f %6.0f %6.0f  %-18s" % (*(speed(row, name, phase) for name in ("N-1", "N-N", "plfs")),
                                                       spread_text(over(row, "N-N", phase))))
        else:
            cells.append(" " * 40)
    cells += ["%-18s" % spread_text(over(row, other, "read_shifted")) for other in ("N-1", "N-N")]
    print("%-8s%3d %9d | %s" % (row["fs"], row["ranks"], row["block"], "| ".join(cells)), flush=True)


def written(place, out, ranks, block, rounds, program="bench_n1", fsync=True):
    phases = ["write", "read_shifted"] + (["write_fsync"] if fsync else [])
    row = measure(place, [DIRECT, NN, PLFS], phases, ranks, block, total_bytes(block, out.quick), rounds, program)
    write_row(row)
    out.details.setdefault(program, []).append(row)
    return row


def section_n1(places, out):
    write_head("N-1 strided, forked processes, pwrite and pread")
    for place in places:
        for ranks in out.ranks:
            for block in BLOCKS:
                # Each sync of a disk takes long, and it is the disk's time: not where a figure has no use for it.
                row = written(place, out, ranks, block, out.rounds, fsync=place.name == "disk" and block >= 512)
                if ranks != 4:
                    continue
                out.figure(f"write/{place.name}/{block}", over(row, "N-N", "write"))
                out.figure(f"write over N-1/{place.name}/{block}", over(row, "N-1", "write"))
                for other in ("N-1", "N-N"):
                    out.figure(f"read shifted over {other}/{place.name}/{block}", over(row, other, "read_shifted"))
                if "write_fsync" in row["seconds"]["plfs"]:
                    out.figure(f"write and fsync over N-N/{place.name}/{block}", over(row, "N-N", "write_fsync"))
                    out.figure(f"write and fsync over N-1/{place.name}/{block}", over(row, "N-1", "write_fsync"))


def section_mpi(places, out):
    if not has("bench_n1_mpi"):
        return out.remark("mpi: left out, there is no mpicc.openmpi")
    write_head("N-1 strided, Open MPI, MPI_File_write_at and read_at")
    for block in BLOCKS[2:]:
        row = written(places[0], out, 4, block, min(out.rounds, 3), "bench_n1_mpi")
        out.figure(f"mpi write/disk/{block}", over(row, "N-N", "write"))
        out.figure(f"mpi read shifted/disk/{block}", over(row, "N-1", "read_shifted"))


def readers(places, out, what, phase, variants, blocks):
    print(f"\n{what}: seconds by variant, ratio of speeds")
    other = NAMES[variants[0]]
    for place in places:
        for block in blocks:
            row = measure(place, variants, ["write", phase], 4, block, total_bytes(block, out.quick), out.rounds)
            values = over(row, other, phase)
            out.details.setdefault(phase, []).append(row)
            out.figure(f"{phase.replace('_', ' ')}/{place.name}/{block}", values)
            print("%-8s%3d %9d | %s %6.0f MB/s, plfs %6.0f MB/s | %s" % (
                place.fs, 4, block, other, speed(row, other, phase), speed(row, "plfs", phase), spread_text(values)),
                flush=True)


def section_sequential(places, out):
    readers(places, out, "Read from end to end by one process, 128 KiB at a time, over a file written so", "read_sequential",
            [ONE, PLFS], [4096, MIB])


def section_restart(places, out):
    readers(places, out, "Written by 4 ranks, read by 3, a contiguous third each, over direct N-1", "read_restart",
            [DIRECT, PLFS], [4096, 47001, MIB])


def section_verify(places, out):
    print("\nFirst reads with PLFS_VERIFY=read over reads without, by 4 ranks (shifted; scattered: out of order) and by one: MB/s without, with, "
          "ratio of speeds")
    for place in places:
        for block in (4096, 47001, MIB):
            total = total_bytes(block, out.quick)
            phases = ["write", "read_shifted", "read_sequential"] + (["read_scattered"] if block < 65536 else [])
            seconds = {mode: collections.defaultdict(list) for mode in ("off", "read")}
            for r, mode in turns(seconds, out.rounds):
                env, target = place.library()
                args = ["-p", 4, "-b", block, "-n", total // block // 4, "-m", "n1", "-r", r,
                        "-w", ",".join(phases), target]
                for phase, s in run("bench_n1", args, {**env, "PLFS_VERIFY": mode}).items():
                    seconds[mode][phase].append(s)
            cells = []
            for phase in phases:
                values = ratios(seconds["off"][phase], seconds["read"][phase])
                out.figure(f"verified {phase.replace('_', ' ')}/{place.name}/{block}", values)
                cells.append("%s %6.0f %6.0f %-18s" % (phase, *(total / 1e6 / statistics.median(seconds[mode][phase])
                                                                for mode in seconds), spread_text(values)))
            out.details.setdefault("verify", []).append({"fs": place.fs, "block": block, "bytes": total, "seconds": seconds})
            print("%-8s %8d | %s" % (place.fs, block, " | ".join(cells)), flush=True)


def section_threads(places, out):
    place = places[0]
    print(f"\nThreads of one process, one descriptor, {place.fs}: library over plain; and plain, plfs, MB/s")
    for threads in (1, 2, 4):
        for block in (4096, MIB):
            total = total_bytes(block, True)
            seconds = {how: collections.defaultdict(list) for how in (None, "log")}
            for r, how in turns(seconds, out.rounds):
                env, target = place.library(how)
                args = ["-p", threads, "-b", block, "-n", total // block // threads, "-r", r, target]
                for phase, s in run("bench_threads", args, env).items():
                    seconds[how][phase].append(s)
            cells = []
            for phase in ("write", "read"):
                values = ratios(seconds[None][phase], seconds["log"][phase])
                out.figure(f"threads {phase}/{threads}/{block}", values)
                cells.append("%5s %-18s %6.0f %6.0f" % (phase, spread_text(values), *(
                    total / 1e6 / statistics.median(seconds[how][phase]) for how in seconds)))
            out.details.setdefault("threads", []).append(
                {"threads": threads, "block": block, "bytes": total, "seconds": {str(k): v for k, v in seconds.items()}})
            print("%2d threads %8d | %s" % (threads, block, " | ".join(cells)), flush=True)


def section_locks(places, out):
    """A counter under a lock, by four processes, as ROMIO keeps a shared file pointer: processor time of a round."""
    print("\nLock, read 8 bytes, write 8, unlock, by 4 processes: processor time of a round, over plain")
    for place in places:
        used = {how: [] for how in (None, "log")}
        for r, how in turns(used, out.rounds):
            env, target = place.library(how)
            used[how].append(run("bench_locks", ["-p", 4, "-n", 2000, "-r", r, target], env)["cpu"] * 1e6)
        values = ratios(used["log"], used[None])
        out.details.setdefault("locks", []).append({"fs": place.fs, "cpu_us": {str(k): v for k, v in used.items()}})
        out.figure(f"locks/{place.name}", values)
        print("%-8s plain %5.1f us, plfs %5.1f us | %s" % (
            place.fs, *(statistics.median(used[how]) for how in used), spread_text(values)), flush=True)


def traced(place, variant):
    """Calls that reach a file system between the barrier before open and the end of close: name -> how many a rank."""
    mode, how = variant
    env, target = place.library(how, full=True)
    with tempfile.NamedTemporaryFile("r", dir=place.dir) as log:
        options = [word for pair in env.items() for word in ("-E", "=".join(pair))]
        subprocess.run(["strace", "-f", "-o", log.name, *options, f"{BIN}/bench_n1", "-p", str(TRACED_RANKS), "-b", "1024",
                        "-n", "1", "-m", mode, "-t", target], env=clean_env(), check=True, stdout=subprocess.DEVNULL)
        counts, inside = collections.Counter(), set()
        for line in log:
            pid, _, call = line.partition(" ")
            call = call.lstrip()
            if call.startswith('write(-1, "begin"'):
                inside.add(pid)
            elif call.startswith('write(-1, "end"'):
                inside.discard(pid)
            elif pid in inside:
                name = re.match(r"(\w+)\(", call)
                if name and not INNER.fullmatch(name[1]) and "MAP_ANONYMOUS" not in call:
                    counts[name[1]] += 1
    return {name: count / TRACED_RANKS for name, count in counts.most_common()}


def section_storm(places, out):
    print(f"\nA storm: {STORM_RANKS} ranks open, write 1 KiB and close: library over N-N and over direct N-1")
    for place in places:
        row = measure(place, [DIRECT, NN, PLFS], ["write"], STORM_RANKS, 1024, 0, 3 * out.rounds)
        out.details.setdefault("storm", []).append(row)
        for other in ("N-N", "N-1"):
            out.figure(f"storm over {other}/{place.name}", over(row, other, "write"))
        print("%-8s ms: %s | plfs/N-N %s | plfs/N-1 %s" % (
            place.fs, ", ".join("%s %.2f" % (n, statistics.median(p["write"]) * 1e3) for n, p in row["seconds"].items()),
            spread_text(over(row, "N-N", "write")), spread_text(over(row, "N-1", "write"))), flush=True)
    if not shutil.which("strace"):
        return out.remark("storm: calls are not counted, there is no strace")
    for variant in (NN,) if PLAIN else (NN, PLFS):
        try:
            calls = traced(places[0], variant)
        except subprocess.SubprocessError as error:
            return out.remark(f"storm: calls are not counted: {error}")
        out.details[f"storm calls of a rank, {NAMES[variant]}"] = calls
        out.figure(f"storm calls/{NAMES[variant]}", [sum(calls.values())])
        print("calls of each of %d ranks, %s: %.1f: %s" % (
            TRACED_RANKS, NAMES[variant], sum(calls.values()), ", ".join("%s %.2f" % c for c in calls.items())), flush=True)
