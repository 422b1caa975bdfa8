"""Kills of the driver while state moves: the output is that of a run that was neither killed nor rescaled."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.moving_victim import ALL
from runtime.reports import write_input
from runtime.test_kill import kill, manifests, rows

VICTIM = Path(__file__).with_name("moving_victim.py")


def begin(source: Path, home: Path, seed: str, places: str) -> subprocess.Popen:
    home.mkdir(exist_ok=True)
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(VICTIM), str(source), str(home / "out"), str(home / "state"), seed, places],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def moving(home: Path) -> bool:
    """Whether files of a move are there that no manifest names yet."""
    found = sorted((home / "state" / "segments").glob("*-moved-*"))
    newest = max((path.name[:12] for path in found), default="")
    return bool(newest) and int(newest) >= manifests(home)


def survive(source: Path, home: Path, seed: str, kills: int, places: str) -> int:
    """Run to the end; each kill comes when an epoch has begun to move state."""
    killed, chance = 0, random.Random(seed)
    process = begin(source, home, seed, places)
    while process.poll() is None:
        if killed < kills and moving(home):
            time.sleep(chance.uniform(0, 0.3))
            if process.poll() is None:
                kill(process)
                killed += 1
                process = begin(source, home, seed, places)
        time.sleep(0.005)
    assert process.returncode == 0, (home / "log").read_text()[-3000:]
    return killed


def check(tmp_path: Path, epochs: int, kills: int, places: str = ALL) -> None:
    seed = os.environ.get("PENSTOCK_SEED", str(random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201
    write_input(tmp_path / "in", epochs, int(seed))
    assert survive(tmp_path / "in", tmp_path / "still", "never", 0, places) == 0
    assert survive(tmp_path / "in", tmp_path / "moved", seed, kills, places) == kills
    for place in places:
        still, moved = (rows(f"{tmp_path}/{name}/out/{place}/*.parquet") for name in ("still", "moved"))
        assert still
        assert moved == still


@pytest.mark.soak  # test_crash_points.py kills at chosen points of a run that moves state
def test_output_is_the_same_after_a_kill_while_state_moves(tmp_path):
    # Windows beside a left outer join, and sessions.
    check(tmp_path, epochs=3, kills=1, places="14")


@pytest.mark.soak
def test_output_is_the_same_after_twenty_kills_while_state_moves(tmp_path):
    check(tmp_path, epochs=60, kills=20)
