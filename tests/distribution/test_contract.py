"""What every distribution is held to: rows, pairs and windows reach their channels once, moved or not.

A case draws rows and says where they have to meet. Layouts are any that may follow each other. A new
distribution is a case here, and a new way of forming partials is found by its name.
"""

import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from distribution.drawing import SETTINGS, any_layout, any_sub_keys, no_sample
from penstock.columns import CELL, HASH, TIME
from penstock.distribution import Anywhere, Broadcast, ByKey, ByWindow, Forming, Layout, OnGrid, OnGrids
from penstock.distribution.distribution import Change, Distribution, Held, by_channel
from penstock.routing import WindowShape
from penstock.routing.arrays import cells_of
from penstock.routing.spark_hash import spark_hash
from penstock.routing.window_ids import window_range
from penstock.runtime.layout_files import LayoutFiles
from penstock.sketches import ValueCosts
from penstock.state import Location
from penstock.state.placing import Placing, Read

ROWS = 700
KEYS = ("k", "n")
PANES = 10
SHAPE = WindowShape(60, 20, 0)


@dataclass(frozen=True)
class Case:
    """A distribution, its number of ports, and what has to meet: nothing, rows of equal keys, or all rows."""

    distribution: Distribution
    meets: str = ""
    keeps: bool = True

    @property
    def ports(self):
        return 2 if self.meets or isinstance(self.distribution, Broadcast) else 1


CASES = {
    "by key": Case(ByKey(KEYS)),
    "by key, mergeable": Case(ByKey(KEYS, mergeable=True)),
    **{
        f"on grids, {each} copied": Case(OnGrids(KEYS, each), "keys")
        for each in ("both", "left", "right", "judged", "neither")
    },
    **{f"on a grid, {each} copied": Case(OnGrid(each), "all") for each in ("both", "left", "right")},
    "in one channel": Case(OnGrid("neither", mergeable=True, slices="pane")),
    "by window": Case(ByWindow(SHAPE)),
    "by window, in batches": Case(ByWindow(SHAPE, batch=3, slices="pane", width=PANES, offset=0)),
    "anywhere": Case(Anywhere(("in place", "round robin", "by cost"), KEYS), keeps=False),
    "in turn": Case(Anywhere(("round robin",)), keeps=False),
    "everywhere": Case(Broadcast()),
}
SEEDS = range(6)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=SEEDS)
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def files(tmp_path):
    folder = Location(str(tmp_path / "routers"))
    folder.make()
    return LayoutFiles(folder)


def drawn(rng, port=0, rows=ROWS):
    """Rows of a port, each with a number of its own; some keys are frequent, some are null."""
    letters = rng.choice(["a", "b", *map(str, range(40))], rows, p=[0.3, 0.2, *[0.5 / 40] * 40])
    times = rng.integers(0, 400, rows)
    return pa.table(
        {
            TIME: times,
            "k": pa.array(np.where(rng.random(rows) < 0.05, None, letters), pa.string()),
            "n": rng.integers(0, 2, rows),
            "id": np.arange(rows) + 10_000 * port,
            "pane": times // PANES,
            HASH: rng.integers(0, 9, rows),
        }
    )


def hashes(rows):
    return np.unique(spark_hash([rows[name] for name in KEYS], rows.num_rows))


def opened(case, rng, files, channels=None):
    """A steering that has learnt what rows cost, and any of its layouts."""
    steering = case.distribution.steering(SETTINGS, files)
    layout = steering.first(channels or int(rng.integers(2, 6)), no_sample)
    if not case.keeps:
        costs = ValueCosts()
        costs.update(np.arange(9, dtype=np.uint64), np.ones(9), np.arange(9.0), np.arange(9.0))
        steering.costs.update([costs])
        grouping = str(rng.choice([each for each in case.distribution.groupings if each != "in place"]))
        asked = {"grouping": Change(0, "grouping", grouping, "any")}
        layout = steering.follow(layout, asked, Held(), no_sample)
    return steering, layout


