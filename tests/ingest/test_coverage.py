import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.reader.coverage import Ranges, pieces, reached
from penstock.ingest.reader.inlet_reader import split_into_tasks

STREAMS = 4
RANGE = st.tuples(st.integers(0, STREAMS - 1), st.integers(0, 30), st.integers(0, 12))
HELD = st.lists(RANGE, max_size=12)
STARTS = st.lists(st.integers(0, 20), min_size=STREAMS, max_size=STREAMS)


def ranges(held):
    stream, low, length = (np.array([each[place] for each in held], np.int64) for place in range(3))
    return Ranges(stream, low, low + length)


def run(held, stream, start):
    """The end of the run from start, one sequence after the other."""
    there = {n for own, low, length in held if own == stream for n in range(low, low + length)}
    while start in there:
        start += 1
    return start


@given(HELD, STARTS)
def test_a_run_ends_at_the_first_hole(held, starts):
    expected = [run(held, stream, start) for stream, start in enumerate(starts)]
    assert reached(ranges(held), np.array(starts)).tolist() == expected


@given(HELD, STARTS, st.integers(1, 5), st.integers(1, 7))
def test_every_sequence_is_dealt_once_in_order_and_from_a_range_that_has_it(held, starts, most, each):
    known, start = ranges(held), np.array(starts)
    end = reached(known, start)
    gate = known.low % 3
    found = pieces(known, start, end)
    tasks = split_into_tasks(found, gate[found.range], most, each)
    taken = {stream: [] for stream in range(STREAMS)}
    for gates, part in tasks:
        for place, stream in enumerate(part.stream.tolist()):
            held_by = part.range[place]
            assert gates[place] == gate[held_by]
            assert known.stream[held_by] == stream
            assert known.low[held_by] <= part.first[place] < part.last[place] <= known.high[held_by]
            taken[stream] += range(part.first[place], part.last[place])
    assert taken == {stream: list(range(start[stream], end[stream])) for stream in range(STREAMS)}
    assert len(tasks) <= most


def test_tasks_have_equal_rows():
    held = Ranges(np.arange(10), np.zeros(10, np.int64), np.array([1000] + [10] * 9))
    found = pieces(held, np.zeros(10, np.int64), held.high)
    rows = [
        int((part.last - part.first).sum())
        for _, part in split_into_tasks(found, np.zeros(10, np.int64), 4, 1)
    ]
    assert max(rows) - min(rows) <= 1
