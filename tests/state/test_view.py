"""The state of a stage for people, segment by segment written by hand."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import DamagedCheckpoint, UnknownKey
from penstock.state import (
    HASH,
    KNOWN,
    NO_TIMER,
    PANE,
    TIME,
    TIMER,
    ChannelStore,
    Location,
    PaneTable,
    Segment,
    StageNote,
    StageView,
    TimeTable,
    VersionTable,
    compare_stages,
    store,
    table_from,
)

STATE = VersionTable("state", ("_ps_key0",), labels={"_ps_key0": "user"})
WAITING = TimeTable("rows", ("_ps_key0",), labels={"_ps_key0": "user"}, lives=(0, 0))


@pytest.fixture
def folder(tmp_path):
    return Location.of(tmp_path)


def view(folder, tables, segments, frontiers=()):
    note = StageNote.from_json(json.loads(json.dumps(StageNote("op", ("user",), tables).to_json())))
    assert note == StageNote("op", ("user",), tables)
    return StageView(folder, note, (tuple(segments),), frontiers)


def shown(folder, tables, segments, frontiers=()):
    return [row for rows in view(folder, tables, segments, frontiers).shown(0) for row in rows.to_pylist()]


def states(keys, values, timers, known):
    columns = {"_ps_key0": keys, HASH: pa.array([0] * len(keys)), TIMER: timers, "n": values}
    return pa.table(columns).append_column(KNOWN, pa.array(known))


def held_states(folder):
    old = states(["a", "b", None], [1, 1, 1], [NO_TIMER, 0, 0], [True, True, True])
    new = states(["b", None], [2, 0], [5_000_000, NO_TIMER], [True, False])
    return [store(folder, "s", rows, table="state", first=0, end=1) for rows in (old, new)]


def waiting(folder):
    rows = pa.table({"_ps_key0": ["a", "a", "b"], TIME: [1, 5, 9], "v": [1, 2, 3], HASH: [0, 0, 0]})
    return store(folder, "s", rows, table="rows", first=1, end=10)


def test_the_newest_version_of_a_key_is_shown(folder):
    found = sorted(shown(folder, (STATE,), held_states(folder)), key=lambda row: row["user"])
    assert [(row["user"], row["n"], row["_part"]) for row in found] == [("a", 1, "state"), ("b", 2, "state")]
    assert found[0]["_timer"] is None
    assert found[1]["_timer"].second == 5
    assert not {HASH, KNOWN} & found[0].keys()


def test_rows_that_the_frontier_has_passed_wait_no_more(folder):
    found = shown(folder, (WAITING,), [waiting(folder)], (5,))
    assert [row["v"] for row in found] == [2, 3]
    assert found[0]["_time"].microsecond == 5
    assert set(found[0]) == {"user", "_time", "v", "_part"}


def test_a_side_of_a_join_says_which_rows_have_matched(folder):
    table = TimeTable("left", ("_ps_key0",), labels={"_ps_key0": "user", TIME: "time"}, marked=True)
    rows = pa.table({"_ps_key0": ["a", "b"], TIME: [1, 2], "user": ["a", "b"], "time": [1, 2]})
    none = np.zeros(0, np.bool_)
    opened = table.open(ChannelStore(folder, "e"), rows.schema)
    segments = opened.close_by_masks(none, none, rows, np.array([False, True]))
    found = shown(folder, (table,), segments)
    assert [(row["user"], row["_matched"]) for row in found] == [("a", False), ("b", True)]
    assert set(found[0]) == {"user", "time", "_part", "_matched"}


def test_panes_are_shown_by_their_times_and_what_rows_cover(folder):
    table = PaneTable("panes", ("_ps_key0",), labels={"p1": "sum(n)"}, pane=1_000_000, offset=5)
    rows = pa.table({"_ps_key0": [1], PANE: [2], "p1": [7]})
    segments = [store(folder, "s", rows, table="panes", first=2, end=3, level=level) for level in (0, 8)]
    found = shown(folder, (table,), segments)
    assert [(row["_pane"].second, row["_pane"].microsecond, row["_panes"]) for row in found] == [
        (2, 5, 1),
        (2, 5, 8),
    ]
    assert found[0]["sum(n)"] == 7
    counts = shown(folder, (PaneTable("panes"),), segments)
    assert counts[0]["_pane"] == 2


def test_tables_that_are_not_described_are_shown_as_they_are(folder):
    segment = store(folder, "s", pa.table({"_ps_key0": [1], "x": ["y"]}), table="new kind", first=0, end=0)
    assert shown(folder, (), [segment]) == [{"_ps_key0": 1, "x": "y", "_part": "new kind"}]


def test_a_channel_is_summed_up(folder):
    segments = [*held_states(folder), waiting(folder)]
    summary = view(folder, (STATE, WAITING), segments, (5,)).summary(0)
    assert (summary.segments, summary.rows, summary.keys) == (3, 4, 2)
    assert summary.bytes == sum(each.bytes for each in segments)
    assert view(folder, (STATE,), []).summary(0).keys == 0


def test_a_key_is_found_in_every_table(folder):
    state = view(folder, (STATE, WAITING), [*held_states(folder), waiting(folder)], (0,))
    found = list(state.of_key(["b"]))
    assert [(channel, rows["_part"].to_pylist()) for channel, rows in found] == [
        (0, ["state"]),
        (0, ["rows"]),
    ]
    assert list(state.of_key(["z"])) == []
    with pytest.raises(UnknownKey, match="key a, b has 2 parts, but the state has 1 key columns"):
        list(state.of_key(["a", "b"]))
    numbers = store(folder, "s", pa.table({"_ps_key0": [1]}), table="x", first=0, end=0)
    with pytest.raises(UnknownKey, match="'b' does not fit the type int64"):
        list(view(folder, (), [numbers]).of_key(["b"]))


def test_a_null_key_is_asked_for(folder):
    rows = pa.table({"_ps_key0": pa.array(["a", None]), TIME: [1, 2]})
    segment = store(folder, "s", rows, table="rows", first=1, end=3)
    ((_, found),) = view(folder, (WAITING,), [segment]).of_key(["\\N"])
    assert found["user"].to_pylist() == [None]


def test_all_tables_are_exported_to_one_file(folder, tmp_path):
    state = view(folder, (STATE, WAITING), [*held_states(folder), waiting(folder)], (0,))
    assert state.export(tmp_path / "x.parquet") == 5
    rows = pq.read_table(tmp_path / "x.parquet")
    assert rows.column_names == ["_channel", "user", "_timer", "n", "_part", "_time", "v"]
    assert sorted(rows["_part"].to_pylist()) == ["rows"] * 3 + ["state"] * 2


def test_epochs_are_compared_by_their_segments():
    one, two = Segment("one", "t", 0, 1, 10, 100), Segment("two", "t", 0, 1, 4, 40)
    marks = Segment("marks", "t", 0, 0, 14, 8, level=-1)
    change = compare_stages(3, ((one,),), ((one, two, marks), (two,)), ((), (5, None)))
    first, second = change.channels
    assert (first.added, first.removed, first.kept, first.rows, first.bytes) == (
        ("two", "marks"),
        (),
        1,
        4,
        48,
    )
    assert (second.added, second.rows) == (("two",), 4)
    assert change.frontiers == ((None, 5), (None, None))


def test_a_kind_of_another_version_is_named():
    with pytest.raises(DamagedCheckpoint, match=r"kind 'tree' .* knows time, version, pane"):
        table_from({"kind": "tree", "name": "x"})
