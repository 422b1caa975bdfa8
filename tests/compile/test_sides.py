"""Every kind of join delivers the same before and after every kind of condition has moved."""

from random import Random

import pytest

import penstock as ps
from compile.reverted import reverted
from graphs.batch import evaluate
from graphs.compare import assert_alike
from penstock.compile import optimise
from penstock.query import outputs as query_of
from sessions import interpreting

SCHEMA = "time timestamp, k string, i int"
CONDITIONS = ("k = 'x'", "k is null", "i_1 > 0", "i_1 is null", "i_2 is null", "i_2 > 0", "i_1 = i_2")
BOUNDS = ({"within": "2 microseconds"}, {"last": 1}, {"last": 2})


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def left_and_right():
    return (ps.stream(name, SCHEMA, time="time") for name in "lr")


def rows():
    """Forty rows, no two at one time: the oracle leaves open which of two is the last."""
    rng = Random(2)
    drawn = [
        {"time": time, "k": rng.choice(["x", "x", "y", None]), "i": rng.choice([0, 1, 2, None])}
        for time in range(40)
    ]
    rng.shuffle(drawn)
    return {"l": drawn[:20], "r": drawn[20:]}


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_what_moves_to_a_side_changes_nothing(how, bound):
    left, right = left_and_right()
    joined = left.join(right, "k", how=how, suffixes=("_1", "_2"), **bound)
    for condition in CONDITIONS:
        query = query_of(joined.where(condition))
        graphs = [reverted(query), reverted(optimise(query).query)]
        expected, found = (evaluate(each, rows())[0] for each in graphs)
        assert_alike(found, expected, graphs[0].nodes[graphs[0].outputs[0]].columns)


def test_a_row_that_is_filtered_later_is_still_one_of_the_last():
    #  l   i=5 ─ 1 ── i=0 ─ 2
    #  r                        3      its last row is that of i=0, so none with i > 1
    left, right = left_and_right()
    accepted = {
        "l": [{"time": 1, "k": "x", "i": 5}, {"time": 2, "k": "x", "i": 0}],
        "r": [{"time": 3, "k": "x", "i": 1}],
    }
    query = query_of(left.join(right, "k", last=1, suffixes=("_1", "_2")).where("i_1 > 1"))
    assert evaluate(reverted(optimise(query).query), accepted) == [[]]
