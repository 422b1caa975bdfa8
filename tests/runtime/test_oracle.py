"""Whole runs on Spark against DuckDB over the same accepted tuples."""

import datetime as dt
import decimal
import itertools
import tempfile

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import penstock as ps
from oracle import Shape, split_late, windows

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

KEYS = {
    "word": ("string", st.sampled_from([None, "", "a", "Ünï", "b" * 40])),
    "number": ("bigint", st.sampled_from([None, 0, -1, 2**62])),
    "price": ("decimal(9,2)", st.sampled_from([None, decimal.Decimal("1.50"), decimal.Decimal("-3.25")])),
    "day": ("date", st.sampled_from([None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)])),
    "flag": ("boolean", st.sampled_from([None, True, False])),
}
VALUES = {
    "i": ("int", st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))),
    "l": ("bigint", st.one_of(st.none(), st.integers(-(2**50), 2**50))),
    "d": ("double", st.one_of(st.none(), st.integers(-10_000, 10_000).map(lambda n: n / 8))),
    "m": ("decimal(12,3)", st.one_of(st.none(), st.decimals(-(10**6), 10**6, places=3))),
    "s": ("string", st.one_of(st.none(), st.text("abcé", max_size=4))),
}
NUMERIC = {
    "sum": (ps.sum, "sum({})"),
    "avg": (ps.avg, "avg({}::double)"),
    "var": (ps.var, "var_samp({}::double)"),
    "stddev": (ps.stddev, "stddev_samp({}::double)"),
}
ANY = {
    "count": (ps.count, "count({})"),
    "min": (ps.min, "min({})"),
    "max": (ps.max, "max({})"),
    "first": (ps.first, "arg_min({0}, row(time, {0})) FILTER ({0} IS NOT NULL)"),
    "last": (ps.last, "arg_max({0}, row(time, {0})) FILTER ({0} IS NOT NULL)"),
}


@st.composite
def shapes(draw):
    unit = draw(st.sampled_from([1, 7_000, 1_000_000, 60_000_000]))
    size = draw(st.integers(1, 12))
    slide = draw(st.integers(1, size + 2))
    return Shape(size * unit, slide * unit, draw(st.integers(0, slide * unit - 1))), unit


@st.composite
def cases(draw):
    shape, unit = draw(shapes())
    keys = draw(st.lists(st.sampled_from(list(KEYS)), max_size=3, unique=True))
    start = draw(st.sampled_from([0, -(10**13) - 1, 1_700_000_000_000_000]))
    times = st.integers(-10 * unit, 30 * unit).map(lambda offset: start + offset)
    tuples = st.fixed_dictionaries(
        {
            "time": st.one_of(times, times, times, times, times, st.none()),
            **{key: KEYS[key][1] for key in keys},
            **{name: strategy for name, (_, strategy) in VALUES.items()},
        }
    )
    epochs = draw(st.lists(st.lists(tuples, max_size=12), min_size=1, max_size=4))
    chosen = draw(
        st.lists(
            st.one_of(
                st.tuples(st.sampled_from(list(NUMERIC)), st.sampled_from(["i", "l", "d", "m"])),
                st.tuples(st.sampled_from(list(ANY)), st.sampled_from(list(VALUES))),
            ),
            min_size=1,
            max_size=5,
            unique=True,
        )
    )
    return shape, draw(st.integers(0, 15 * unit)), keys, epochs, chosen, draw(st.integers(1, 3))


def stamped(rows):
    return [
        {**r, "time": None if r["time"] is None else EPOCH + dt.timedelta(microseconds=r["time"])}
        for r in rows
    ]


def expected_of(shape, accepted, keys, chosen):
    fields = [("time", pa.int64()), ("closed", pa.int64())]
    from penstock.expressions.types import arrow_type

    fields += [(key, arrow_type(KEYS[key][0])) for key in keys]
    fields += [(name, arrow_type(type_)) for name, (type_, _) in VALUES.items()]
    table = pa.Table.from_pylist(accepted, schema=pa.schema(fields))
    aggregates = {"n": "count(*)"}
    for function, column in chosen:
        sql = NUMERIC[function][1] if function in NUMERIC else ANY[function][1]
        aggregates[f"{function}_{column}"] = sql.format(column)
    return windows(shape, table, keys, aggregates)


def comparable(table, names):
    rows = [tuple(plain(row[name]) for name in names) for row in table.select(names).to_pylist()]
    return sorted(rows, key=repr)


def plain(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, decimal.Decimal):
        return value.normalize() + 0
    if isinstance(value, dt.datetime):
        return round((value - EPOCH) / dt.timedelta(microseconds=1))
    return value


def assert_same(found, expected, names):
    left, right = comparable(found, names), comparable(expected, names)
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one, other, strict=True):
            # The mean of decimals is a decimal; the oracle's is a double.
            a = float(a) if isinstance(a, decimal.Decimal) and isinstance(b, float) else a  # noqa: PLW2901
            assert a == (pytest.approx(b, rel=1e-7, abs=1e-6) if isinstance(b, float) else b)


def run_case(case):
    shape, delay, keys, epochs, chosen, channels = case
    schema = "time timestamp, " + ", ".join(f"{k} {KEYS[k][0]}" for k in keys) + (", " if keys else "")
    schema += ", ".join(f"{name} {type_}" for name, (type_, _) in VALUES.items())
    micro = dt.timedelta(microseconds=1)
    stream = ps.stream(
        "t", schema, time="time", delay=delay * micro, source=ps.rows([stamped(epoch) for epoch in epochs])
    )
    grouped = stream.group_by(*keys) if keys else stream
    query = grouped.window(shape.size * micro, shape.slide * micro, shape.offset * micro).agg(
        n=ps.count(),
        **{f"{f}_{c}": (NUMERIC[f][0] if f in NUMERIC else ANY[f][0])(c) for f, c in chosen},
    )
    sink = ps.memory()
    with tempfile.TemporaryDirectory() as folder:
        run = query.start(sink, checkpoint=folder, channels=channels)
        run.wait()
    accepted, late = split_late(shape, delay, epochs)
    names = ["window_start", "window_end", *keys, "n", *(f"{f}_{c}" for f, c in chosen)]
    expected = expected_of(shape, accepted, keys, chosen)
    if expected.num_rows or sink.table().num_rows:
        assert_same(sink.table(), expected, names)
    assert run.counts.late == len(late)
    assert run.counts.rejected == sum(row["time"] is None for row in itertools.chain(*epochs))


# A run on Spark takes a second: cases are replayed by their blob rather than shrunk for minutes.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


@settings(max_examples=7, phases=PHASES)
@given(case=cases())
def test_results_equal_a_batch_engine(spark, case):
    run_case(case)


@pytest.mark.soak
@settings(max_examples=200, phases=PHASES)
@given(case=cases())
def test_results_equal_a_batch_engine_in_two_hundred_cases(spark, case):
    run_case(case)
