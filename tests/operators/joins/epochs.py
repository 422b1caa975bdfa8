"""Random rows, random epochs, and a run of the join over them."""

import decimal
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from penstock.operators.joins.spec import END, ByWindow, Frontiers, JoinSpec, Last, Pair, Side
from penstock.operators.joins.step import HeldSide, step

KEYS = {
    "bigint": (pa.int64(), st.integers(0, 2)),
    "string": (pa.string(), st.sampled_from(["", "a", "ä"])),
    "decimal": (pa.decimal128(10, 2), st.sampled_from([decimal.Decimal("1.10"), decimal.Decimal("-2.00")])),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5])),
}


def side(prefix, keys):
    columns = tuple((name, f"{prefix}_{name}") for name in ("id", "x", *keys))
    return Side("t", keys=keys, ties=("stream", "id"), columns=columns)


def join(keys, bound, how="inner", condition=None, times=None):
    types = tuple(KEYS[each][0] for each in keys)
    names = tuple(f"k_{each}" for each in keys)
    right = side("r", keys)
    if how in {"semi", "anti"}:
        right = replace(right, columns=())
    return JoinSpec(
        side("l", keys),
        right,
        bound,
        types,
        how,
        condition,
        time="t",
        key_names=names,
        times=times or ("latest" if isinstance(bound, Last) else "earliest"),
    )


def schema(keys):
    fixed = {"id": pa.int64(), "stream": pa.int64(), "t": pa.int64(), "x": pa.int64()}
    return pa.schema({**fixed, **{each: KEYS[each][0] for each in keys}})


@dataclass(frozen=True)
class Epoch:
    new: Pair
    after: Frontiers


@st.composite
def rows(draw, keys, most=14):
    count = draw(st.integers(0, most))
    return [
        {
            "id": number,
            "stream": draw(st.integers(0, 1)),
            "t": draw(st.integers(-12, 12)),
            "x": draw(st.integers(0, 3)),
            **{each: draw(st.one_of(st.none(), KEYS[each][1], KEYS[each][1])) for each in keys},
        }
        for number in range(count)
    ]


@st.composite
def epochs(draw, keys):
    """Any arrival order and any promise that the rows to come keep."""
    left, right = draw(st.permutations(draw(rows(keys)))), draw(st.permutations(draw(rows(keys))))
    cuts = [
        sorted(draw(st.lists(st.integers(0, len(each)), min_size=3, max_size=3))) for each in (left, right)
    ]
    made, reached = [], [None, None]
    for number in range(4):
        new = []
        for place, given in enumerate((left, right)):
            start = cuts[place][number - 1] if number else 0
            stop = cuts[place][number] if number < 3 else len(given)
            new.append(pa.Table.from_pylist(given[start:stop], schema=schema(keys)))
            reached[place] = END if number == 3 else promise(draw, given[stop:], reached[place])
        made.append(Epoch(Pair(*new), Frontiers(*reached)))
    return made


def promise(draw, to_come, reached):
    least = min((row["t"] for row in to_come), default=13)
    value = draw(st.one_of(st.none(), st.just(least), st.integers(-15, least)))
    if reached is None or value is None:
        return reached if value is None else value
    return max(reached, value)


def run(plan, given):
    """All that is delivered, and what is held after every epoch."""
    empty = HeldSide.nothing(given[0].new.left.schema, mark_type(plan.bound))
    held, before, delivered, states = Pair(empty, empty), Frontiers(), [], []
    for epoch in given:
        sides = step(plan, held, epoch.new, before, epoch.after, delivered.append)
        held = Pair(
            sides.left.held(held.left.rows, epoch.new.left),
            sides.right.held(held.right.rows, epoch.new.right),
        )
        before = epoch.after
        states.append(held)
    return delivered, states


def mark_type(bound):
    return np.int64 if isinstance(bound, ByWindow) else np.bool_


def everything(given):
    """The rows of all epochs as two tables."""
    return tuple(pa.concat_tables([getattr(each.new, side) for each in given]) for side in ("left", "right"))


def multiset(tables):
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())
