"""A join within a distance, cut into epochs, against DuckDB over all rows at once."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.joins.epochs import epochs, everything, join, multiset, run
from penstock.operators.joins.spec import Condition, Within

ORACLE = duckdb.connect(config={"threads": 1})
CONDITION = Condition("l.x + r.x > 2", left=("x",), right=("x",))
KEYS = [("bigint",), ("string",), ("double",), ("string", "bigint"), ("decimal", "string", "bigint"), ()]


def batch(plan, given):
    left, right = everything(given)
    on = [f"l.{key} = r.{key}" for key in plan.left.keys]
    on.append(f"abs(l.t - r.t) <= {plan.bound.distance}")
    if plan.condition:
        on.append(plan.condition.sql)
    columns = [f"coalesce(l.{key}, r.{key})" for key in plan.left.keys]
    columns += [f"l.{stored}" for stored, _ in plan.left.columns]
    columns += [f"r.{stored}" for stored, _ in plan.right.columns]
    chosen = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    ORACLE.register("a", left)
    ORACLE.register("b", right)
    return ORACLE.sql(
        f"SELECT least(l.t, r.t) AS t, {chosen} FROM a AS l {plan.how} JOIN b AS r ON {' AND '.join(on)}"
    ).to_arrow_table()


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@given(data=st.data())
def test_epochs_together_give_the_batch_result(how, data):
    keys = data.draw(st.sampled_from(KEYS))
    condition = data.draw(st.sampled_from([None, CONDITION]))
    plan = join(keys, Within(data.draw(st.integers(0, 6))), how, condition)
    given = data.draw(epochs(keys))
    delivered, _ = run(plan, given)
    assert multiset(delivered) == multiset([batch(plan, given)])


@given(data=st.data())
def test_only_rows_that_can_still_match_are_held(data):
    plan = join(("bigint",), Within(data.draw(st.integers(0, 6))), "full")
    given = data.draw(epochs(("bigint",)))
    _, states = run(plan, given)
    for epoch, held in zip(given, states, strict=True):
        for rows, other in ((held.left.rows, epoch.after.right), (held.right.rows, epoch.after.left)):
            assert rows["bigint"].null_count == 0
            assert other is None or all(t + plan.bound.distance >= other for t in rows["t"].to_pylist())
    assert states[-1].left.rows.num_rows == states[-1].right.rows.num_rows == 0
