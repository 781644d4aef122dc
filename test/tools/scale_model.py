#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/scale-model: that it stays as near to published figures as its page says, that the page and the plot show
what it makes, and that the limits it must have are there."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.abspath(os.path.dirname(__file__) + "/../..")
SCRIPT = TOP + "/scripts/scale-model"
loader = importlib.machinery.SourceFileLoader("scale_model", SCRIPT)
model = importlib.util.module_from_spec(importlib.util.spec_from_loader("scale_model", loader))
loader.exec_module(model)


def site(name="lustre", changes=""):
    return model.Site(f"{TOP}/scripts/model/{name}.ini", changes)


def job(ranks, where=None, block=47001, rank_mb=256, library=None, **more):
    return model.Job(where or site(), library or model.Library(), ranks, block, rank_mb * 1e6, **more)


def published_figures_are_met_as_closely_as_the_page_says():
    subprocess.run([SCRIPT, "--check"], check=True)


def page_and_plot_show_what_the_script_makes():
    subprocess.run([TOP + "/scripts/model/renew", "--check"], check=True)


def one_node_meets_no_lock_of_another():
    assert job(16).conflict() == 0
    assert job(32).conflict() == 0.5
    assert job(16).write("N-1")[1] > 5 * job(32).write("N-1")[1]


def pieces_of_whole_granules_meet_no_lock():
    panfs = site("panfs")
    assert job(64, panfs, block=2 * 458752).conflict() == 0
    assert job(64, panfs, block=2 * 458752 + 1).conflict() > 0
    assert job(64, panfs, block=458752).write_amplification() == 1
    assert job(64, panfs, block=47001).write_amplification() == 4


def one_shared_directory_serialises_where_its_lock_wanders():
    shared, private = (job(16384, site("gpfs"), dirs=dirs).open_close("N-N") for dirs in (1, 16384))
    assert shared > 16384 * 0.099 and private < shared / 9


def without_operations_of_its_own_libplfs_is_a_file_per_process():
    library = model.Library()
    library.counts = {}
    library.rank_mb_s = float("inf")
    for ranks in (1, 1000, 100000):
        assert job(ranks, block=1 << 20, library=library).write_rate("libplfs") == job(ranks, block=1 << 20).write_rate("N-N")
        assert job(ranks, library=library).open_close("libplfs") == 0


def nothing_is_faster_than_the_servers_and_the_nodes():
    for name in ("panfs", "gpfs", "lustre", "cephfs"):
        where = site(name)
        for ranks in (1, 7, 16, 300, 5000, 100000):
            for block in (64, 4096, 47001, 1 << 20, 1 << 26):
                j = job(ranks, where, block)
                limit = min(where.targets * where.target_mb_s, j.nodes * where.node_mb_s, where.server_mb_s or 1e9)
                for mode in model.MODES:
                    assert 0 < j.write(mode)[1] <= limit * 1.0001, (name, ranks, block, mode)


def a_site_with_a_parameter_missing_is_refused_by_its_name():
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as f:
        for line in open(TOP + "/scripts/model/lustre.ini"):
            f.write(line.replace("node_mb_s", "node_gb_s"))
        f.flush()
        done = subprocess.run([SCRIPT, "--site", f.name], stderr=subprocess.PIPE, text=True)
        assert done.returncode and "node_gb_s, node_mb_s" in done.stderr, done.stderr


def a_change_is_taken_and_a_wrong_one_refused():
    assert model.Library([("write.create_spread.per_rank", "7")]).counts["write", "create_spread"]["per_rank"] == 7
    assert model.Library([("hostdirs", "64")]).hostdirs == 64
    done = subprocess.run([SCRIPT, "--set", "hostdir=64"], stderr=subprocess.PIPE, text=True)
    assert done.returncode and "--set hostdir:" in done.stderr, done.stderr


def main():
    passed = failed = 0
    for name, test in list(globals().items()):
        if callable(test) and getattr(test, "__module__", "") == "__main__" and test not in (site, job, main):
            try:
                test()
                passed += 1
                print("ok  ", name)
            except (AssertionError, subprocess.CalledProcessError) as error:
                failed += 1
                print("FAIL", name, error)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
