"""A join within a distance, cut into epochs, against DuckDB over all rows at once."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.joins.epochs import epochs, everything, join, multiset, run
from penstock.operators.joins.spec import Condition, Within

ORACLE = duckdb.connect(config={"threads": 1})
CONDITIONS = [
    None,
    Condition("l.x + r.x > 2", left=("x",), right=("x",)),
    Condition("l.x + r.x > 2 AND l.x < 3", left=("x",), right=("x",), left_alone=("x < 3",)),
    Condition("r.x > 0 AND l.x <> 1", ("x",), ("x",), left_alone=("x <> 1",), right_alone=("x > 0",)),
]
KEYS = [("bigint",), ("string",), ("double",), ("string", "bigint"), ("decimal", "string", "bigint"), ()]
HOWS = ["inner", "left", "right", "full", "semi", "anti"]
TIMES = {"earliest": "least(l.t, r.t)", "latest": "greatest(l.t, r.t)"}
TIMES |= {"left": "coalesce(l.t, r.t)", "right": "coalesce(r.t, l.t)"}


def batch(plan, given):
    left, right = everything(given)
    on = [f"l.{key} = r.{key}" for key in plan.left.keys]
    on.append(f"r.t - l.t BETWEEN -{plan.bound.back} AND {plan.bound.distance}")
    if plan.condition:
        on.append(plan.condition.sql)
    one, time = not plan.pairs, "l.t" if not plan.pairs else TIMES[plan.times]
    columns = [f"l.{key}" if one else f"coalesce(l.{key}, r.{key})" for key in plan.left.keys]
    columns += [f"l.{stored}" for stored, _ in plan.left.columns]
    columns += [f"r.{stored}" for stored, _ in plan.right.columns]
    chosen = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    ORACLE.register("a", left)
    ORACLE.register("b", right)
    return ORACLE.sql(
        f"SELECT {time} AS t, {chosen} FROM a AS l {plan.how} JOIN b AS r ON {' AND '.join(on)}"
    ).to_arrow_table()


@st.composite
def bounds(draw):
    return Within(draw(st.integers(0, 6)), draw(st.one_of(st.just(-1), st.integers(0, 6), st.just(1 << 60))))


@pytest.mark.parametrize("how", HOWS)
@given(data=st.data())
def test_epochs_together_give_the_batch_result(how, data):
    keys = data.draw(st.sampled_from(KEYS))
    condition, times = data.draw(st.sampled_from(CONDITIONS)), data.draw(st.sampled_from(sorted(TIMES)))
    plan = join(keys, data.draw(bounds()), how, condition, times)
    given = data.draw(epochs(keys))
    delivered, _ = run(plan, given)
    assert multiset(delivered) == multiset([batch(plan, given)])


@pytest.mark.parametrize("how", ["full", "semi", "anti"])
@given(data=st.data())
def test_only_rows_that_can_still_match_are_held(how, data):
    plan = join(("bigint",), data.draw(bounds()), how, data.draw(st.sampled_from(CONDITIONS)))
    given = data.draw(epochs(("bigint",)))
    _, states = run(plan, given)
    reach = plan.bound.distance, plan.bound.back
    for epoch, held in zip(given, states, strict=True):
        others = (epoch.after.right, epoch.after.left)
        for side, other, wait in zip((held.left, held.right), others, reach, strict=True):
            assert side.rows["bigint"].null_count == 0
            assert other is None or all(t + wait >= other for t in side.rows["t"].to_pylist())
        if how != "full":
            assert not held.left.matched.any()
        if plan.condition and plan.condition.left_alone == ("x < 3",):
            assert 3 not in held.left.rows["x"].to_pylist()
    assert states[-1].left.rows.num_rows == states[-1].right.rows.num_rows == 0
