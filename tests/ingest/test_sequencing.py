from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.sequencing import judge

BATCHES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=30)


@given(BATCHES)
def test_whatever_comes_rows_are_taken_once_and_in_order(batches):
    expected, taken = 0, []
    for first, rows in batches:
        verdict = judge(expected, first, rows, connect=False)
        if not verdict.gap:
            taken += range(first + verdict.skip, first + rows)
            expected = max(expected, first + rows)
    assert taken == list(range(expected))


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 6))
def test_after_connect_there_is_no_gap(expected, first, rows):
    verdict = judge(expected, first, rows, connect=True)
    assert not verdict.gap
    assert verdict.skip == (0 if first > expected else min(expected - first, rows))