def followed(case, rng, files, before, rows):
    """Any layout after another one."""
    keys = rng.choice(hashes(rows), 3, replace=False)
    return any_layout(rng, case.distribution, before, files, keys)


def placed(placer, rows):
    """The rows that each channel gets, by their ids."""
    found = {channel: own["id"].to_pylist() for channel, own in by_channel(rows, placer)}
    return [
        found.get(channel, []) for channel in range(max([placer.channels, *(each + 1 for each in found)]))
    ]


def at_home(case, layout, files, rows, port=0, task=0):
    found = placed(case.distribution.open(layout, files, port, task), rows)
    assert len(found) <= layout.channels
    return found + [[]] * (layout.channels - len(found))


def known_ids(rows):
    """The ids of rows whose key has no null, by key."""
    found = {}
    for key, number, each in zip(*(rows[name].to_pylist() for name in (*KEYS, "id")), strict=True):
        if key is not None:
            found.setdefault((key, number), []).append(each)
    return found


def check_meetings(case, channels, rows, view=None):
    """What has to meet does so in one channel; every row is somewhere, and nowhere twice.

    With a view of judged grids, a pair is delivered by one channel, and one channel judges each row.
    """
    for own, port in zip(channels, rows, strict=True):
        counts = Counter(each for ids in own for each in ids)
        assert set(counts) == set(port["id"].to_pylist())
        assert all(len(set(ids)) == len(ids) for ids in own), "a row is in a channel twice"
        if not case.distribution.copies:
            assert set(counts.values()) == {1}
    if isinstance(case.distribution, Broadcast):
        assert all(
            sorted(ids) == port["id"].to_pylist()
            for own, port in zip(channels, rows, strict=True)
            for ids in own
        )
    if isinstance(case.distribution, ByKey):
        check_whole_keys(channels[0], rows[0])
    if isinstance(case.distribution, ByWindow):
        check_windows(case.distribution, channels[0], rows[0])
    if view is not None and isinstance(case.distribution, OnGrids):
        check_judged(channels, rows, view)
    elif case.meets:
        check_pairs(case, channels, rows)


def check_whole_keys(channels, rows):
    keys = dict(
        zip(rows["id"].to_pylist(), zip(*(rows[name].to_pylist() for name in KEYS), strict=True), strict=True)
    )
    homes = {}
    for channel, ids in enumerate(channels):
        for each in ids:
            assert homes.setdefault(keys[each], channel) == channel


def check_windows(distribution, channels, rows):
    """Some channel has all rows of each window."""
    times = dict(zip(rows["id"].to_pylist(), distribution.times(rows).tolist(), strict=True))
    first, last = window_range(SHAPE, np.array(list(times.values())))
    members = {}
    for each, begin, end in zip(times, first.tolist(), last.tolist(), strict=True):
        for window in range(begin, end + 1):
            members.setdefault(window, set()).add(each)
    assert all(any(own <= set(ids) for ids in channels) for own in members.values())


def check_pairs(case, channels, rows):
    met = Counter()
    for left, right in zip(*channels, strict=True):
        met.update((one, other) for one in left for other in right)
    if case.meets == "all":
        left, right = (port["id"].to_pylist() for port in rows)
        wanted = {(one, other) for one in left for other in right}
    else:
        left, right = map(known_ids, rows)
        wanted = {
            (one, other) for key in left.keys() & right.keys() for one in left[key] for other in right[key]
        }
    assert all(met[pair] == 1 for pair in wanted), "a pair meets in no channel, or in two"


