"""What every kind of state table promises, on real files; a failure prints the seed that replays it."""

import json
import pickle
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.distribution.by_key import KeyPlacing
from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.routing import first_router
from penstock.state import (
    TABLE_KINDS,
    ChannelStore,
    MovingStage,
    Segment,
    compaction,
    read,
    table_from,
    views,
)
from penstock.state.compaction import MOST_SEGMENTS
from state.kinds import CASES, Running

SEEDS = st.integers(0, 10**9)
over_all = pytest.mark.parametrize("name", CASES)


def ran(name, folder, seed, epochs=12):
    """A run that has appended, moved and been idle at random."""
    running = Running(CASES[name](), folder, np.random.default_rng(seed))
    for _ in range(epochs):
        running.step()
        if running.rng.random() < 0.4:
            running.move()
    return running


def test_every_kind_has_a_case():
    assert {type(case.table) for case in CASES.values()} == set(TABLE_KINDS.values())


@over_all
@given(seed=SEEDS)
@settings(max_examples=3)
def test_epochs_cut_anywhere_load_what_the_model_has(name, seed):
    with tempfile.TemporaryDirectory() as folder:
        running = Running(CASES[name](), folder, np.random.default_rng(seed), channels=1)
        for _ in range(24):
            running.step()
            running.check()
            levels = {each.level for each in running.channels[0]}
            assert len(running.channels[0]) <= (len(levels) or 1) * (MOST_SEGMENTS + 3)


@over_all
@given(seed=SEEDS)
@settings(max_examples=3)
def test_moves_and_compaction_at_any_time_change_nothing(name, seed):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        running = Running(CASES[name](), folder, np.random.default_rng(seed))
        patch.setattr(compaction, "BUDGET", int(running.rng.choice([300, 1500, 1 << 20])))
        for _ in range(14):
            running.step()
            running.check()
            for _ in range(int(running.rng.integers(0, 3))):
                # Again without an epoch in between: views on views, segments without rows, empty channels.
                # Each move multiplies references, and a small budget takes epochs to bring them down.
                if sum(map(len, running.channels)) < 200:
                    running.move()
                    running.check()
            if running.rng.random() < 0.3:
                running.idle()
                running.check()
            if running.rng.random() < 0.3:
                views.forget()
        assert running.moved


@over_all
@pytest.mark.parametrize("budget", [1, 700, 1 << 20])
def test_moved_segments_are_rewritten_bit_by_bit_and_hold_the_same(name, budget, tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "BUDGET", budget)
    running = Running(CASES[name](), tmp_path, np.random.default_rng(5), channels=1)
    for _ in range(4):
        running.step()
    while not moved(running):
        running.move()
    epochs = 0
    while moved(running):
        running.idle()
        running.check()
        epochs += 1
    assert epochs > 3 if budget == 1 else epochs < 20
    assert epochs == 1 or budget < 1000


def moved(running):
    return [each for segments in running.channels for each in segments if each.views]


@over_all
def test_a_channel_that_has_read_its_rows_counts_them(name, tmp_path):
    running = Running(CASES[name](), tmp_path, np.random.default_rng(5), channels=2)
    for _ in range(6):
        running.step()
    while not moved(running):
        running.move()
    assert not any(each.exact for each in moved(running))
    for channel, segments in enumerate(running.channels):
        store = running.store(channel)
        for each in segments:
            rows = store.read(each).num_rows
            counted = store.counted(each)
            assert counted.exact
            assert counted.rows == rows
            assert read(running.folder, counted).equals(store.read(each))


@over_all
def test_a_move_reads_and_writes_no_rows(name, tmp_path):
    running = ran(name, tmp_path, 6)
    before, kept = set(running.folder.names()), [each.name for each in every(running)]
    for each in kept:
        (tmp_path / each).rename(tmp_path / f"{each}.away")
    while not moved(running):
        running.move()
    new = {each for each in running.folder.names() if not each.endswith(".away")} - before
    assert {each.rsplit(".", 1)[1] for each in new} == {"move"}
    assert {each.name for each in every(running)} <= set(kept)
    for each in kept:
        (tmp_path / f"{each}.away").rename(tmp_path / each)
    running.check()


def every(running):
    return [each for segments in running.channels for each in segments]


@over_all
@given(seed=SEEDS)
@settings(max_examples=2)
def test_a_description_shows_the_same(name, seed):
    with tempfile.TemporaryDirectory() as folder:
        running = ran(name, folder, seed)
        table = table_from(json.loads(json.dumps(running.case.table.describe())))
        assert table == running.case.table
        shown, again = running.tables(), running.tables(table)
        assert [table.named(rows) for rows in again] == [running.case.table.named(rows) for rows in shown]


@over_all
def test_what_goes_to_workers_and_into_manifests_comes_back(name, tmp_path):
    running = ran(name, tmp_path, 3)
    while not moved(running):
        running.move()
    table, channels = pickle.loads(pickle.dumps((running.case.table, running.channels)))
    assert table == running.case.table
    assert channels == running.channels
    for segment in every(running):
        assert Segment.from_json(json.loads(json.dumps(segment.to_json()))) == segment


@over_all
def test_nothing_is_there_before_the_first_epoch(name, tmp_path):
    running = Running(CASES[name](), tmp_path, np.random.default_rng(1))
    assert running.tables() == []
    running.move()
    assert not any(running.channels)


@over_all
def test_other_tables_of_the_channel_are_left_alone(name, tmp_path):
    running = ran(name, tmp_path, 8)
    other = Segment("other.arrow", "another table", 0, 1, 1, 1)
    store = ChannelStore(running.folder, "x", (*running.channels[0], other))
    assert running.case.table.own(store.segments) == list(running.channels[0])
    assert other not in running.case.idle(store, running.schema)
    router = first_router("uniform", 1).arrays
    stage = MovingStage((running.case.table,), ((other,),), KeyPlacing(router, router))
    with pytest.raises(DamagedCheckpoint, match="belongs to table 'another table'"):
        stage.move(running.folder, "m", 1)


@over_all
@pytest.mark.parametrize("harm", ["missing", "short", "long"])
def test_a_harmed_file_is_named_whichever_it_is(name, harm, tmp_path):
    running = ran(name, tmp_path, 11, epochs=8)
    while not moved(running):
        running.move()
    for segments in running.channels:
        for segment in segments:
            for file in segment.files:
                path = tmp_path / file
                before = path.read_bytes()
                error = DamagedCheckpoint
                if harm == "missing":
                    path.unlink()
                    error = MissingSegment if file == segment.name else DamagedCheckpoint
                else:
                    path.write_bytes(before[:-1] if harm == "short" else before + b"\0")
                views.forget()
                with pytest.raises(error, match=file):
                    list(running.case.table.show(running.folder, segments, running.case.frontiers))
                path.write_bytes(before)
    running.check()
