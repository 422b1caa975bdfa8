"""Every kind of state table with a small operator of its own and a model of what it has to hold.

A case draws the rows of an epoch, runs the table of one channel over its share of them, and says what all
channels together must show. Whatever a case decides about a row depends on the row and the epoch alone, so it
is the same in whatever channel the row is.
"""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.distribution.by_key import KeyPlacing
from penstock.operators.windows.sliding import extents
from penstock.routing import (
    PARTITIONINGS,
    Frequencies,
    Goal,
    Growth,
    SlidingPanes,
    first_router,
    next_router,
    step_toward,
)
from penstock.routing.spark_hash import spark_hash
from penstock.state import (
    HASH,
    KNOWN,
    NO_TIMER,
    PANE,
    TIME,
    TIMER,
    ChannelStore,
    Location,
    MovingStage,
    PaneTable,
    TimeTable,
    VersionTable,
)
from penstock.state.pane_nodes import Extent

KEYS = ("_ps_key0", "_ps_key1")


def keys_of(rng, count):
    """Few keys of two columns, some of them null."""
    return {
        "_ps_key0": pa.array(rng.integers(0, 12, count), pa.int64(), mask=rng.random(count) < 0.1),
        "_ps_key1": pa.array([f"k{n}" for n in rng.integers(0, 3, count)], pa.string()),
    }


def hashed(rows):
    return spark_hash([rows[name] for name in KEYS], rows.num_rows)


def chance(ids, epoch, one_in):
    """A choice that depends on the row and the epoch alone."""
    return (np.asarray(ids) * 7919 + epoch * 104729) % 1009 % one_in == 0


class Waiting:
    """Rows that wait for the frontier."""

    table = TimeTable("rows", KEYS, labels={"_ps_key0": "user", "_ps_key1": ""}, lives=(0, 0))

    def __init__(self):
        self.model, self.frontier, self.ids = {}, 0, 0

    @property
    def frontiers(self):
        return (self.frontier,)

    def draw(self, rng, epoch):
        count = int(rng.integers(0, 25))
        ids = np.arange(self.ids, self.ids + count)
        self.ids, self.new = self.ids + count, set(ids.tolist())
        times = self.frontier + rng.integers(0, 40, count)
        rows = pa.table({**keys_of(rng, count), TIME: times, "id": ids})
        before, self.before = self.frontier, self.frontiers
        self.frontier += int(rng.integers(0, 20))
        self.model |= {each["id"]: (each[TIME], None) for each in rows.to_pylist()}
        self.dead = {each for each, (time, _) in self.model.items() if not self.lives(time, each, epoch)}
        self.model = {each: value for each, value in self.model.items() if each not in self.dead}
        self.released, self.between = Counter(), (before, self.frontier)
        return rows

    def lives(self, time, _row, _epoch):
        return time >= self.frontier

    def step(self, store, rows, _epoch):
        opened = self.table.open(store, rows.schema, self.before)
        for each in opened.between(*self.between):
            self.released.update(each["id"].to_pylist())
        passed = rows.filter(pc.less(rows[TIME], self.frontier))
        self.released.update(passed["id"].to_pylist())
        return opened.close_by_time(self.frontier, rows)

    def idle(self, store, schema):
        return self.table.open(store, schema, self.frontiers).close_by_time(self.frontier)

    def stepped(self):
        assert self.released == Counter(self.dead)

    def shown(self, tables):
        return Counter((each["id"], each[TIME], None) for rows in tables for each in rows.to_pylist())

    def expected(self):
        return Counter((each, *value) for each, value in self.model.items())


class Side(Waiting):
    """A side of a join within a distance: what the masks leave out is dead by its time."""

    table = TimeTable("left", KEYS, lives=(1, 30))

    @property
    def frontiers(self):
        return (None, self.frontier)

    def lives(self, time, _row, _epoch):
        return time >= self.frontier - 30

    def step(self, store, rows, _epoch):
        opened = self.table.open(store, rows.schema, self.before)
        stays = opened.rows[TIME].to_numpy() >= self.frontier - 30
        assert not opened.matched.any()
        return opened.close_by_masks(stays, opened.matched, rows)

    def idle(self, store, schema):
        opened = self.table.open(store, schema, self.frontiers)
        return opened.close_by_masks(np.ones(opened.rows.num_rows, np.bool_), opened.matched)

    def stepped(self):
        pass


