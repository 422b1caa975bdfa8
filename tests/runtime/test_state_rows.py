"""What lives in the segments of a channel, segment by segment written by hand."""

import pyarrow as pa
import pytest

from penstock.runtime.records import StageRecord
from penstock.runtime.segments import store
from penstock.runtime.stage_notes import StageNote
from penstock.runtime.state_rows import StateRows
from penstock.runtime.storage import Location

NO_TIMER = 2**63 - 1


@pytest.fixture
def folder(tmp_path):
    return Location.of(tmp_path)


def shown(folder, note, segments, frontiers=()):
    rows = StateRows(folder, note, StageRecord(channels=(tuple(segments),), frontiers=frontiers))
    return [row for table in rows.tables(0) for row in rows.named(table).to_pylist()]


def states(keys, values, timers, known):
    columns = {"_ps_key0": keys, "_ps_hash": pa.array([0] * len(keys)), "_ps_timer": timers, "n": values}
    return pa.table(columns).append_column("_ps_known", pa.array(known))


def test_of_a_keyed_function_the_newest_version_of_a_key_is_shown(folder):
    old = states(["a", "b", None], [1, 1, 1], [NO_TIMER, 0, 0], [True, True, True])
    new = states(["b", None], [2, 0], [5_000_000, NO_TIMER], [True, False])
    held = [store(folder, "s", table, first=0, end=1, part="state") for table in (old, new)]
    found = shown(folder, StageNote(keys=("user",)), held)
    assert [(row["user"], row["n"]) for row in found] == [("a", 1), ("b", 2)]
    assert found[0]["_timer"] is None
    assert found[1]["_timer"].second == 5
    assert not {"_ps_hash", "_ps_known"} & found[0].keys()


def test_rows_that_the_frontier_has_passed_wait_no_more(folder):
    waiting = pa.table({"_ps_key0": ["a", "a", "b"], "_ps_time": [1, 5, 9], "v": [1, 2, 3]})
    segment = store(folder, "s", waiting, first=1, end=10, part="rows")
    assert [row["v"] for row in shown(folder, StageNote(keys=("user",)), [segment], (5,))] == [2, 3]


def test_columns_of_an_unknown_kind_are_shown_as_they_are(folder):
    segment = store(folder, "s", pa.table({"_ps_key0": [1], "x": ["y"]}), first=0, end=0, part="new kind")
    assert shown(folder, StageNote(), [segment]) == [{"_ps_key0": 1, "x": "y", "_part": "new kind"}]
