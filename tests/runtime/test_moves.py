"""Channels of windows and joins on real files, moved between random routers: the results stay the same."""

import tempfile
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.compile import compile_join
from penstock.joins import END, Frontiers
from penstock.routing import PARTITIONINGS, Frequencies, Goal, Growth, first_router, next_router, step_toward
from penstock.routing.join_grid import copied_sides, join_grid, shaped_grid
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.exits import Exit
from penstock.runtime.join_stage import JoinStage
from penstock.runtime.join_task import SIDE, SLOT, JoinTask
from penstock.runtime.moves import MoveTask, StageState
from penstock.runtime.moving import gathered
from penstock.runtime.placing import Homes
from penstock.runtime.results import ResultFormat
from penstock.runtime.spread import Spread
from penstock.runtime.storage import Location
from penstock.runtime.window_stage import WindowStage
from penstock.runtime.window_task import WindowTask
from runtime.test_window_task import delivered, plan_of, recalculated

SEEDS = st.integers(0, 10**9)


def successor(rng, router, hashes):
    """Any router after this one: of another number of channels, by any partitioning, or a step on the way."""
    channels = int(rng.integers(1, 7))
    known = np.unique(rng.choice(hashes, 3)) if len(hashes) else np.zeros(0, np.uint64)
    frequencies = Frequencies(known, np.full(len(known), 0.1))
    name = str(rng.choice(PARTITIONINGS))
    after = next_router(name, router, frequencies, channels, Goal(domain=1000))
    if rng.random() < 0.5:
        share = float(rng.uniform(0.05, 0.6))
        return step_toward(router, after, frequencies, growth=Growth.LINEAR, share=share, domain=1000)
    return after


class Moved:
    """State in channels: moved by every change of homes, without Spark."""

    def __init__(self, stage, folder, homes):
        self.stage, self.homes, self.epoch = stage, homes, 0
        self.segments, self.results = Location(f"{folder}/segments"), Location(f"{folder}/results")
        self.segments.make()
        self.results.make()
        self.state = ((),) * homes.channels
        self.delivered = []

    def move(self, homes):
        state = StageState(self.state, self.stage.placing(self.homes, homes))
        task = MoveTask(self.segments, f"moved-{self.epoch}", (state,))
        departures = {channel: task.work(channel) for channel in range(self.homes.channels)}
        self.state = gathered(self.stage, state, departures, 0, homes.channels)
        self.homes = homes

    def work(self, task, channels):
        """Run a task on the new rows of every channel."""
        receipts = [task.work(channel, new)[0] for channel, new in enumerate(channels)]
        for output in [each for receipt in receipts for each in receipt.outputs]:
            self.delivered += pa.ipc.open_file(self.results.input(output.name)).read_all().to_pylist()
        self.state = tuple(receipt.segments for receipt in receipts)
        self.epoch += 1


def window_epoch(moved, plan, table, opened, opens):
    routes = moved.homes.router.route(spark_hash([table["_ps_key0"]], table.num_rows))
    exits = (Exit(None, plan.schema, ResultFormat(moved.results, "arrow")),)
    task = WindowTask(plan, "map", moved.segments, str(moved.epoch), moved.state, opened, opens, exits)
    parts = [table.filter(pa.array(routes == channel)) for channel in range(moved.homes.channels)]
    moved.work(task, [part if part.num_rows else None for part in parts])


@settings(max_examples=6)
@given(SEEDS)
def test_windows_close_with_the_same_values_wherever_their_keys_have_been(seed):
    rng = np.random.default_rng(seed)
    plan = plan_of(size=int(rng.choice([3, 20, 70])), slide=int(rng.choice([1, 2])))
    with tempfile.TemporaryDirectory() as folder:
        stage = WindowStage(None, plan, (), (), alone=False, parted=("_ps_key0",))
        moved = Moved(stage, folder, Homes(first_router("uniform", 3), 3))
        given_rows, opened, hashes = [], None, np.zeros(0, np.uint64)
        for epoch in range(14):
            count = int(rng.integers(1, 60))
            pane, key, n = (
                epoch * 4 + rng.integers(0, 9, count),
                rng.integers(0, 40, count),
                rng.integers(0, 9, count),
            )
            table = pa.table(
                {"_ps_key0": key, "_ps_pane": pane, "rows": np.ones(count, np.int64), "p1": n, "p2": n}
            )
            opens = plan.shape.first_window_with((epoch + 1) * 4)
            window_epoch(moved, plan, table, opened, opens)
            given_rows += zip(pane.tolist(), key.tolist(), n.tolist(), strict=True)
            opened, hashes = opens, spark_hash([pa.array(key)], count)
            if rng.random() < 0.6:
                router = successor(rng, moved.homes.router, hashes)
                moved.move(Homes(router, router.channels))
        assert delivered(plan, moved.delivered) == recalculated(plan, given_rows, opened)


def join_of(rng):
    left = ps.stream("l", "time timestamp, k bigint, v bigint", time="time")
    right = ps.stream("r", "time timestamp, k bigint, w bigint", time="time")
    how = str(rng.choice(["inner", "left", "right", "full"]))
    bound = {"last": 2} if rng.random() < 0.3 else {"within": "9 us"}
    if rng.random() < 0.25:
        return left.cross(right, within="9 us", suffixes=("", "_2"))
    return left.join(right, "k", how=how, suffixes=("", "_2"), **bound)


def described(columns):
    return lambda texts: [(columns[text.strip("`")], True) for text in texts]


def plan_of_join(relation):
    types = {"time": "timestamp", "k": "bigint", "v": "bigint", "w": "bigint"}
    return compile_join(relation, described(types), described(types))