def check_judged(channels, rows, view):
    """Each pair is delivered by one channel; one channel judges each row, and has all partners of it."""
    delivered, judged = Counter(), Counter()
    ids = [known_ids(port) for port in rows]
    keys = [{each: key for key, own in port.items() for each in own} for port in ids]
    hashed = dict(
        zip(
            zip(*(rows[0][name].to_pylist() for name in KEYS), strict=True),
            spark_hash([rows[0][name] for name in KEYS], rows[0].num_rows).view(np.int64).tolist(),
            strict=True,
        )
    )
    for channel, sides in enumerate(zip(*channels, strict=True)):
        duties = view.duties(channel)
        for port, own in enumerate(sides):
            for each in own:
                key = keys[port].get(each)
                duty = duties.get(hashed.get(key))
                if duty is None or duty.port == port:
                    judged[each] += 1
                    partners = ids[1 - port].get(key, [])
                    assert set(partners) <= set(sides[1 - port]), "a row is judged without a partner of it"
                if port == 0 and key is not None and (duty is None or duty.delivers):
                    delivered.update((each, other) for other in sides[1] if keys[1].get(other) == key)
    wanted = {(one, other) for one, key in keys[0].items() for other in ids[1].get(key, [])}
    assert delivered == dict.fromkeys(wanted, 1)
    assert judged == dict.fromkeys([each for port in rows for each in port["id"].to_pylist()], 1)


def ports_of(case, rng):
    return [drawn(rng, port, ROWS if case.ports == 1 else 120) for port in range(case.ports)]


def test_everything_meets_once(case, rng, files):
    rows = ports_of(case, rng)
    _, layout = opened(case, rng, files)
    for each in (layout, followed(case, rng, files, layout, rows[0])):
        found = [at_home(case, each, files, port, number) for number, port in enumerate(rows)]
        check_meetings(case, found, rows, case.distribution.view(each))


def cuts(rng, rows):
    edges = [0, *np.sort(rng.integers(0, rows.num_rows + 1, 3)).tolist(), rows.num_rows]
    return [rows.slice(first, last - first) for first, last in pairwise(edges)]


def test_any_attempt_and_any_cut_place_rows_alike(case, rng, files):
    (rows, *_) = ports_of(case, rng)
    _, layout = opened(case, rng, files)
    whole = at_home(case, layout, files, rows, task=3)
    assert at_home(case, layout, files, rows, task=3) == whole
    # Where costs decide, the rows of a flush are placed together, and a port cuts these at fixed numbers.
    pieces = [rows] if getattr(layout, "grouping", "") == "by cost" else cuts(rng, rows)
    placer, found = case.distribution.open(layout, files, 0, 3), [[] for _ in range(layout.channels)]
    for piece in pieces:
        for channel, ids in enumerate(placed(placer, piece)):
            found[channel] += ids
    assert list(map(sorted, found)) == list(map(sorted, whole))


def test_a_layout_is_its_plain_values(case, rng, files):
    rows = drawn(rng)
    _, layout = opened(case, rng, files)
    after = followed(case, rng, files, layout, rows)
    for each in (layout, after):
        again = Layout.from_json(json.loads(json.dumps(each.to_json())))
        assert again == each
        assert at_home(case, again, files, rows) == at_home(case, each, files, rows)


def moved(case, rng, files, before, after, state, rows):
    """State by channel after a move, as readers of files see it, from a rule that was written and read."""
    placing = case.distribution.move(before, after, files)
    values, arrays = placing.packed()
    known = Placing.known[placing.kind].unpacked(json.loads(json.dumps(values)), arrays)
    found = []
    for port, channels in enumerate(state):
        own = [[] for _ in range(after.channels)]
        for source, ids in enumerate(channels):
            held = rows[port].take(pa.array(np.array(ids, np.int64) - 10_000 * port))
            held = held.take(pa.array(rng.permutation(held.num_rows)))
            if case.distribution.keys(port) and rng.random() < 0.5:
                hashes = spark_hash([held[name] for name in KEYS], held.num_rows)
                held = held.append_column(CELL, pa.array(cells_of(hashes)))
            panes = held["pane" if getattr(case.distribution, "slices", "") else TIME].to_pylist() or [0]
            read = Read(
                held,
                np.arange(held.num_rows),
                KEYS if case.distribution.keys(port) else (),
                port,
                seed=source,
            )
            taken = {}
            for target, share in placing.flow(source, port, (min(panes), max(panes) + 1)).items():
                mask = np.ones(held.num_rows, bool) if share is None else known.takes(read, source, target)
                taken[target] = held.filter(pa.array(mask))["id"].to_pylist()
            for target in range(after.channels):
                own[target] += taken.get(target, [])
        found.append(own)
    return found


