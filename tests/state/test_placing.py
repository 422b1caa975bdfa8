"""Joins hold copies of rows: wherever state moves, each pair of rows meets in exactly one channel."""

import tempfile
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.routing import HashPair, Ring, Spread, first_router
from penstock.routing.grid import Grid
from penstock.routing.join_grid import shaped_grid
from penstock.routing.spark_hash import spark_hash
from penstock.state import (
    TIME,
    ChannelStore,
    GridPlacing,
    KeyPlacing,
    Location,
    MoveTask,
    MovingStage,
    SpreadPlacing,
    StateLayout,
    TimeTable,
    gathered,
    losing,
)

KEY = "_ps_key0"
SIDES = (TimeTable("left", (KEY,), port=0), TimeTable("right", (KEY,), port=1, marked=True))
SEEDS = st.integers(0, 10**9)


def rows_of(rng, count, *, nulls):
    missing = rng.random(count) < 0.15 if nulls else np.zeros(count, np.bool_)
    keys = pa.array(rng.integers(0, 5, count), pa.int64(), mask=missing)
    return pa.table({KEY: keys, TIME: np.sort(rng.integers(0, 50, count)), "id": np.arange(count)})


class Pairs:
    """Rows of both sides in channels."""

    def __init__(self, folder, tables, copies, channels):
        self.folder, self.tables, self.epoch = Location(str(folder)), tables, 0
        self.channels = tuple(
            tuple(
                segment
                for side, rows, dealt in zip(SIDES, tables, copies, strict=True)
                for segment in self.stored(side, rows.take(pa.array(dealt.rows[dealt.channels == channel])))
            )
            for channel in range(channels)
        )

    def stored(self, side, rows):
        opened = side.open(ChannelStore(self.folder, "s"), rows.schema)
        none = np.zeros(0, np.bool_)
        # Which rows have matched depends on the row, so that marks can be compared later.
        return opened.close_by_masks(none, none, rows, rows["id"].to_numpy() % 2 == 0)

    def move(self, placing, channels):
        task = MoveTask(self.folder, f"m{self.epoch}", (MovingStage(SIDES, self.channels, placing),))
        departures = {source: task.work(source) for source in range(len(self.channels))}
        (self.channels,) = gathered(task, departures, channels)
        self.epoch += 1

    def held(self, side, channel):
        found = [
            row for rows in side.show(self.folder, self.channels[channel], ()) for row in rows.to_pylist()
        ]
        assert all(row.get("_matched") in {None, row["id"] % 2 == 0} for row in found)
        return [row["id"] for row in found]

    def met(self):
        """How often each pair of rows meets, and in how many channels each row is."""
        pairs, rows = Counter(), Counter()
        for channel in range(len(self.channels)):
            left, right = (self.held(side, channel) for side in SIDES)
            pairs.update(product(left, right))
            rows.update([("left", each) for each in left] + [("right", each) for each in right])
        return pairs, rows

    def keys(self, side):
        return self.tables[side][KEY].to_pylist()


def any_router(rng, hashes):
    channels = int(rng.integers(1, 7))
    keys = np.unique(rng.choice(hashes, 2))
    return HashPair(keys, rng.integers(0, channels, len(keys)).astype(np.int32), Ring(channels))


def any_spread(rng, channels, hashes):
    keys = np.unique(rng.choice(hashes, 3))
    grids = [shaped_grid("both", int(rng.integers(1, channels + 1))) for _ in keys]
    targets = [cell for grid in grids for cell in rng.permutation(channels)[: grid.channels].tolist()]
    return Spread(
        tuple(keys.view(np.int64).tolist()),
        tuple(grid.channels for grid in grids),
        tuple(grid.columns for grid in grids),
        tuple(targets),
    )


