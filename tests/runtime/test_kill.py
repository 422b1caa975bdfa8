"""Exactly once: after kills of the driver at random moments, the output is that of a run never killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from oracle import fetched
from runtime.reports import write_input

VICTIM = Path(__file__).with_name("victim.py")


def begin(source: Path, home: Path) -> subprocess.Popen:
    home.mkdir(exist_ok=True)
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(VICTIM), str(source), str(home / "out"), str(home / "state")],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def manifests(home: Path) -> int:
    names = [path.stem for path in (home / "state" / "manifests").glob("[0-9]*.json")]
    return max((int(name.split("-")[0]) + 1 for name in names), default=0)


def kill(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def rows(*patterns: str) -> list[tuple]:
    found: list[tuple] = []
    for pattern in patterns:
        if list(Path(pattern).parent.glob("*.parquet")):
            found += fetched(f"SELECT * FROM read_parquet('{pattern}') ORDER BY ALL")
    return found


def outputs(home: Path) -> dict[str, list[tuple]]:
    return {
        "windows": rows(f"{home}/out/windows/*.parquet"),
        "pairs": rows(f"{home}/out/pairs/*.parquet"),
        "late": rows(f"{home}/state/late/*.parquet"),
        "rejects": rows(f"{home}/state/rejects/*.parquet"),
    }


def survive(source: Path, home: Path, kills: int, chance: random.Random) -> int:
    """Run to the end with so many kills, each at a random moment after the run has got going again."""
    killed = 0
    process = begin(source, home)
    done = manifests(home)
    while process.poll() is None:
        if killed < kills and manifests(home) > done:
            time.sleep(chance.uniform(0, 1.5))
            if process.poll() is None:
                kill(process)
                killed += 1
                done = manifests(home)
                process = begin(source, home)
        time.sleep(0.02)
    assert process.returncode == 0, (home / "log").read_text()[-3000:]
    return killed


def check(tmp_path: Path, epochs: int, kills: int) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201
    write_input(tmp_path / "in", epochs, seed)
    assert survive(tmp_path / "in", tmp_path / "whole", 0, random.Random(seed)) == 0
    killed = survive(tmp_path / "in", tmp_path / "killed", kills, random.Random(seed))
    print(f"{killed} kills over {epochs} epochs")  # noqa: T201
    assert killed == kills
    whole, survived = outputs(tmp_path / "whole"), outputs(tmp_path / "killed")
    assert all(whole.values()), {name: len(found) for name, found in whole.items()}
    assert any(row[-1] is None for row in whole["pairs"])
    assert survived == whole


@pytest.mark.soak  # test_crash_points.py kills at chosen points of the commit
def test_output_is_the_same_after_a_kill(tmp_path):
    check(tmp_path, epochs=6, kills=1)


@pytest.mark.soak
def test_output_is_the_same_after_twenty_kills(tmp_path):
    check(tmp_path, epochs=80, kills=20)
