"""The same queries on a standalone cluster: a master, and two workers with an executor of one core each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.on_cluster import disturbed, faults, results

SCRIPT = Path(__file__).with_name("on_cluster.py")


def on_cluster(folder, rounds):
    command = [sys.executable, str(SCRIPT), str(folder), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """What a cluster gives, undisturbed and disturbed; one cluster for all tests."""
    return on_cluster(tmp_path_factory.mktemp("cluster"), 1)


def check(found, session, folder, rounds):
    """The results are those of an undisturbed run in local mode, and every fault has happened."""
    assert found["disturbed"] == disturbed(session, folder, rounds, quiet=True)
    reached = {each.removesuffix(".reached") for each in found["seen"] if each.endswith(".reached")}
    assert reached == {each for epoch in faults(rounds) for each in epoch}
    # A lost executor takes its part of the map side with it: at least that stage was run again.
    assert found["attempts"] >= rounds
    # Where channels had taken rows of the task that was lost, or wait for them, the whole epoch was.
    assert found["replays"] >= rounds
    # A second copy ran while the first was still there.
    assert sum(each.startswith("straggler") and each.endswith(".again") for each in found["seen"]) == rounds


def test_a_cluster_of_two_executors_gives_what_local_mode_gives(cluster, spark, tmp_path):
    alone, spread = results(spark, tmp_path / "local"), cluster["plain"]
    assert (alone["executors"], spread["executors"]) == (0, 2)
    assert spread["rows"] == alone["rows"]
    assert len(alone["rows"]) == 7 * 4


def test_lost_executors_workers_and_processes_change_no_result(cluster, spark, tmp_path):
    """Executors killed while they read and during channels, a worker lost, tasks run again and twice."""
    check(cluster, spark, tmp_path, 1)


@pytest.mark.soak
def test_many_lost_executors_change_no_result(spark, tmp_path):
    found = on_cluster(tmp_path, 4)
    print(f"{found['attempts']} stages ran again in {found['seconds']:.0f} s")  # noqa: T201
    check(found, spark, tmp_path / "alone", 4)