def test_moves_keep_what_meets(case, rng, files):
    if not case.keeps:
        return
    rows = ports_of(case, rng)
    _, layout = opened(case, rng, files)
    state = [at_home(case, layout, files, port, number) for number, port in enumerate(rows)]
    for _ in range(3):
        after = followed(case, rng, files, layout, rows[0])
        if case.distribution.moves(layout, after):
            state = moved(case, rng, files, layout, after, state, rows)
        check_meetings(case, state, rows, case.distribution.view(after))
        layout = after


def test_rows_of_keys_and_windows_lie_where_a_fresh_start_has_them(case, rng, files):
    if not isinstance(case.distribution, ByKey | ByWindow | Broadcast):
        return
    rows = ports_of(case, rng)
    _, before = opened(case, rng, files)
    after = followed(case, rng, files, before, rows[0])
    state = [at_home(case, before, files, port, number) for number, port in enumerate(rows)]
    state = moved(case, rng, files, before, after, state, rows)
    fresh = [at_home(case, after, files, port, number) for number, port in enumerate(rows)]
    assert [[sorted(ids) for ids in own] for own in state] == [[sorted(ids) for ids in own] for own in fresh]


def test_every_tuple_counts_once(case, rng, files):
    rows = drawn(rng)
    _, layout = opened(case, rng, files)
    view, counts = case.distribution.view(layout), Counter()
    for channel, own in by_channel(rows, case.distribution.open(layout, files, 0, 0)):
        mask = case.distribution.counted(view, own, channel)
        if mask is not None:
            counts.update(own.filter(pa.array(mask))["id"].to_pylist())
    assert not counts or (set(counts) == set(rows["id"].to_pylist()) and set(counts.values()) == {1})


@pytest.mark.parametrize("kind", Forming.known)
def test_a_forming_sends_every_row_once_however_it_is_cut(kind, rng):
    rows, channels = drawn(rng), int(rng.integers(2, 6))
    forming = any_sub_keys(rng, rng.choice(hashes(rows), 3, replace=False))
    if kind != forming.kind:
        forming = Forming.known[kind].planned(channels, Held(in_bucket=40.0, rows=10_000))
    layout = replace(
        CASES["by key"].distribution.steering(SETTINGS, _Nothing()).first(channels, no_sample),
        forming=forming,
    )
    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout
    assert layout.hops == 2
    assert forming.words(channels)
    whole = placed(forming.open(KEYS, "pane", channels, 1), rows)
    assert sorted(each for ids in whole for each in ids) == rows["id"].to_pylist()
    assert placed(forming.open(KEYS, "pane", channels, 1), rows) == whole
    placer, found = forming.open(KEYS, "pane", channels, 1), [[] for _ in range(channels)]
    for piece in cuts(rng, rows):
        for channel, ids in enumerate(placed(placer, piece)):
            found[channel] += ids
    assert found == whole


class _Nothing:
    """Stores nothing."""

    def store(self, value):
        del value
        return "router"


def test_two_choices_even_out_a_hot_key(rng):
    """One key has half of all rows: by the ring alone its channel would have more than half of them."""
    rows = pa.table({"k": np.where(rng.random(20_000) < 0.5, 0, rng.integers(1, 5_000, 20_000))})
    placer = Forming.known["two choices"].planned(4, None).open(("k",), "", 4, 0)
    _, channels = placer.place(rows)
    counts = np.bincount(channels, minlength=4)
    assert counts.max() / counts.mean() < 1.35
    hot = np.unique(channels[rows["k"].to_numpy() == 0])
    assert len(hot) <= 2
    homes = {key: set(channels[rows["k"].to_numpy() == key]) for key in range(200)}
    assert max(map(len, homes.values())) <= 2
    assert_array_equal(
        channels, Forming.known["two choices"].planned(4, None).open(("k",), "", 4, 0).place(rows)[1]
    )
