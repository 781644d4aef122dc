# SPDX-License-Identifier: BSD-3-Clause
"""The history: a file with one JSON object a line, a line a run.

  {"date": "2026-01-31T12:00:00Z", "commit": "0123abc", "quick": false, "machine": "...", "file_systems": {...},
   "figures": {NAME: {"median": X, "min": X, "max": X, "rounds": N}}}

What make bench-cluster measured lies in bench-cluster.json in the build directory: {"date": "...", "figures": {NAME: [X, ...]}},
a value for each round, with the names of table.CLUSTER.
"""
import json
import os

from harness import BUILD, HERE


def path():
    return os.environ.get("BENCH_HISTORY") or os.path.normpath(HERE + "/../../bench-history.jsonl")


def append(run):
    """Whole lines only, whoever else appends."""
    with open(path(), "a") as f:
        f.write(json.dumps(run) + "\n")


def load(name=None):
    """All runs, oldest first; a line that is cut, as by a full disk, is passed over."""
    runs = []
    with open(name or path()) as f:
        for text in f:
            try:
                runs.append(json.loads(text))
            except ValueError:
                pass
    return runs


def cluster_figures():
    """The figures that the last make bench-cluster left: name -> values, and its date. None if there are none."""
    try:
        with open(BUILD + "/bench-cluster.json") as f:
            last = json.load(f)
        return last["figures"], last.get("date", "")
    except (OSError, ValueError, KeyError):
        return None
