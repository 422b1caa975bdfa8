"""A driver that is frozen while it delivers to a Delta table, and wakes up after another took over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import deltalake
import pytest

from connect.delta_victim import deliver

VICTIM = Path(__file__).with_name("delta_victim.py")


def stopped(process):
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def rows(table):
    return sorted(deltalake.DeltaTable(str(table)).to_pyarrow_table()["n"].to_pylist())


# Before the transaction, and when it is there but not yet synced; the other driver is as far, or further.
@pytest.mark.parametrize(
    ("point", "later"), [("delivery/sync folder", 0), ("delivery/reach", 2), ("delivery/sync", 2)]
)
def test_a_frozen_driver_adds_nothing_after_a_takeover(tmp_path, point, later):
    """Defect 1: a driver stopped by SIGSTOP before its transaction adds no row twice when it wakes up."""
    table = tmp_path / "table"
    command = [sys.executable, str(VICTIM), str(table), "3"]
    with (tmp_path / "log").open("wb") as log:
        first = subprocess.Popen(command, stderr=log, env={**os.environ, "PENSTOCK_STOP_AT": point})
    try:
        while first.poll() is None and not stopped(first):
            time.sleep(0.02)
        assert first.poll() is None, (tmp_path / "log").read_text()
        deliver(table, 3, owner=2)
        for epoch in range(2, 2 + later):
            deliver(table, 5, owner=2, epoch=epoch)
        before, version = rows(table), deltalake.DeltaTable(str(table)).version()
        assert before == sorted([*range(3), *(list(range(5)) * later)])
        os.kill(first.pid, signal.SIGCONT)
        code = first.wait(timeout=120)
    finally:
        first.kill()
        first.wait()
    assert rows(table) == before
    assert deltalake.DeltaTable(str(table)).version() == version
    # Its transaction is refused; after its transaction it finds nothing to do but to sync it.
    assert (code == 0) == (point == "delivery/sync"), (tmp_path / "log").read_text()
