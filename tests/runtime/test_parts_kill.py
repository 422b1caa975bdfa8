"""The driver is killed while results leave in parts: every result once, and disorder within k."""

import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.routing import realised_disorder
from runtime.parts_victim import EPOCHS, KEYS, WINDOWS, begin
from runtime.test_kill import kill

VICTIM = Path(__file__).with_name("parts_victim.py")
WHOLE = sorted((window, key) for window in range(EPOCHS * WINDOWS) for key in range(KEYS))


def driver(home, disorder, parts):
    """A driver in a process of its own."""
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(VICTIM), str(home), str(disorder), str(parts)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def lines(home):
    """The parts of each epoch in the order in which the sink got them: window and keys."""
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted((home / "out").glob("*.jsonl"))
    }


def check(home, disorder):
    found = lines(home)
    rows = [(window, key) for parts in found.values() for window, keys in parts for key in keys]
    assert sorted(rows) == WHOLE
    for epoch, parts in found.items():
        assert realised_disorder([window for window, _ in parts]) <= disorder, epoch


def died(home, disorder, parts):
    """Kill a driver whose sink has some parts of an epoch while a channel is at work."""
    process = driver(home, disorder, parts)
    while not (home / "had").exists() and process.poll() is None:
        time.sleep(0.02)
    # In the soak, what the kills before it left may be too little for so many parts.
    assert process.poll() in {None, 0}, (home / "log").read_text()[-3000:]
    kill(process)


def test_after_a_kill_amid_the_parts_of_an_epoch_every_result_is_there_once(spark, tmp_path):
    died(tmp_path, 3, parts=3)
    (had,) = lines(tmp_path).values()
    assert 3 <= len(had) < 2 * WINDOWS
    assert not any(0 in keys for _, keys in had)
    (tmp_path / "go").touch()
    begin(tmp_path, 3, session=spark).wait()
    check(tmp_path, 3)


@pytest.mark.soak
def test_after_kills_at_random_parts_every_result_is_there_once(tmp_path):
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    for number in range(10):
        home = tmp_path / str(number)
        home.mkdir()
        disorder = chance.choice([0, 1, 3, 8, math.inf])
        for _ in range(3):
            # Up to the bound the other channel goes ahead; with the file there it may be any moment.
            (home / "had").unlink(missing_ok=True)
            (home / "go").unlink(missing_ok=True)
            if chance.random() < 0.5:
                (home / "go").touch()
            most = 1 + min(disorder, WINDOWS - 2)
            died(home, disorder, parts=chance.randint(1, int(most)))
        (home / "go").touch()
        process = driver(home, disorder, 0)
        assert process.wait() == 0, (home / "log").read_text()[-3000:]
        check(home, disorder)
