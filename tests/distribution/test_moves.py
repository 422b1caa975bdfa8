"""Joins hold copies of rows: wherever state moves, each pair of rows meets in exactly one channel."""

import tempfile
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.distribution import OnGrids
from penstock.distribution.broadcast import EverywherePlacing
from penstock.distribution.by_key import KeyPlacing
from penstock.distribution.by_window import WindowPlacing
from penstock.distribution.key_layout import KeyLayout
from penstock.distribution.on_grid import GridPlacing, SpreadPlacing
from penstock.errors import DamagedCheckpoint
from penstock.routing import Batches, HashPair, Ring, Spread, WindowChannels, first_router
from penstock.routing.grid import Grid
from penstock.routing.join_grid import shaped_grid
from penstock.routing.spark_hash import spark_hash
from penstock.routing.window_shape import WindowShape
from penstock.runtime.layout_files import LayoutFiles
from penstock.state import TIME, ChannelStore, Location, MovingStage, TimeTable, compaction, read
from penstock.state.placing import Read
from penstock.state.views import Rule

KEY = "_ps_key0"
SIDES = (TimeTable("left", (KEY,), port=0), TimeTable("right", (KEY,), port=1, marked=True))
SEEDS = st.integers(0, 10**9)


@pytest.fixture(scope="module")
def few_bytes():
    """A budget that rewrites a few rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "BUDGET", 400)
        yield


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
        stage = MovingStage(SIDES, self.channels, placing)
        self.channels = stage.move(self.folder, f"m{self.epoch}", channels).channels
        self.epoch += 1

    def step(self, rng):
        """An epoch of some channels without rows, in which a few rows of each are rewritten."""
        self.epoch += 1
        self.channels = tuple(
            tuple(each for side in SIDES for each in self.closed(side, segments))
            if rng.random() < 0.7
            else segments
            for segments in self.channels
        )

    def closed(self, side, segments):
        opened = side.open(ChannelStore(self.folder, f"e{self.epoch}", segments), self.tables[0].schema)
        return opened.close_by_masks(np.ones(opened.rows.num_rows, np.bool_), opened.matched)

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


def laid_out(files, router, grids):
    name = files.store(router)
    return KeyLayout(channels=router.channels, router=name, target=name, grids=grids)


@given(SEEDS)
@settings(max_examples=5)
def test_rows_of_one_key_meet_once_however_hot_keys_are_spread(few_bytes, seed):
    rng = np.random.default_rng(seed)
    tables = [rows_of(rng, 25, nulls=True) for _ in SIDES]
    known = spark_hash([pa.array(range(5), pa.int64())], 5)
    pair = any_router(rng, known)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as routers:
        files = LayoutFiles(Location(routers))
        layout = laid_out(files, pair, any_spread(rng, pair.channels, known))
        router, copies = layout.join_router(files), []
        for rows, deal in zip(tables, (router.left, router.right), strict=True):
            dealt = deal(spark_hash([rows[KEY]], rows.num_rows), rng.integers(0, 2**64, 25, dtype=np.uint64))
            copies.append(dealt)
        pairs = Pairs(folder, tables, copies, pair.channels)
        for _ in range(6):
            pair = any_router(rng, known)
            spread = layout.spread if rng.random() < 0.3 else any_spread(rng, pair.channels, known)
            after = laid_out(files, pair, spread.fitting(pair.channels))
            pairs.move(OnGrids((KEY,), "both").move(layout, after, files), after.channels)
            layout = after
            if rng.random() < 0.5:
                pairs.step(rng)
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
def test_rows_of_a_product_meet_once_on_every_grid(few_bytes, seed):
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
            if rng.random() < 0.5:
                pairs.step(rng)
            assert set(pairs.met()[0].values()) == {1}
            assert len(pairs.met()[0]) == 20 * 20


def test_a_grid_that_stays_moves_nothing():
    assert GridPlacing(Grid(6, 2), Grid(6, 2)).flow(3, 0, (0, 9)) == {3: None}


@pytest.mark.parametrize("before", [1, 3, 4])
@pytest.mark.parametrize("after", [1, 2, 4, 5])
def test_it_is_known_beforehand_which_channels_get_rows_of_which(before, after):
    old, new = first_router("consistent", before), first_router("consistent", after)
    hashes = np.random.default_rng(2).integers(0, 2**64, 20_000, dtype=np.uint64)
    sources, targets = old.route(hashes), new.route(hashes)
    for placing in (
        KeyPlacing(old.arrays, new.arrays),
        SpreadPlacing(Spread().router(old), Spread().router(new)),
    ):
        for source in range(before):
            found = targets[sources == source]
            flow = placing.flow(source, 0, (0, 1))
            if (found == source).all():
                assert flow == {source: None}
                continue
            assert set(found.tolist()) == {target for target, share in flow.items() if share}
            for target, share in flow.items():
                assert abs(np.mean(found == target) - share) < 0.05


def test_a_key_of_the_table_alone_is_enough_to_move():
    ring, key = Ring(3), np.array([7], np.uint64)
    home = int(ring.route(key)[0])
    other = (home + 1) % 3
    empty = HashPair(np.zeros(0, np.uint64), np.zeros(0, np.int32), ring)
    moved = HashPair(key, np.array([other], np.int32), ring)
    placing = KeyPlacing(empty.arrays, moved.arrays)
    assert placing.flow(home, 0, (0, 1)) == {home: 1.0, other: 0.0}
    assert placing.flow(other, 0, (0, 1)) == {other: None}


def placings(rng):
    old, new = any_router(rng, rng.integers(0, 99, 4, dtype=np.uint64)), first_router("consistent", 5)
    shape, few = WindowShape(6, 4, 1), Batches(2).changed(3, beyond=6)
    return [
        KeyPlacing(old.arrays, new.arrays),
        SpreadPlacing(Spread().router(old), Spread((7,), (2,), (1,), (0, 3)).router(new)),
        GridPlacing(Grid(4, 2), Grid(7, 3)),
        EverywherePlacing(2, 4),
        WindowPlacing(WindowChannels(shape, Batches(1), 2), WindowChannels(shape, few, 3), width=2, offset=1),
    ]


def test_a_rule_comes_back_from_its_file(tmp_path):
    rng, folder = np.random.default_rng(3), Location(str(tmp_path))
    rows = rows_of(rng, 50, nulls=True)
    for placing in placings(rng):
        rule = Rule(placing, (KEY,), 1)
        again = Rule.read(folder, rule.write(folder, "m"))
        assert (again.keys, again.port) == ((KEY,), 1)
        seen = Read(rows, np.arange(50), (KEY,), 1, 9)
        for target in range(3):
            ours, theirs = (each.placing.takes(seen, 1, target).tolist() for each in (rule, again))
            assert ours == theirs


def test_a_rule_that_is_harmed_is_named(tmp_path):
    folder = Location(str(tmp_path))
    name = Rule(GridPlacing(Grid(4, 2), Grid(7, 3)), (), 0).write(folder, "m")
    path = tmp_path / name
    data = path.read_bytes()
    for harmed in (data[:-1], data + b"0", b""):
        path.write_bytes(harmed)
        with pytest.raises(DamagedCheckpoint, match=name):
            Rule.read(folder, name)
    path.unlink()
    with pytest.raises(DamagedCheckpoint, match="missing"):
        Rule.read(folder, name)


@given(SEEDS)
@settings(max_examples=20)
def test_rows_are_where_their_windows_are_after_any_moves(seed):
    rng = np.random.default_rng(seed)
    table, shape = TimeTable("rows", ()), WindowShape(6, 4, 1)
    rows = pa.table({TIME: np.sort(rng.integers(0, 60, 40)), "id": np.arange(40)})
    windows = WindowChannels(shape, Batches(int(rng.integers(1, 4))), int(rng.integers(1, 5)))
    with tempfile.TemporaryDirectory() as path:
        folder = Location(path)
        at, channels = windows.deliveries(rows[TIME].to_numpy())
        state = tuple(
            tuple(
                table.open(ChannelStore(folder, "s"), rows.schema).close_by_time(
                    0, rows.take(pa.array(at[channels == each]))
                )
            )
            for each in range(windows.channels)
        )
        for turn in range(4):
            after = WindowChannels(shape, Batches(int(rng.integers(1, 4))), int(rng.integers(1, 5)))
            placing = WindowPlacing(windows, after)
            state = MovingStage((table,), state, placing).move(folder, f"m{turn}", after.channels).channels
            windows = after
            at, channels = windows.deliveries(rows[TIME].to_numpy())
            for channel, segments in enumerate(state):
                found = sorted(each for one in segments for each in read(folder, one)["id"].to_pylist())
                assert found == sorted(at[channels == channel].tolist())


def test_what_stays_is_not_touched_and_what_moves_is_small(tmp_path):
    folder, table = Location(str(tmp_path)), TimeTable("rows", (KEY,))
    count = 20_000
    rows = pa.table({KEY: np.arange(count), TIME: np.arange(count)})
    old, new = first_router("consistent", 4), first_router("consistent", 5)
    routes = old.route(spark_hash([rows[KEY]], count))
    channels = tuple(
        tuple(
            table.open(ChannelStore(folder, f"{each}"), rows.schema).close_by_time(
                0, rows.filter(pa.array(routes == each))
            )
        )
        for each in range(4)
    )
    before = {name: folder.read(name) for name in folder.names()}
    stage = MovingStage((table,), channels, KeyPlacing(old.arrays, new.arrays))
    found = stage.move(folder, "m", 5)
    assert {name: folder.read(name) for name in before} == before
    (rule,) = set(folder.names()) - set(before)
    assert len(folder.read(rule)) < 40_000
    # Estimates until somebody reads them; the new channel has rows of all others, which have none of it.
    assert 0.15 < found.rows / count < 0.25
    assert abs(sum(each.rows for segments in found.channels for each in segments) - count) < 10
    assert [len(segments) for segments in found.channels] == [1, 1, 1, 1, 4]
    counts = [[read(folder, each).num_rows for each in segments] for segments in found.channels]
    assert sum(map(sum, counts)) == count
    assert abs(sum(counts[4]) - found.rows) < 0.1 * found.rows
