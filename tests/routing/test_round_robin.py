import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing import RoundRobin


def test_the_deal_goes_on_where_it_stopped():
    deal, tuples = RoundRobin(3), np.zeros(10, np.uint64)
    whole = deal.route(tuples)
    parts = [deal.route(tuples[:4]), deal.after(4).route(tuples[4:])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize(("channels", "first"), [(0, 0), (3, 3), (3, -1)])
def test_what_cannot_be_is_refused(channels, first):
    with pytest.raises(BadRouting, match="give"):
        RoundRobin(channels, first)
