"""A part of a core for each process that is started as the Python of an executor."""

import os
import subprocess
from pathlib import Path

import pytest

from penstock_lab.bench.quota import capped_python

ROOT = Path("/sys/fs/cgroup")


@pytest.mark.skipif(
    not os.access(ROOT / "cpu", os.W_OK) and not os.access(ROOT / "cgroup.procs", os.W_OK),
    reason="control groups belong to root",
)
def test_what_is_started_has_a_group_of_its_own_and_nothing_is_left():
    before = os.environ.get("PYSPARK_PYTHON")
    with capped_python(0.3):
        command = [os.environ["PYSPARK_PYTHON"], "-c", "print(open('/proc/self/cgroup').read())"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"penstock-{os.getpid()}/" in done.stdout
    assert os.environ.get("PYSPARK_PYTHON") == before
    assert not list(ROOT.glob(f"**/penstock-{os.getpid()}"))
