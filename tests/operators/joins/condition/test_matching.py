"""Candidate pairs under a condition, in spans that are shared, sliding, stepped or narrow."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.functions import translated
from penstock.operators.joins.condition import Matcher
from penstock.operators.joins.spans import Spans
from penstock.operators.joins.spec import Condition

PROBES, BUILD = 300, 4_000
START = np.arange(PROBES) * 4
SPANS = {
    "shared by all": (0 * START, 0 * START + BUILD),
    "sliding": (START, START + 2_800),
    "stepped": (START * 3, START * 3 + 200),
    "narrow": (START, START + 3),
    "with empty ones": (START, START + 2_000 * (START % 8 == 0)),
}


@pytest.mark.parametrize("left_probes", [True, False], ids=["left probes", "right probes"])
@pytest.mark.parametrize("shape", SPANS)
def test_pairs_are_those_in_the_spans_for_which_the_condition_is_true(shape, left_probes):
    low, high = SPANS[shape]
    random = np.random.default_rng(7)
    probe, order = random.permutation(PROBES), random.permutation(BUILD)
    a, b = random.integers(0, 100, PROBES), random.integers(0, 100, BUILD)
    probing, building = pa.table({"x": a}), pa.table({"x": b})
    # Not symmetric, so that left and right cannot be taken for each other.
    sql = "l.x * 3 + r.x < 60" if left_probes else "r.x * 3 + l.x < 60"
    tables = (probing, building) if left_probes else (building, probing)
    with Matcher(Condition(sql, ("x",), ("x",)), *tables) as matcher:
        found = list(matcher.pairs(Spans(probe, order, low, high), left_probes=left_probes))
    pairs = np.concatenate([np.stack(each if left_probes else each[::-1]) for each in found], axis=1)
    place = np.arange(BUILD)
    inside = (place >= low[:, None]) & (place < high[:, None]) & (a[probe][:, None] * 3 + b[order] < 60)
    expected = np.stack([probe[np.nonzero(inside)[0]], order[np.nonzero(inside)[1]]])
    assert sorted(map(tuple, pairs.T.tolist())) == sorted(map(tuple, expected.T.tolist()))


def test_null_is_not_true():
    rows = pa.table({"x": pa.array([None, 1], pa.int64())})
    spans = Spans(np.array([0, 1]), np.array([0, 1]), np.array([0, 0]), np.array([2, 2]))
    with Matcher(Condition("l.x = r.x", ("x",), ("x",)), rows, rows) as matcher:
        found = [(one.tolist(), other.tolist()) for one, other in matcher.pairs(spans, left_probes=True)]
    assert found == [([1], [1])]


@pytest.mark.parametrize("left_probes", [True, False], ids=["left probes", "right probes"])
def test_a_condition_does_not_raise_for_pairs_outside_of_the_spans(left_probes):
    low, high = SPANS["sliding"]
    probing, building = pa.table({"x": START}), pa.table({"x": np.arange(BUILD)})
    one, other = ("l", "r") if left_probes else ("r", "l")
    columns = {"l.x": "bigint", "r.x": "bigint"}
    # Zero at a distance that no span reaches.
    condition = translated(f"1000000L div ({other}.x - {one}.x - 3000) < -500", columns)
    tables = (probing, building) if left_probes else (building, probing)
    spans = Spans(np.arange(PROBES), np.arange(BUILD), low, high)
    with Matcher(Condition(condition.sql, ("x",), ("x",), condition.raises), *tables) as matcher:
        found = sum(len(each) for each, _ in matcher.pairs(spans, left_probes=left_probes))
    distances = np.arange(2_800)
    assert found == PROBES * int((1_000_000 // (3_000 - distances) > 500).sum())