class Marked(Side):
    """Rows that die in any order, with a mark whether they have matched."""

    table = TimeTable("right", KEYS, port=1, marked=True)

    def draw(self, rng, epoch):
        rows = super().draw(rng, epoch)
        for each, (time, matched) in self.model.items():
            again = bool(chance(each, epoch + 1, 4))
            self.model[each] = (time, again if each in self.new else matched or again)
        return rows

    def lives(self, _time, row, epoch):
        return row in self.new or not chance(row, epoch, 5)

    def step(self, store, rows, epoch):
        opened = self.table.open(store, rows.schema)
        ids = opened.rows["id"].to_numpy()
        matched = opened.matched | chance(ids, epoch + 1, 4)
        return opened.close_by_masks(
            ~chance(ids, epoch, 5), matched, rows, chance(rows["id"].to_numpy(), epoch + 1, 4)
        )

    def idle(self, store, schema):
        opened = self.table.open(store, schema)
        return opened.close_by_masks(np.ones(opened.rows.num_rows, np.bool_), opened.matched)

    def shown(self, tables):
        return Counter(
            (each["id"], each[TIME], each["_matched"]) for rows in tables for each in rows.to_pylist()
        )


class States:
    """States of keys with timers, some of them forgotten."""

    table = VersionTable("state", KEYS, labels={"_ps_key0": "user"})
    frontiers = ()
    schema = pa.schema(
        [
            ("_ps_key0", pa.int64()),
            ("_ps_key1", pa.string()),
            (HASH, pa.int64()),
            (TIMER, pa.int64()),
            (KNOWN, pa.bool_()),
            ("n", pa.int64()),
        ]
    )

    def __init__(self):
        self.model, self.now = {}, 0

    def draw(self, rng, epoch):
        keys = pa.table(keys_of(rng, int(rng.integers(0, 12)))).group_by(list(KEYS)).aggregate([])
        count = keys.num_rows
        timers = np.where(rng.random(count) < 0.5, NO_TIMER, rng.integers(0, 100, count))
        known = rng.random(count) < 0.6
        columns = [*keys.select(KEYS).columns, pa.array(hashed(keys).view(np.int64)), pa.array(timers)]
        rows = pa.table(
            [*columns, pa.array(known), pa.array([epoch] * count, pa.int64())], schema=self.schema
        )
        self.before = dict(self.model)
        for each in rows.to_pylist():
            self.model[each["_ps_key0"], each["_ps_key1"]] = (each[TIMER], each[KNOWN], each["n"])
        self.window = tuple(sorted(rng.integers(-5, 100, 2).tolist()))
        self.found_due = Counter()
        return rows

    def step(self, store, rows, _epoch):
        opened = self.table.open(store, self.schema)
        found = opened.find(hashed(rows), rows.select(KEYS))
        for place, each in enumerate(rows.select(KEYS).to_pylist()):
            timer, known, n = self.before.get(tuple(each.values()), (NO_TIMER, False, None))
            assert found.timers[place] == timer
            assert found.known[place] == known
            assert found.state["n"][place].as_py() == (n if known else None)
            assert found.present[place] >= (known or timer != NO_TIMER)
        for each in opened.due(*self.window).select(KEYS).to_pylist():
            self.found_due[tuple(each.values())] += 1
        return opened.close(rows)

    def idle(self, store, _schema):
        return self.table.open(store, self.schema).close()

    def stepped(self):
        after, until = self.window
        assert self.found_due == Counter(key for key, (t, _, _) in self.before.items() if after < t <= until)

    def shown(self, tables):
        return Counter(
            (each["_ps_key0"], each["_ps_key1"], each[TIMER], each[KNOWN], each["n"])
            for rows in tables
            for each in rows.to_pylist()
        )

    def expected(self):
        alive = {key: v for key, v in self.model.items() if v[1] or v[0] != NO_TIMER}
        return Counter((*key, *value) for key, value in alive.items())


