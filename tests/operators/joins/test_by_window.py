"""A join by windows, cut into epochs, against DuckDB over all rows in all windows at once."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from operators.joins.epochs import Epoch, join, multiset, rows, run, schema
from penstock.operators.exchange import TIME
from penstock.operators.joins.spec import END, ByWindow, Condition, Frontiers, Pair
from penstock.operators.kernel import StagePosition

ORACLE = duckdb.connect(config={"threads": 1})
CONDITIONS = [
    None,
    Condition("l.x + r.x > 2", left=("x",), right=("x",)),
    Condition("l.x + r.x > 2 AND l.x < 3", left=("x",), right=("x",), left_alone=("x < 3",)),
]
HOWS = ["inner", "left", "right", "full", "semi", "anti"]
WINDOWS = st.builds(ByWindow, st.integers(1, 9), st.integers(1, 12), st.integers(0, 5))
NEVER = -(10**6)


def batch(plan, sides, opened):
    """Every row is copied into each of its windows that was open when it came."""
    windows, keys = plan.bound, plan.left.keys
    for name, table, first in zip("ab", sides, opened, strict=True):
        ORACLE.register(f"{name}_rows", table.append_column("opened", pa.array(first, pa.int64())))
        ORACLE.sql(
            f"""CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {name}_rows,
            (SELECT unnest(generate_series(-60, 60)) * {windows.slide} + {windows.offset} AS s)
            WHERE s <= t AND t < s + {windows.size} AND s + {windows.size} > opened"""
        )
    on = [*(f"l.{key} = r.{key}" for key in keys), "l.s = r.s"]
    if plan.condition:
        on.append(plan.condition.sql)
    one = not plan.pairs
    columns = [f"l.{key}" if one else f"coalesce(l.{key}, r.{key})" for key in keys]
    columns += [f"l.{stored}" for stored, _ in plan.left.columns]
    columns += [f"r.{stored}" for stored, _ in plan.right.columns]
    chosen = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    start = "l.s" if one else "coalesce(l.s, r.s)"
    return ORACLE.sql(
        f"SELECT {start} AS t, {chosen} FROM a AS l {plan.how} JOIN b AS r ON {' AND '.join(on)}"
    ).to_arrow_table()


@st.composite
def with_late(draw, keys, windows):
    """Epochs with any frontiers, without the rows that no open window has; and what was open at each row."""
    made, before, opened = [], Frontiers(), ([], [])
    for _ in range(draw(st.integers(1, 4))):
        floor, new = windows.floor(before.both), []
        for place in range(2):
            came = draw(rows(keys, most=6))
            kept = [row for row in came if floor is None or row["t"] >= floor]
            new.append(pa.Table.from_pylist(kept, schema=schema(keys)))
            opened[place].extend([NEVER if before.both is None else before.both] * len(kept))
        reached = [
            draw(st.one_of(st.none(), st.integers(-12 if old is None else old, 14))) or old
            for old in (before.left, before.right)
        ]
        made.append(Epoch(Pair(*new), Frontiers(*reached)))
        before = made[-1].after
    end = Epoch(Pair(*(pa.Table.from_pylist([], schema=schema(keys)),) * 2), Frontiers(END, END))
    return [*made, end], opened


def check(how, data):
    keys = data.draw(st.sampled_from([("bigint",), ("string", "bigint"), ()]))
    plan = join(keys, data.draw(WINDOWS), how, data.draw(st.sampled_from(CONDITIONS)))
    given, opened = data.draw(with_late(keys, plan.bound))
    delivered, states = run(plan, given)
    sides = [pa.concat_tables([getattr(each.new, side) for each in given]) for side in ("left", "right")]
    assert multiset(delivered) == multiset([batch(plan, sides, opened)])
    for epoch, held in zip(given, states, strict=True):
        floor = plan.bound.floor(epoch.after.both)
        for side in (held.left, held.right):
            assert floor is None or all(t >= floor for t in side.rows["t"].to_pylist())


@settings(max_examples=60)
@given(how=st.sampled_from(HOWS), data=st.data())
def test_epochs_together_give_the_batch_result_in_the_windows_that_were_open(how, data):
    check(how, data)


@pytest.mark.soak
@pytest.mark.parametrize("how", HOWS)
@settings(max_examples=500)
@given(data=st.data())
def test_many_epochs_together_give_the_batch_result(how, data):
    check(how, data)


def at(*times):
    return pa.Table.from_pylist(
        [{"id": n, "stream": 0, "t": t, "x": 0, "bigint": 1} for n, t in enumerate(times)],
        schema=schema(("bigint",)),
    )


def test_a_row_alone_leaves_when_both_frontiers_have_passed_the_end_of_its_window():
    plan = join(("bigint",), ByWindow(10, 5), "anti")
    none = at()
    delivered, states = run(
        plan,
        [
            Epoch(Pair(at(7), none), Frontiers(9, 12)),
            Epoch(Pair(none, none), Frontiers(10, 12)),
            Epoch(Pair(none, at(13)), Frontiers(20, 14)),
            Epoch(Pair(none, none), Frontiers(20, 20)),
        ],
    )
    # [0, 10) closes without a partner; in [5, 15) the row at 13 is one, and then nothing is left to wait for.
    assert [each["t"].to_pylist() for each in delivered] == [[0]]
    assert [held.left.rows.num_rows for held in states] == [1, 1, 0, 0]


def test_rows_that_come_too_late_for_some_of_their_windows_are_counted():
    a, b = (ps.stream(name, "ts timestamp, k bigint", time="ts") for name in "ab")
    hop = "TABLE(HOP(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS))"
    joined = ps.sql(
        f"SELECT l.k FROM {hop.format('a')} AS l JOIN {hop.format('b')} AS r "
        "ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end",
        a,
        b,
    )
    (relation,) = joined.inputs
    kernel = relation.operator.compile("timestamp", [lambda texts: [("bigint", True)] * len(texts)] * 2)
    new = pa.table({TIME: [4_000_000, 6_000_000, 11_000_000]})
    before = StagePosition((6_000_000, 14_000_000))
    # The window up to 5 s is closed: of the row at 4 s one window of two is open.
    assert kernel.partly_late(before, (None, new), "rows") == 1
    assert kernel.partly_late(StagePosition(), (new, None), "rows") == 0