@given(SEEDS)
@settings(max_examples=5)
def test_rows_of_one_key_meet_once_however_hot_keys_are_spread(seed):
    rng = np.random.default_rng(seed)
    tables = [rows_of(rng, 25, nulls=True) for _ in SIDES]
    known = spark_hash([pa.array(range(5), pa.int64())], 5)
    pair = any_router(rng, known)
    layout = StateLayout(pair, pair.channels, any_spread(rng, pair.channels, known))
    router, copies = layout.join_router(), []
    for rows, deal in zip(tables, (router.left, router.right), strict=True):
        dealt = deal(spark_hash([rows[KEY]], rows.num_rows), rng.integers(0, 2**64, 25, dtype=np.uint64))
        copies.append(dealt)
    with tempfile.TemporaryDirectory() as folder:
        pairs = Pairs(folder, tables, copies, pair.channels)
        for _ in range(6):
            pair = any_router(rng, known)
            spread = layout.spread if rng.random() < 0.3 else any_spread(rng, pair.channels, known)
            after = StateLayout(pair, pair.channels, spread.fitting(pair.channels))
            pairs.move(SpreadPlacing(layout.join_router(), after.join_router()), after.channels)
            layout = after
            met, rows = pairs.met()
            left, right = pairs.keys(0), pairs.keys(1)
            for one, other in product(range(25), range(25)):
                if left[one] is not None and left[one] == right[other]:
                    assert met[one, other] == 1
            for side, keys in (("left", left), ("right", right)):
                assert all(rows[side, each] == 1 for each in range(25) if keys[each] is None)
                assert all(rows[side, each] >= 1 for each in range(25))


@given(SEEDS)
@settings(max_examples=5)
def test_rows_of_a_product_meet_once_on_every_grid(seed):
    rng = np.random.default_rng(seed)
    tables = [rows_of(rng, 20, nulls=False) for _ in SIDES]
    grid = shaped_grid("both", int(rng.integers(1, 8)))
    salts = [rng.integers(0, 2**64, 20, dtype=np.uint64) for _ in SIDES]
    with tempfile.TemporaryDirectory() as folder:
        pairs = Pairs(folder, tables, [grid.left(salts[0]), grid.right(salts[1])], grid.channels)
        for _ in range(5):
            after = shaped_grid("both", int(rng.integers(1, 8)))
            pairs.move(GridPlacing(grid, after), after.channels)
            grid = after
            assert set(pairs.met()[0].values()) == {1}
            assert len(pairs.met()[0]) == 20 * 20


def test_a_grid_that_stays_moves_nothing():
    rows = rows_of(np.random.default_rng(1), 9, nulls=False)
    placed = GridPlacing(Grid(6, 2), Grid(6, 2)).place(rows, (), 0, 3)
    assert placed.stays.all()
    assert not len(placed.rows)


@pytest.mark.parametrize("before", [1, 3, 4])
@pytest.mark.parametrize("after", [1, 2, 4, 5])
def test_the_channels_that_lose_keys_are_known_beforehand(before, after):
    old, new = first_router("consistent", before), first_router("consistent", after)
    hashes = np.random.default_rng(2).integers(0, 2**64, 5000, dtype=np.uint64)
    moved = old.route(hashes) != new.route(hashes)
    assert losing(old, new) == set(old.route(hashes)[moved].tolist())
    found = StateLayout(old, before).losing(StateLayout(new, after))
    assert found == losing(old, new) | set(range(after, before))
    assert StateLayout(None, before).losing(StateLayout(None, after)) is None
    assert StateLayout(old, before).losing(StateLayout(new, after, Spread())) is None


def test_what_stays_is_not_touched_and_what_moves_is_small(tmp_path):
    folder, table = Location(str(tmp_path)), TimeTable("rows", (KEY,))
    count = 20_000
    rows = pa.table({KEY: np.arange(count), TIME: np.arange(count)})
    routes = first_router("consistent", 4).route(spark_hash([rows[KEY]], count))
    channels = tuple(
        tuple(
            table.open(ChannelStore(folder, f"{each}"), rows.schema).close_by_time(
                0, rows.filter(pa.array(routes == each))
            )
        )
        for each in range(4)
    )
    before = {name: folder.read(name) for name in folder.names()}
    placing = KeyPlacing(first_router("consistent", 5).arrays)
    task = MoveTask(folder, "m", (MovingStage((table,), channels, placing),))
    departures = {channel: task.work(channel) for channel in range(4)}
    (after,) = gathered(task, departures, 5)
    assert {name: folder.read(name) for name in before} == before
    assert 0.15 < sum(each.rows for each in after[4]) / count < 0.25
    assert sum(each.rows for segments in after for each in segments) == count
    assert sum(each.rows for (each,) in departures.values()) == sum(each.rows for each in after[4])
    assert sum(each.keys for (each,) in departures.values()) == sum(each.rows for each in after[4])
    assert all(each.mask and len(folder.read(each.mask)) < 700 for segments in after[:4] for each in segments)