class Sums:
    """Merges sums of n."""

    def combined(self, tables, length):
        rows = pa.concat_tables(tables)
        first = pa.array(rows[PANE].to_numpy() // length * length)
        rows = rows.set_column(rows.column_names.index(PANE), PANE, first)
        found = rows.group_by([*KEYS, PANE]).aggregate([("n", "sum")]).rename_columns([*KEYS, PANE, "n"])
        return found.sort_by(PANE)


class Panes:
    """Sums by pane, and the windows that they make; late rows count in windows that are open."""

    windows = SlidingPanes(span=3, stride=2)
    table = PaneTable("panes", KEYS, labels={"n": "sum(n)"}, span=3, pane=1_000_000)
    frontiers = ()

    def __init__(self):
        self.model, self.opened, self.opens, self.end = Counter(), None, None, 0

    @property
    def kept(self):
        return None if self.opens is None else self.windows.start(self.opens)

    def draw(self, rng, _epoch):
        windows, count = self.windows, int(rng.integers(0, 40))
        self.opened, self.before = self.opens, self.kept
        low = 0 if self.opened is None else max(0, windows.start(self.opened))
        # Old partials are dropped by what the epochs before this one have closed.
        panes = rng.integers(low, max(low, self.end) + 8, count)
        rows = pa.table({**keys_of(rng, count), PANE: panes, "n": rng.integers(1, 9, count)})
        for each in rows.to_pylist():
            self.model[each["_ps_key0"], each["_ps_key1"], each[PANE]] += each["n"]
        self.end += int(rng.integers(0, 5))
        opens = windows.first_with(self.end)
        self.opens = opens if self.opened is None else max(opens, self.opened)
        self.found = Counter()
        return rows

    def step(self, store, rows, _epoch):
        windows, opened = self.windows, self.table.open(store, Sums(), self.before)
        first = [each for each in (opened.first, pc.min(rows[PANE]).as_py()) if each is not None]
        start = windows.first_with(min(first)) if first else self.opens
        closing = range(start if self.opened is None else max(start, self.opened), self.opens)
        held = opened.held(opened.pieces(*extents(windows, closing))) if closing else []
        tables = [rows, *(each.select(rows.column_names) for _, each in held)]
        for each in pa.concat_tables(tables).to_pylist():
            for window in closing:
                if windows.start(window) <= each[PANE] < windows.end(window):
                    self.found[window, each["_ps_key0"], each["_ps_key1"]] += each["n"]
        complete = Extent(*(windows.end(each - 1) for each in (closing.start, closing.stop)))
        return opened.close(rows if rows.num_rows else None, self.kept, complete if closing else None)

    def idle(self, store, _schema):
        return self.table.open(store, Sums(), self.kept).close(None, self.kept)

    def stepped(self):
        expected = Counter()
        for (one, other, pane), n in self.model.items():
            earliest = self.windows.first_with(pane)
            first = earliest if self.opened is None else max(earliest, self.opened)
            for window in range(first, min(self.opens, self.windows.last_with(pane) + 1)):
                expected[window, one, other] += n
        assert self.found == expected

    def shown(self, tables):
        found = Counter()
        for rows in tables:
            for each in rows.to_pylist():
                if each["_panes"] == 1 and each[PANE] >= self.kept:
                    found[each["_ps_key0"], each["_ps_key1"], each[PANE]] += each["n"]
        return found

    def expected(self):
        return Counter({cell: n for cell, n in self.model.items() if cell[2] >= self.kept})


class LongPanes(Panes):
    """Windows of so many panes that nodes are formed."""

    windows = SlidingPanes(span=150, stride=1)
    table = PaneTable("panes", KEYS, span=150)


class OrderedPanes(LongPanes):
    """The same for partials that must be merged in the order of panes."""

    table = PaneTable("panes", KEYS, span=150, ordered=True)


CASES = {
    each.__name__.lower(): each for each in (Waiting, Side, Marked, States, Panes, LongPanes, OrderedPanes)
}


class Running:
    """A case in channels on real files, with a router that may change between epochs."""

    def __init__(self, case, folder, rng, channels=3):
        self.case, self.rng, self.epoch, self.moved = case, rng, 0, 0
        self.folder = Location(str(folder))
        self.folder.make()
        self.router = first_router("uniform", channels)
        self.channels, self.schema, self.files = ((),) * channels, None, {}

    def step(self):
        rows = self.case.draw(self.rng, self.epoch)
        self.schema = rows.schema
        routes = self.router.route(hashed(rows))
        self.channels = tuple(
            tuple(self.case.step(self.store(channel), rows.filter(pa.array(routes == channel)), self.epoch))
            for channel in range(self.router.channels)
        )
        self.epoch += 1
        self.case.stepped()

    def idle(self):
        """An epoch without rows, which may compact."""
        self.channels = tuple(
            tuple(self.case.idle(self.store(channel), self.schema)) for channel in range(self.router.channels)
        )
        self.epoch += 1

    def move(self):
        """Move to any router of any number of channels, or a step on the way to it."""
        none = Frequencies(np.zeros(0, np.uint64), np.zeros(0))
        name, channels = str(self.rng.choice(PARTITIONINGS)), int(self.rng.integers(1, 6))
        after = next_router(name, self.router, none, channels, Goal(domain=1000))
        if self.rng.random() < 0.5:
            share = float(self.rng.uniform(0.05, 0.6))
            after = step_toward(self.router, after, none, growth=Growth.LINEAR, share=share, domain=1000)
        placing = KeyPlacing(self.router.arrays, after.arrays)
        stage = MovingStage((self.case.table,), self.channels, placing)
        found = stage.move(self.folder, f"e{self.epoch}", after.channels)
        self.moved += found.rows
        self.channels = found.channels
        self.router, self.epoch = after, self.epoch + 1

    def store(self, channel):
        return ChannelStore(self.folder, f"e{self.epoch}-{channel}", self.channels[channel])

    def check(self):
        """All channels together show what the model has, and no file has changed since it was written."""
        assert self.case.shown(self.tables()) == self.case.expected()
        now = {name: self.folder.read(name) for name in self.folder.names()}
        assert {name: now[name] for name in self.files} == self.files
        self.files = now

    def tables(self, table=None):
        table = table or self.case.table
        return [
            rows
            for segments in self.channels
            for rows in table.show(self.folder, segments, self.case.frontiers)
        ]
