# SPDX-License-Identifier: BSD-3-Clause
"""What all sections of the benchmark stand on: the programs compiled, a directory to measure in, a program run with or
without the library, rounds whose order alternates, and what is made of the numbers."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD") or HERE + "/../../build")
PLAIN = os.environ.get("PLAIN") == "yes"
LIBRARY = os.environ.get("PRELOAD") or BUILD + "/libplfs.so"
BIN = BUILD + "/test/bench"
CFLAGS = "-std=gnu11 -O2 -Wall -Wextra -Wshadow -pthread".split()
MIB = 1 << 20
QUIET = ("LD_PRELOAD", "PLFS_MAP", "PLFSRC", "PLFS_DEBUG", "PLFS_CONSISTENCY", "PLFS_VERIFY", "PLFS_STATS", "PLFS_TRACE",
         "PLFS_HINTS")


class Wrong(Exception):
    """A program failed, or read bytes that are not those that were written."""


def compile_programs():
    os.makedirs(BIN, exist_ok=True)
    for name in sorted(os.listdir(HERE)):
        cc = "mpicc.openmpi" if name.endswith("_mpi.c") else "gcc"
        if name.startswith("bench_") and name.endswith(".c") and shutil.which(cc):
            subprocess.run([cc, *CFLAGS, "-o", f"{BIN}/{name[:-2]}", f"{HERE}/{name}"], check=True)


def has(program):
    return os.path.exists(f"{BIN}/{program}")


def clean_env():
    return {k: v for k, v in os.environ.items() if k not in QUIET}


def fs_type(path):
    """The type of the file system that holds path."""
    best = ("", "?")
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, where, kind, *_ = line.split()
            if (path + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(best[0]):
                best = (where, kind)
    return best[1]


class Place:
    """A directory to measure in. Every run gets a new one below it, which stays until the end: ext4 is slow to make files
    where others have just been removed (it looks at each of them), which would charge one variant with what another did.
    The attribute T has it put a new directory where the fewest are."""

    def __init__(self, parent, name):
        self.dir = tempfile.mkdtemp(prefix="plfs-bench.", dir=parent)
        subprocess.run(["chattr", "+T", self.dir], check=False, stderr=subprocess.DEVNULL)
        self.name, self.fs = name, fs_type(self.dir)
        self.nr_rooms, self.room = 0, None

    def new_room(self):
        self.nr_rooms += 1
        self.room = f"{self.dir}/{self.nr_rooms:05}"
        os.mkdir(self.room)
        return self.room

    def library(self, how="log", full=False):
        """The environment that puts the library under a program, and where its files are then: in a new room, which
        is a backend that has been in use, or a plain directory. full: so many files were there that no directory of
        containers is made any more."""
        room = self.new_room()
        if PLAIN or how is None:
            return {}, room
        options = "" if how == "log" else "{%s}" % how if "=" in how else "{mode=%s}" % how
        env = {"LD_PRELOAD": LIBRARY, "PLFS_MAP": f"/plfs={room}{options}"}
        subprocess.run("echo >/plfs/first && rm /plfs/first", shell=True, env={**clean_env(), **env}, check=True)
        for number in range(256 if full and how == "log" else 0):
            os.makedirs(f"{room}/.plfs/{number:02x}", exist_ok=True)
        return env, "/plfs"

    def settle(self):
        """Nothing on this file system is dirty afterwards."""
        subprocess.run(["sync", "-f", self.dir], check=True)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def run(program, args, env=None, launcher=(), timeout=300):
    """One run of a program; its JSON object. Wrong if it fails or says that bytes were not good."""
    args = [*launcher, f"{BIN}/{program}", *map(str, args)]
    with subprocess.Popen(args, env={**clean_env(), **(env or {})}, stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as child:
        try:
            text = child.communicate(timeout=timeout)[0]
        except BaseException:  # an interrupt as well: its ranks end with it
            os.killpg(child.pid, signal.SIGKILL)
            raise
    result = json.loads(text) if text.strip() else {}
    if child.returncode or not result.pop("good", True):
        raise Wrong(f"failed or wrong bytes: {' '.join(args)}  {env or ''}")
    return result


def turns(names, rounds):
    """(round, name): every name once a round, each time in another order."""
    names = list(names)
    for r in range(rounds):
        first = r % len(names)
        order = names[first:] + names[:first]
        for name in order if r % 2 == 0 else reversed(order):
            yield r, name


def ratios(some, others):
    """Round by round."""
    return [a / b for a, b in zip(some, others)]


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "rounds": len(values)}


def short(value):
    """Three digits."""
    return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 10 else "%.2f" % value


def spread_text(values):
    s = spread(values)
    return "%5s (%s..%s)" % (short(s["median"]), short(s["min"]), short(s["max"]))


class Results:
    """The figures by name, each a list of what its rounds gave, and beside them everything else worth keeping."""

    def __init__(self, quick, rounds, ranks):
        self.quick, self.rounds, self.ranks = quick, rounds, ranks
        self.figures, self.details, self.seconds = {}, {}, {}

    def figure(self, name, values):
        self.figures[name] = list(values)

    @staticmethod
    def remark(text):
        print(text, flush=True)
