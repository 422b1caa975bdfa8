"""A join with the last rows, cut into epochs, against its definition row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.joins.epochs import epochs, everything, join, multiset, run
from penstock.operators.joins.spec import Condition, Last

KEYS = [("string",), ("bigint", "string"), ()]
CONDITION = Condition("l.x + r.x > 2", left=("x",), right=("x",))


def reference(plan, given):
    """Every row in event order looks at the last n rows of its key on the other side."""
    left, right = (table.to_pylist() for table in everything(given))
    every = [(row["t"], row["stream"], row["id"], 0, row) for row in left]
    every += [(row["t"], row["stream"], row["id"], 1, row) for row in right]
    seen, pairs = ([], []), []
    for *_, side, row in sorted(every, key=lambda each: each[:4]):
        key = [row[each] for each in plan.left.keys]
        same = [
            each for each in seen[1 - side] if [each[k] for k in plan.left.keys] == key and None not in key
        ]
        pairs += [(row, each) if side == 0 else (each, row) for each in same[-plan.bound.rows :]]
        seen[side].append(row)
    if plan.condition:
        pairs = [pair for pair in pairs if pair[0]["x"] + pair[1]["x"] > 2]
    ids = {side: {pair[side]["id"] for pair in pairs} for side in (0, 1)}
    if plan.how in {"left", "full"}:
        pairs += [(row, None) for row in left if row["id"] not in ids[0]]
    if plan.how in {"right", "full"}:
        pairs += [(None, row) for row in right if row["id"] not in ids[1]]
    return [result(plan, *pair) for pair in pairs]


def result(plan, left, right):
    time = max(row["t"] for row in (left, right) if row)
    mine = [(left or right)[key] for key in plan.left.keys]
    mine += [left and left[stored] for stored, _ in plan.left.columns]
    return {
        str(i): v for i, v in enumerate([time, *mine, *(right and right[s] for s, _ in plan.right.columns)])
    }


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@given(data=st.data())
def test_epochs_together_give_what_the_definition_says(how, data):
    keys = data.draw(st.sampled_from(KEYS))
    condition = data.draw(st.sampled_from([None, CONDITION]))
    plan = join(keys, Last(data.draw(st.integers(1, 4))), how, condition)
    given = data.draw(epochs(keys))
    delivered, _ = run(plan, given)
    expected = [tuple(row.values()) for row in reference(plan, given)]
    assert multiset(delivered) == {each: expected.count(each) for each in expected}


@given(data=st.data())
def test_a_side_holds_the_last_rows_of_a_key_and_those_that_wait(data):
    plan = join(("bigint",), Last(data.draw(st.integers(1, 3))), "full")
    given = data.draw(epochs(("bigint",)))
    _, states = run(plan, given)
    for epoch, held in zip(given, states, strict=True):
        passed = epoch.after.both
        for rows in (held.left.rows.to_pylist(), held.right.rows.to_pylist()):
            keys = [row["bigint"] for row in rows if passed is not None and row["t"] < passed]
            assert all(keys.count(key) <= plan.bound.rows for key in keys)
    assert states[-1].left.rows.num_rows == states[-1].right.rows.num_rows == 0