def side_rows(rng, plan, side, epoch, count):
    """Rows of a side: times of the epoch, few keys, some of them null."""
    schema = plan.side_schema(side)
    columns = {}
    for field in schema:
        values = rng.integers(0, 1000, count)
        if field.name == "_ps_time":
            values = epoch * 5 + rng.integers(0, 5, count)
        elif field.name.startswith("_ps_key"):
            values = rng.integers(0, 6, count)
        nulls = rng.random(count) < 0.1 if field.name.startswith("_ps_key") else None
        columns[field.name] = pa.array(values, pa.int64(), mask=nulls).cast(field.type)
    return pa.table(columns, schema=schema)


def routed(rng, plan, homes, side, table):
    """The rows of every channel, as the map side of a join deals them."""
    salts = rng.integers(0, 2**64, table.num_rows, dtype=np.uint64)
    keys = plan.join.left.keys
    if not keys:
        grid = join_grid(plan.join.how, plan.join.bound, homes.channels)
        copies = (grid.left if side == 0 else grid.right)(salts)
    else:
        router = homes.spread_router()
        hashes = spark_hash([table[name] for name in keys], table.num_rows)
        known = np.asarray(table[keys[0]].is_valid())
        copies = (router.left if side == 0 else router.right)(hashes, salts)
        lone = np.flatnonzero(~known) if plan.join.keeps_unmatched[side] else np.zeros(0, np.int64)
        rows = np.concatenate([copies.rows[known[copies.rows]], lone])
        anywhere = rng.integers(0, homes.channels, len(lone))
        copies = type(copies)(rows, np.concatenate([copies.channels[known[copies.rows]], anywhere]))
    return [table.take(pa.array(copies.rows[copies.channels == each])) for each in range(homes.channels)]


def together(plan, left, right):
    """The rows of both sides as one exchange brings them, None if there are none."""
    if not left.num_rows and not right.num_rows:
        return None
    sent = [
        pa.table([[side] * each.num_rows, *each.columns], [SIDE, *map(SLOT.format, plan.slots[side])])
        for side, each in enumerate((left, right))
    ]
    return pa.concat_tables(sent, promote_options="default")


def any_spread(rng, plan, channels, hashes):
    """Some keys on grids of channels of their own, some placed whole."""
    copied = copied_sides(plan.join.how, plan.join.bound)
    if copied == "neither" or not plan.join.left.keys or not len(hashes):
        return None
    keys = np.unique(rng.choice(hashes, 3))
    sizes, columns, targets = [], [], []
    for _ in keys:
        grid = shaped_grid(copied, int(rng.integers(1, channels + 1)))
        sizes.append(grid.channels)
        columns.append(grid.columns)
        targets += rng.permutation(channels)[: grid.channels].tolist()
    return Spread(tuple(keys.view(np.int64).tolist()), tuple(sizes), tuple(columns), tuple(targets))


def run_join(plan, rows, folder, homes, rng, change):
    moved = Moved(JoinStage(None, plan, (), (), shared=False), folder, homes)
    before = Frontiers(None, None)
    for epoch, (left, right) in enumerate(rows):
        after = Frontiers(END, END) if epoch == len(rows) - 1 else Frontiers(epoch * 5 - 2, epoch * 5 - 4)
        exits = (Exit(None, plan.schema, ResultFormat(moved.results, "arrow")),)
        task = JoinTask(plan, moved.segments, str(epoch), moved.state, before, after, exits)
        dealt = [routed(rng, plan, moved.homes, side, table) for side, table in enumerate((left, right))]
        moved.work(task, [together(plan, *pair) for pair in zip(*dealt, strict=True)])
        before = after
        change(moved)
    return Counter(str(row) for row in moved.delivered)


@settings(max_examples=8)
@given(SEEDS)
def test_joins_deliver_the_same_rows_wherever_their_keys_have_been(seed):
    rng = np.random.default_rng(seed)
    plan = plan_of_join(join_of(rng))
    rows = [
        tuple(side_rows(rng, plan, side, epoch, int(rng.integers(0, 12))) for side in (0, 1))
        for epoch in range(8)
    ]
    hashes = spark_hash([pa.array(range(6), pa.int64())], 6)

    def change(moved):
        if rng.random() < 0.7:
            router = successor(rng, moved.homes.router, hashes)
            moved.move(Homes(router, router.channels, any_spread(rng, plan, router.channels, hashes)))

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        start = Homes(first_router("uniform", 1), 1)
        serial = run_join(plan, rows, one, start, rng, lambda _: None)
        assert run_join(plan, rows, other, Homes(first_router("uniform", 4), 4), rng, change) == serial


def test_what_stays_is_not_touched_and_what_moves_is_small(tmp_path):
    plan = plan_of(size=10, slide=10)
    moved = Moved(
        WindowStage(None, plan, (), (), alone=False, parted=("_ps_key0",)),
        tmp_path,
        Homes(first_router("consistent", 4), 4),
    )
    key = np.arange(20_000)
    ones = np.ones(len(key), np.int64)
    table = pa.table({"_ps_key0": key, "_ps_pane": ones, "rows": ones, "p1": ones, "p2": ones})
    window_epoch(moved, plan, table, None, None)
    before = {name: moved.segments.read(name) for name in moved.segments.names()}
    moved.move(Homes(first_router("consistent", 5), 5))
    assert {name: moved.segments.read(name) for name in before} == before
    fresh = moved.state[4]
    assert 0.15 < sum(each.rows for each in fresh) / len(key) < 0.25
    assert sum(each.rows for channel in moved.state for each in channel) == len(key)
    assert all(
        each.mask and len(moved.segments.read(each.mask)) < 700
        for channel in moved.state[:4]
        for each in channel
    )
