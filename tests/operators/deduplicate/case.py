"""What a contract suite needs of deduplicate: a builder, rows, and an oracle that takes them one by one."""

from hypothesis import strategies as st

import penstock as ps

NAME = "deduplicate"
SCHEMA = "time timestamp, k bigint, s string, d double, v bigint"
WITHIN = st.integers(1, 40)
ROW = st.fixed_dictionaries(
    {
        "time": st.integers(0, 120),
        "k": st.none() | st.integers(0, 3),
        "s": st.sampled_from(["a", "b", None]),
        "d": st.sampled_from([0.0, -0.0, 1.5, None]),
        "v": st.integers(0, 3) | st.none(),
    }
)


def build(within, keys=("k",)):
    """The relation; times and `within` are in microseconds."""
    return ps.stream("t", SCHEMA, time="time").deduplicate(*keys, within=f"{within} us")


def oracle(rows, within, keys=("k",)):
    """The rows that pass, and when each key passes again."""
    again, passed = {}, []
    for row in sorted(rows, key=_event_order):
        key = tuple(row[name] for name in keys)
        if key not in again or row["time"] >= again[key]:
            again[key] = row["time"] + within
            passed.append(row)
    return passed, again


def _event_order(row):
    """Time, then content column by column, nulls last; of two zeros the positive one first."""
    content = [
        (row[name] is None, row[name] if row[name] is not None else 0) for name in ("k", "s", "d", "v")
    ]
    content[1] = (row["s"] is None, row["s"] or "")
    return row["time"], content, str(row["d"]).startswith("-")
