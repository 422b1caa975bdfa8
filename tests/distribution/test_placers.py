"""Placers give what their routers give: however rows are cut into batches, and in any attempt of a task."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.columns import TIME
from penstock.distribution import (
    Anywhere,
    Broadcast,
    ByKey,
    ByWindow,
    Distribution,
    Everywhere,
    OnGrid,
    OnGrids,
)
from penstock.distribution.anywhere import AnyLayout
from penstock.distribution.by_window import WindowLayout
from penstock.distribution.dealing import Panes, Runs
from penstock.distribution.distribution import by_channel
from penstock.distribution.key_layout import KeyLayout
from penstock.distribution.on_grid import GridLayout
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.routing import (
    Batches,
    HashPair,
    PlainPanes,
    Ring,
    RoundRobin,
    Spread,
    WindowChannels,
    WindowShape,
    is_judged,
    place_by_cost,
    shaped_grid,
    spread_hot_keys,
)
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.layout_files import LayoutFiles
from penstock.sketches import ValueCosts
from penstock.sketches.splitmix import splitmix64
from penstock.state.storage import Location

CHANNELS, TASK, ROWS = 7, 3, 2_000
KEYS = ("key", "part")
KEYED = ByKey(KEYS, mergeable=True)
PANED = OnGrid("neither", mergeable=True, slices="pane")
SHAPE, BATCHES = WindowShape(20, 6, 2), Batches(3).changed(2, beyond=5)


def drawn():
    """Rows with hot keys, null keys, and times before and after 1970."""
    rng = np.random.default_rng(8)
    keys = [None if each > 30 else f"key {each}" for each in rng.zipf(1.4, ROWS).tolist()]
    times = rng.integers(-200, 200, ROWS)
    return pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "part": pa.array([None if each == 2 else each for each in rng.integers(0, 3, ROWS).tolist()]),
            "value": rng.integers(-(2**63), 2**63 - 1, ROWS),
            "pane": (times - 2) // 5,
            TIME: times,
        }
    )


TABLE = drawn()
HASHES = spark_hash([TABLE["key"], TABLE["part"]], ROWS)
SALTS = spark_hash(TABLE.columns, ROWS)
KNOWN = np.asarray(TABLE["key"].is_valid()) & np.asarray(TABLE["part"].is_valid())
# The hottest keys, then edges of hashes.
HOT, COUNTS = np.unique(HASHES[KNOWN], return_counts=True)
HOT = HOT[np.argsort(-COUNTS, kind="stable")][:20]
EDGES = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
PAIR = HashPair(
    np.concatenate([HOT, EDGES]), (np.arange(len(HOT) + 4) * 5 % CHANNELS).astype(np.int32), Ring(CHANNELS)
)
SPLIT = SubKeyPlan(tuple(SplitKey(int(each), 0.1, 40) for each in HOT.view(np.int64)[:5]))


def learnt():
    costs = ValueCosts()
    hashes, seconds = TABLE["value"].to_numpy().view(np.uint64), np.random.default_rng(2).random(ROWS)
    costs.update(hashes, np.ones(ROWS), seconds, seconds)
    return costs


COSTS = learnt()


def spread(copied):
    rates = 1 / np.arange(1, len(HOT) + 1) ** 1.2
    return Spread.of(spread_hot_keys(HOT, rates, rates[::-1], Ring(CHANNELS), copied))


@dataclass(frozen=True)
class Rule:
    """A rule: a distribution, its layout in some files, and what its router says, as rows and channels."""

    distribution: Distribution
    layout: Any
    expected: Any
    port: int = 0
    hop: int = 1
    whole: bool = False  # it looks at all rows of a flush together


def once(channels):
    return np.arange(ROWS), channels


def copied(found):
    return found.rows, found.channels


def on_grids(copies, port):
    """Rows without a key go anywhere, by their content."""
    router = spread(copies).router(PAIR, judged=is_judged(copies))
    found = (router.left, router.right)[port](HASHES, SALTS)
    own = KNOWN[found.rows]
    lone = np.flatnonzero(~KNOWN)
    return (
        np.concatenate([found.rows[own], lone]),
        np.concatenate([found.channels[own], SALTS[lone] % np.uint64(CHANNELS)]),
    )


def on_grid(copies, port):
    grid = shaped_grid(copies, CHANNELS)
    return copied((grid.left, grid.right)[port](SALTS))


def turns(first=0):
    """The running numbers by which rows of hot keys take their sub-keys."""
    return (splitmix64(np.arange(first, ROWS, dtype=np.uint64), seed=TASK) >> np.uint64(1)).astype(np.int64)


def dealt(run):
    return ((np.arange(ROWS) // run + TASK) % CHANNELS).astype(np.int32)


def by_value():
    return place_by_cost(spark_hash([TABLE["value"]], ROWS), SALTS, COSTS.means, CHANNELS, TASK)


def keyed(grids=None, forming=None):
    def layout(files):
        router = files.store(PAIR)
        return KeyLayout(channels=CHANNELS, router=router, target=router, grids=grids, forming=forming)

    return layout


def grouped(grouping):
    return lambda files: AnyLayout(channels=CHANNELS, grouping=grouping, costs=files.store(COSTS))


def laid_out(kind, **options):
    return lambda _: kind(channels=CHANNELS, **options)


RULES = {
    "by key": Rule(KEYED, keyed(), lambda: once(PAIR.route(HASHES))),
    "everywhere": Rule(
        Broadcast(),
        laid_out(Everywhere),
        lambda: (np.repeat(np.arange(ROWS), CHANNELS), np.tile(np.arange(CHANNELS), ROWS)),
    ),
    "by window": Rule(
        ByWindow(SHAPE),
        laid_out(WindowLayout, batches=BATCHES),
        lambda: WindowChannels(SHAPE, BATCHES, CHANNELS).deliveries(TABLE[TIME].to_numpy()),
    ),
    "by the windows of a bucket": Rule(
        ByWindow(SHAPE, slices="pane", width=2, offset=2),
        laid_out(WindowLayout, batches=BATCHES),
        lambda: WindowChannels(SHAPE, BATCHES, CHANNELS).deliveries(TABLE["pane"].to_numpy() * 2 + 2),
    ),
    "in turn": Rule(Anywhere(("round robin",)), grouped("round robin"), lambda: once(dealt(1))),
    "by cost": Rule(
        Anywhere(("round robin", "by cost"), ("value",)),
        grouped("by cost"),
        lambda: once(by_value()),
        whole=True,
    ),
    "by sub-key": Rule(
        KEYED,
        keyed(forming=SPLIT),
        lambda: once(SPLIT.router(CHANNELS).route(HASHES, turns())),
        hop=0,
    ),
    "in runs": Rule(PANED, laid_out(GridLayout, forming=Runs(64)), lambda: once(dealt(64)), hop=0),
    "by pane": Rule(
        PANED,
        laid_out(GridLayout, forming=Panes()),
        lambda: once(PlainPanes(CHANNELS).route(TABLE["pane"].to_numpy())),
        hop=0,
    ),
}
for _copies in ("both", "left", "right", "judged"):
    for _port in (0, 1):
        _side = f"{('left', 'right')[_port]} of {_copies}"
        if not is_judged(_copies):
            RULES[f"on a grid, {_side}"] = Rule(
                OnGrid(_copies),
                laid_out(GridLayout),
                lambda copies=_copies, port=_port: on_grid(copies, port),
                port=_port,
            )
        RULES[f"on grids, {_side}"] = Rule(
            OnGrids(KEYS, _copies),
            keyed(spread(_copies)),
            lambda copies=_copies, port=_port: on_grids(copies, port),
            port=_port,
        )
RULES["on no grids"] = Rule(
    OnGrids(KEYS, "both"),
    keyed(),
    lambda: once(np.where(KNOWN, PAIR.route(HASHES), SALTS % np.uint64(CHANNELS))),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return LayoutFiles(Location.of(str(tmp_path_factory.mktemp("routers"))))


def opened(rule, files, task=TASK):
    """A placer as an attempt of a task makes it, which reads routers from files."""
    layout, fresh = rule.layout(files), LayoutFiles(files.folder)
    if rule.hop == 0:
        return rule.distribution.former(layout, task)
    return rule.distribution.open(layout, fresh, rule.port, task)


def pairs(found, size=ROWS, first=0):
    """Row and channel of each copy, sorted."""
    rows, channels = found
    rows = np.arange(size) if rows is None else rows
    return sorted(zip((rows + first).tolist(), channels.astype(np.int64).tolist(), strict=True))


def sent(table, place):
    """The rows of each channel, by their place in all rows."""
    places = {value: row for row, value in enumerate(table["value"].to_pylist())}
    assert len(places) == table.num_rows
    return {
        channel: [places[each] for each in rows["value"].to_pylist()]
        for channel, rows in by_channel(table, place)
    }


@pytest.mark.parametrize("name", RULES)
def test_a_placer_gives_what_its_router_gives(files, name):
    rule = RULES[name]
    place = opened(rule, files)
    assert place.channels == CHANNELS
    expected = pairs(rule.expected())
    assert pairs(place.place(TABLE)) == expected
    assert {channel for _, channel in expected} == set(range(CHANNELS))


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.whole])
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, ROWS), max_size=5))
def test_any_cut_into_batches_places_rows_alike(files, name, cuts):
    rule = RULES[name]
    place, found = opened(rule, files), []
    bounds = [0, *sorted(cuts), ROWS]
    for first, last in itertools.pairwise(bounds):
        found += pairs(place.place(TABLE.slice(first, last - first)), last - first, first)
    assert found == pairs(opened(rule, files).place(TABLE))


def test_by_cost_the_order_of_rows_changes_nothing(files):
    order = np.random.default_rng(6).permutation(ROWS)
    rule = RULES["by cost"]
    _, placed = opened(rule, files).place(TABLE)
    _, again = opened(rule, files).place(TABLE.take(pa.array(order)))
    assert again.tolist() == placed[order].tolist()


@pytest.mark.parametrize("name", RULES)
def test_every_channel_gets_its_rows_in_their_order(files, name):
    rule = RULES[name]
    expected = {}
    for row, channel in pairs(rule.expected()):
        expected.setdefault(channel, []).append(row)
    found = sent(TABLE, opened(rule, files))
    assert list(found) == sorted(found)
    if name == "on no grids" or name.startswith("on grids"):
        found = {channel: sorted(rows) for channel, rows in found.items()}
    assert found == expected


@pytest.mark.parametrize("name", ["in turn", "by cost", "by sub-key"])
def test_tasks_begin_with_different_channels(files, name):
    places = [opened(RULES[name], files, task).place(TABLE)[1] for task in range(CHANNELS)]
    assert len({tuple(each.tolist()) for each in places}) == CHANNELS
    if name != "by sub-key":
        assert sorted(int(each[0]) for each in places) == list(range(CHANNELS))


@pytest.mark.parametrize("name", RULES)
def test_one_channel_takes_all_rows_once(files, name):
    rule = RULES[name]
    place = rule.distribution.open(replace(rule.layout(files), channels=1), files, rule.port, TASK)
    assert sent(TABLE, place) == {0: list(range(ROWS))}


def test_no_rows_go_nowhere(files):
    for rule in RULES.values():
        assert sent(TABLE.slice(0, 0), opened(rule, files)) == {}


def test_rows_in_turn_are_those_of_the_router():
    layout = AnyLayout(channels=CHANNELS, grouping="round robin")
    place = Anywhere(("round robin",)).open(layout, None, 0, 0)
    assert place.place(TABLE)[1].tolist() == RoundRobin(CHANNELS).route(HASHES).tolist()
