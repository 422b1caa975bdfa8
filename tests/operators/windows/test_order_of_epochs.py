"""A class aggregate without `split` gets the states of one pane in the order of epochs, whatever moves."""

import datetime as dt
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from fuzz.local import run_local
from penstock.state import compaction

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KEYS = "abc"


class Trail(ps.ArrowAggregate):
    """The values as text, one after the other."""

    state: ClassVar = {"trail": "string"}
    result = "string"

    def accumulate(self, groups, n, values):
        trails = ["" for _ in range(n)]
        for group, value in zip(groups.tolist(), values.to_pylist(), strict=True):
            trails[group] += f" {value}"
        return pa.record_batch({"trail": pa.array(trails, pa.string())})

    def merge(self, left, right):
        return pa.record_batch({"trail": pc.binary_join_element_wise(left["trail"], right["trail"], "")})

    def finish(self, state):
        return state["trail"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("slide", ["10 minutes", "2 minutes"])
def test_states_of_one_pane_are_merged_in_the_order_of_the_epochs(monkeypatch, slide, rescale, seed):
    # So small that nearly every epoch merges segments, of which each counts as large, or rewrites moved ones.
    monkeypatch.setattr(compaction, "BUDGET", 300)
    monkeypatch.setattr(compaction, "MOST_LARGE", 3)
    epochs = [[{"time": START, "k": key, "n": number} for key in KEYS] for number in range(30)]
    stream = ps.stream("t", "time timestamp, k string, n int", time="time", delay="1 hour")
    trails = stream.group_by("k").window("10 minutes", slide=slide).agg(trail=Trail("n"))
    (found,) = run_local(trails, {"t": epochs}, seed=seed, channels=3, rescale=rescale).tables
    expected = "".join(f" {number}" for number in range(30))
    assert set(found["trail"].to_pylist()) == {expected}
    assert found.num_rows == len(KEYS) * (1 if slide == "10 minutes" else 5)
