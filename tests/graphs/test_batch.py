"""The batch oracle on answers worked out by hand."""

import pytest

from graphs.batch import evaluate
from graphs.examples import counted, graph, matched, rows, source
from sessions import interpreting

#  a   k=x 1 ───── 5 ───────────── 9
#  b   k=x ── 3 ────── 6 ── 7 ──────      k=y at 4, a null key at 5
LEFT = rows((1, "x", 10), (5, "x", 50), (9, "x", 90), (5, None, 0))
RIGHT = rows((3, "x", 30), (6, "x", 60), (7, "x", 70), (4, "y", 40), (5, None, 0))


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def joined(**options):
    nodes = [source("a"), source("b")]
    nodes.append(matched(nodes, 0, 1, **options))
    (found,) = evaluate(graph(nodes, a=[], b=[]), {"a": LEFT, "b": RIGHT})
    return sorted(map(short, found), key=repr)


def short(row):
    """The time of the pair, the key and both values; the times of both rows are what the values say."""
    time, key, ours, one, theirs, other = row
    if one and other:
        assert (one // ours, other // theirs) == (10, 10)
    return time, key, one, other


def test_a_join_within_has_the_time_of_the_earlier_row():
    assert joined(within=2) == [
        (1, "x", 10, 30),
        (3, "x", 50, 30),
        (5, "x", 50, 60),
        (5, "x", 50, 70),
        (7, "x", 90, 70),
    ]


def test_null_keys_match_nothing_and_are_delivered_by_outer_joins():
    alone = {"left": [(5, None, 0, None)], "right": [(4, "y", None, 40), (5, None, None, 0)]}
    inner = joined(within=2)
    for how, expected in {**alone, "full": alone["left"] + alone["right"]}.items():
        assert sorted(set(joined(within=2, how=how)) - set(inner), key=repr) == sorted(expected, key=repr)


def test_the_last_row_before_each_row_and_the_time_of_the_later_one():
    assert joined(last=1) == [
        (3, "x", 10, 30),
        (5, "x", 50, 30),
        (6, "x", 50, 60),
        (7, "x", 50, 70),
        (9, "x", 90, 70),
    ]


def test_the_condition_is_asked_after_the_last_rows_are_taken():
    assert joined(last=1, condition="l.i = 10") == [(3, "x", 10, 30)]


def test_at_equal_times_the_left_row_comes_first():
    nodes = [source("a"), source("b")]
    nodes.append(matched(nodes, 0, 1, last=1))
    given = {"a": rows((1, "x", 1), (2, "x", 2)), "b": rows((1, "x", 10), (2, "x", 20))}
    (found,) = evaluate(graph(nodes, a=[], b=[]), given)
    assert sorted(found) == [(1, "x", 1, 1, 1, 10), (2, "x", 2, 2, 1, 10), (2, "x", 2, 2, 2, 20)]


@pytest.mark.parametrize(
    ("size", "slide", "expected"),
    [(4, 4, [(0, 4, "x", 1), (4, 8, "x", 1), (8, 12, "x", 1)]), (4, 2, [(-2, 2, "x", 1), (0, 4, "x", 1)])],
)
def test_windows_exist_where_they_hold_a_tuple(size, slide, expected):
    nodes = [source("a")]
    nodes.append(counted(nodes, 0, size, slide))
    (found,) = evaluate(graph(nodes, a=[]), {"a": LEFT[:3]})
    assert sorted(found)[: len(expected)] == expected
