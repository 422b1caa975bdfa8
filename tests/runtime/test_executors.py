"""Executors in local mode, and a run whose executors follow its load on a cluster of this machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import BadOption, RunError
from penstock.runtime.spark.executors import Executors


def test_local_mode_has_slots_that_nobody_can_change(spark):
    executors = Executors(spark.sparkContext)
    assert executors.why_fixed == "in local mode the number of task slots is fixed"
    assert executors.count() == 0
    with pytest.raises(RunError, match="2 executors were asked for; in local mode"):
        executors.request(2)


def test_a_policy_that_could_change_nothing_is_refused(spark, tmp_path):
    frame = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "time")
    stream = ps.stream("s", "time timestamp, value bigint", "time", source=ps.dataframe(frame))
    with pytest.raises(BadOption, match=r"scaling='autoscale'; in local mode .*: give 'off', or None"):
        stream.start(ps.memory(), tmp_path / "state", session=spark, scaling="autoscale")


def test_executors_come_and_go_with_a_load_and_every_result_is_there():
    script = Path(__file__).with_name("scaled_on_cluster.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["executors"] == [1, 2, 1]
    assert found["changes"][:2] == [[1, 2], [2, 1]]
    assert found["results"] == found["expected"]
    assert found["rows"] > 0
    assert found["operators"] == ["calls", "stage 0"]


@pytest.mark.soak
def test_executors_follow_a_load_and_nothing_is_lost():
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "bench", "executors", "--quick"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    always, ours = json.loads(done.stdout)["rows"]
    assert (always["lost"], ours["lost"]) == (0, 0)
    assert ours["changes"] >= 1
