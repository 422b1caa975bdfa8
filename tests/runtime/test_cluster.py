"""The same query on a standalone cluster: a master, a worker and two executors with one core each."""

import json
import subprocess
import sys
from pathlib import Path

from runtime.on_cluster import results

SCRIPT = Path(__file__).with_name("on_cluster.py")


def test_a_cluster_of_two_executors_gives_what_local_mode_gives(spark, tmp_path):
    alone = results(spark, tmp_path / "local")
    command = [sys.executable, str(SCRIPT), str(tmp_path / "cluster")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    spread = json.loads(done.stdout.splitlines()[-1])
    assert (alone["executors"], spread["executors"]) == (0, 2)
    assert spread["rows"] == alone["rows"]
    assert len(alone["rows"]) == 7 * 4
