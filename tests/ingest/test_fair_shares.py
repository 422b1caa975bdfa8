import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.reader.inlet_reader import fair_shares

WANTED = st.lists(st.integers(0, 50), max_size=8).map(lambda each: np.array(each, np.int64))


@given(WANTED, st.integers(0, 200))
def test_the_limit_is_used_and_nobody_has_less_for_another(wanted, limit):
    shares = fair_shares(wanted, limit)
    assert (shares <= wanted).all()
    assert (shares >= 0).all()
    assert shares.sum() == min(limit, wanted.sum())
    short = shares < wanted
    if short.any():
        assert shares.max() <= shares[short].min() + 1


def test_nobody_starves_under_a_limit_smaller_than_the_streams():
    backlog = np.full(10, 5)
    for _ in range(5):
        backlog = backlog - fair_shares(backlog, 10) + 1
    assert backlog.max() <= 6
    backlog = np.arange(10)
    for _ in range(30):
        backlog = backlog - fair_shares(backlog, 2)
    assert backlog.sum() == 0
