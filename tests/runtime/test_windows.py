"""Windows of every kind on Spark, with late rows and rescaled at random, against plain oracles."""

import datetime as dt
import random

import pytest

import penstock as ps
from operators.cases import CASES
from operators.test_contract import accepted, as_text, settled
from penstock.errors import BadAggregate, BadWindow
from rescales import AtRandom
from sessions import interpreting

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICRO = dt.timedelta(microseconds=1)
SCHEMA = "time timestamp, k bigint, s string, v bigint, n bigint"


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def drawn(seed, epochs):
    rng = random.Random(seed)
    return [
        [
            {
                "time": 12 * number + rng.randint(-40, 20),
                "k": rng.choice([None, 0, 1, 2, 3]),
                "s": rng.choice(["", "a", None]),
                "v": rng.choice([None, -3, 4]),
                "n": rng.randint(0, 9),
            }
            for _ in range(rng.randint(0, 12))
        ]
        for number in range(epochs)
    ]


def partly(row):
    """Whether a window of 20 by 6 with an offset of 2 that holds a row was closed before it came."""
    first = -((19 - row["time"] + 2) // 6) * 6 + 2
    return row["closed"] is not None and first + 20 <= row["closed"]


def plain(row):
    return tuple((each - EPOCH) // MICRO if isinstance(each, dt.datetime) else each for each in row.values())


@pytest.mark.parametrize(
    ("name", "filtered"),
    [
        ("sliding windows", False),
        ("several windows", False),
        ("cumulating windows", True),
        ("corrected windows of user code", False),
        ("early and corrected windows", True),
        ("totals", False),
        ("totals of user code without a key", True),
    ],
)
def test_windows_give_what_an_oracle_gives(tmp_path, name, filtered):
    seed, delay, case = 7, 5, CASES[name]
    epochs = drawn(seed, epochs=7)
    print(f"seed {seed}")  # noqa: T201
    batches = [[row | {"time": EPOCH + row["time"] * MICRO} for row in epoch] for epoch in epochs]
    stream = ps.stream("events", SCHEMA, time="time", delay=delay * MICRO, source=ps.rows(batches))
    sink = ps.memory()
    # A condition keeps tuples from being combined before they are observed.
    relation = (stream.where("n >= 0") if filtered else stream).derive(case.relation.operator)
    run = relation.start(sink, tmp_path, channels=2, policy=AtRandom(seed, most=4))
    run.wait()
    rows, end = accepted(case, [[epoch] for epoch in epochs], delay)
    found = [plain(row) for row in sink.table().to_pylist()]
    assert as_text(settled(case, found)) == as_text(case.oracle(rows, end))
    assert run.counts.late == sum(map(len, epochs)) - len(rows[0])
    if name == "sliding windows":
        assert run.counts.partly_late == sum(partly(row) for row in rows[0]) > 0


def test_no_operator_with_state_follows_results_that_are_corrected(tmp_path):
    stream = ps.stream("events", SCHEMA, time="time", source=ps.rows([]))
    corrected = stream.group_by("k").window("1 minute", lateness="1 hour").agg(n=ps.count())
    with pytest.raises(BadWindow, match="corrected later"):
        corrected.group_by("k").window("1 hour").agg(n=ps.sum("n")).start(ps.memory(), tmp_path)
    totals = stream.group_by("k").agg(n=ps.count())
    with pytest.raises(BadAggregate, match="change as long as tuples come"):
        totals.group_by("k").window("1 hour").agg(n=ps.sum("n")).start(ps.memory(), tmp_path)
