"""The same query on a standalone cluster: nothing in the data path may assume one machine or process."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"

QUERY = """
import datetime as dt, json, sys
import penstock as ps
from penstock.runtime.session import spark_session

master, folder = sys.argv[1:]
session = spark_session(master or None, {"spark.executor.memory": "700m"})
start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
rows = [[{"time": start + dt.timedelta(minutes=minute, seconds=second), "key": second % 7, "value": minute}
         for second in range(60)] for minute in range(3)]
stream = ps.stream("r", "time timestamp, key bigint, value bigint", "time", source=ps.rows(rows))
query = stream.group_by("key").window("2 minutes", slide="1 minute").agg(n=ps.count(), total=ps.sum("value"))
sink = ps.memory()
query.start(sink, checkpoint=folder, session=session, channels=3).wait()
executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
found = sorted(map(str, sink.table().to_pylist()))
print(json.dumps({"executors": executors, "rows": found}))
session.stop()
"""


@pytest.fixture
def master():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        start(stack, f"{DEPLOY}.master.Master", *place, "--port", str(port))
        wait_for(port)
        for _ in range(2):
            start(stack, f"{DEPLOY}.worker.Worker", *place, "--cores", "1", "--memory", "800m", address)
        yield address


def start(stack, *command):
    process = subprocess.Popen(
        [HOME / "bin" / "spark-class", *command],
        env={**environment(), "SPARK_HOME": str(HOME), "SPARK_NO_DAEMONIZE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)


def environment():
    return {**os.environ, "PYSPARK_PYTHON": sys.executable}


def wait_for(port):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"no master listens on port {port} after a minute")


def results(master, folder):
    command = [sys.executable, "-c", QUERY, master, str(folder)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_cluster_of_two_executors_gives_what_local_mode_gives(master, tmp_path):
    alone, spread = results("", tmp_path / "local"), results(master, tmp_path / "cluster")
    assert spread["executors"] == 2
    assert spread["rows"] == alone["rows"]
    assert len(alone["rows"]) == 7 * 4
