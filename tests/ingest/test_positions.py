import itertools

from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.log.holdings import Positions

RECORDS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(1, 3)), max_size=20)


def placed(records):
    """Each record as (gap before it, rows, segment): the positions and the rows of each segment."""
    held, at, truth = Positions(), 0, {}
    for number, (gap, rows, segment) in enumerate(records):
        at += gap
        held.add(at, rows, segment, number)
        truth.update(dict.fromkeys(range(at, at + rows), segment))
        at += rows
    return held, truth


@given(RECORDS, st.integers(0, 60), st.integers(0, 20))
def test_pieces_are_the_rows_asked_for(records, low, length):
    held, truth = placed(records)
    wanted = [each for each in range(low, low + length) if each in truth]
    got = [(row, piece.segment) for piece in held.pieces(low, low + length) for row in _rows(piece)]
    assert got == [(row, truth[row]) for row in wanted]
    assert held.holds(low, low + length) == (len(wanted) == length)


@given(RECORDS)
def test_ranges_are_the_rows_held(records):
    held, truth = placed(records)
    ranges = held.ranges()
    assert [row for low, high in ranges for row in range(low, high)] == sorted(truth)
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(ranges))


@given(RECORDS, st.integers(1, 3))
def test_without_a_segment_its_rows_are_gone(records, segment):
    held, truth = placed(records)
    kept = held.without(segment)
    assert [row for low, high in kept.ranges() for row in range(low, high)] == sorted(
        row for row, place in truth.items() if place != segment
    )


def test_rows_that_come_twice_count_once():
    held = Positions()
    held.add(0, 10, 1, 0)
    held.add(0, 10, 2, 0)
    held.add(5, 10, 2, 64)
    assert held.ranges() == [(0, 15)]
    assert [(piece.segment, piece.sequence, piece.rows) for piece in held.pieces(0, 15)] == [
        (1, 0, 10),
        (2, 10, 5),
    ]


def _rows(piece):
    return range(piece.sequence, piece.sequence + piece.rows)
