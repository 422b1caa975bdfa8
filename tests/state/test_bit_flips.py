"""Bits that change on a disk: what is read of a checkpoint is what was written, or an error names the "
"file."""

import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.connect import EpochId
from penstock.distribution.by_key import KeyPlacing
from penstock.distribution.key_layout import KeyLayout
from penstock.errors import CheckpointError
from penstock.routing import first_router
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.layout_files import LayoutFiles
from penstock.runtime.records import EpochPlan, Manifest, StagePlan, StageRecord
from penstock.state import MovingStage, TimeTable, segments, views
from penstock.state.storage import Location


def written(folder):
    """A checkpoint with every kind of file, and a function that reads all of it again."""
    checkpoint = Checkpoint(Location(str(folder))).claim("digest", "a query")
    chance = np.random.default_rng(7)
    rows = pa.table(
        {
            "key": pa.array([f"key {n}" for n in chance.integers(0, 50, 400)]),
            "n": chance.integers(0, 10**9, 400),
            "v": pa.array(chance.random(400), mask=chance.random(400) < 0.1),
        }
    )
    bare = segments.store(checkpoint.segments, "0", rows, table="t", first=0, end=9)
    old, new = (first_router("consistent", each).arrays for each in (1, 2))
    table = TimeTable("t", ("key",))
    moved = MovingStage((table,), ((bare,),), KeyPlacing(old, new)).move(checkpoint.segments, "1", 2)
    router = LayoutFiles(checkpoint.routers).store(first_router("consistent", 3))
    plan = EpochPlan((StagePlan.of(KeyLayout(channels=2, router=router, target=router)),), now=5)
    checkpoint.write_plan(EpochId(0), plan)
    checkpoint.commit(Manifest(EpochId(0), plan, stages=(StageRecord(moved.channels),)))

    def read():
        segments._verified.clear()  # as a new process
        views.forget()
        manifest = checkpoint.latest()
        state = [segments.read(checkpoint.segments, each).to_pydict() for each in manifest.segments()]
        return (
            manifest,
            checkpoint.plan(EpochId(0)),
            state,
            LayoutFiles(checkpoint.routers).router(router).to_bytes(),
        )

    return read


def check(folder, flips):
    """Flip one bit at a time; every kind of file gets its share."""
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201
    chance, read = random.Random(seed), written(folder)
    expected = read()
    parts = ("segments", "plans", "manifests", "routers")
    files = [path for part in parts for path in sorted(Path(folder, part).iterdir())]
    assert {path.suffix for path in files} == {".arrow", ".move", ".json", ".router"}
    found = 0
    for number in range(flips):
        path = files[number % len(files)]
        whole = path.read_bytes()
        data, bit = bytearray(whole), chance.randrange(8 * len(whole))
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            assert read() == expected, f"bit {bit} of {path.name}, seed {seed}"
        except CheckpointError as error:
            assert path.name in str(error)  # noqa: PT017 -- most flips raise, and none has to
            found += 1
        path.write_bytes(whole)
    assert read() == expected
    print(f"{found} of {flips} flips found, the others change nothing")  # noqa: T201
    assert found > 0.9 * flips


def test_a_bit_that_changes_gives_no_wrong_result_in_silence(tmp_path):
    """Defect 11: of 2,000 single bit flips in segments 1,785 gave silently wrong state."""
    check(tmp_path, 60)


@pytest.mark.soak
def test_two_thousand_bits_that_change_give_no_wrong_result_in_silence(tmp_path):
    check(tmp_path, 2000)
