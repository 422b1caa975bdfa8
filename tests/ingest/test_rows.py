import pytest

from penstock.errors import BadLimit
from penstock.ingest.client.rows import Pace


def test_rows_go_at_their_rate_and_a_hold_up_is_not_made_good():
    # now:    0.0   1.0 (10 rows)   5.0 (held up; 11 rows)   5.0 + 1 row
    pace = Pace(rate=10.0, start=0.0)
    assert pace.pause(10, now=0.25) == 0.75
    assert pace.pause(11, now=5.0) == 0.0
    assert pace.pause(12, now=5.0) == pytest.approx(0.1)


def test_without_a_rate_nothing_waits():
    pace = Pace(rate=None, start=0.0)
    assert (pace.pause(10**9, now=0.0), pace.step) == (0.0, 10_000)
    with pytest.raises(BadLimit, match="give a number above 0"):
        Pace(rate=0.0, start=0.0)
