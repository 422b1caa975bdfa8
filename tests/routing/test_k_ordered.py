"""The k-ordered merge against every order that there is, and against its definition."""

from functools import cache
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing.k_ordered import DisorderMeter, KOrderedMerge, realised_disorder


def disorder(ranks):
    """The definition: the longest distance between two that are out of order."""
    places = range(len(ranks))
    return max((b - a for a in places for b in places if a < b and ranks[a] > ranks[b]), default=0)


@cache
def can_go_on(left, missing, k):
    """Whether some order of the missing results keeps all within k, tried one by one."""
    if disorder(left) > k:
        return False
    return not missing or any(can_go_on((*left, each), without(missing, each), k) for each in set(missing))


def without(ranks, rank):
    place = ranks.index(rank)
    return ranks[:place] + ranks[place + 1 :]


def check(arrivals, expected, k, closed=()):
    """Offer ranks in order; whatever is withheld after each could not have left."""
    merge = KOrderedMerge(k, expected)
    left, waiting, missing = (), (), tuple(expected)
    for rank in arrivals:
        if rank in closed:
            found, missing = merge.close(rank), without(missing, rank)
        else:
            waiting += (rank,)
            found = merge.offer(rank, rank)
        for each in found:
            left, waiting, missing = (*left, each), without(waiting, each), without(missing, each)
        assert disorder(left) <= k
        assert merge.withheld == len(waiting)
        for each in set(waiting):
            assert not can_go_on((*left, each), without(missing, each), k), (arrivals, left, each)
    assert not waiting
    assert not merge.expects
    assert realised_disorder(left) == disorder(left)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("count", [5, 6])
def test_every_order_leaves_within_k_and_nothing_waits_without_need(count, k):
    for arrivals in permutations(range(count)):
        check(arrivals, range(count), k)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("ranks", [(0, 0, 1, 1, 2), (0, 1, 1, 1, 2), (0, 0, 0, 1, 1)])
def test_equal_ranks_never_wait_for_each_other(ranks, k):
    for arrivals in set(permutations(ranks)):
        check(arrivals, ranks, k)


@pytest.mark.parametrize("k", range(4))
def test_what_is_closed_keeps_nobody_waiting(k):
    for arrivals in permutations(range(5)):
        check(arrivals, range(5), k, closed={1, 3})


orders = st.lists(st.integers(0, 30), max_size=60).flatmap(
    lambda ranks: st.tuples(st.just(sorted(ranks)), st.permutations(ranks))
)


@given(orders, st.integers(0, 12))
def test_the_disorder_never_exceeds_k_and_everything_leaves(order, k):
    expected, arrivals = order
    merge = KOrderedMerge(k, expected)
    left = [each for rank in arrivals for each in merge.offer(rank, rank)]
    assert sorted(left) == expected
    assert disorder(left) <= k


@given(orders)
def test_zero_is_the_ordered_merge_and_no_bound_passes_at_once(order):
    expected, arrivals = order
    ordered, passing = KOrderedMerge(0, expected), KOrderedMerge(None, expected)
    assert [each for rank in arrivals for each in ordered.offer(rank, rank)] == expected
    assert all(passing.offer(rank, rank) == [rank] for rank in arrivals)


@given(st.lists(st.integers(0, 9), max_size=40))
def test_the_meter_measures_the_definition(ranks):
    meter = DisorderMeter()
    assert max([meter.add(rank) for rank in ranks], default=0) == meter.most == disorder(ranks)


@pytest.mark.parametrize("rank", [0, 2, 9])
def test_a_result_that_nobody_expects_is_refused(rank):
    merge = KOrderedMerge(0, [1, 2])
    merge.offer(2, "b")
    with pytest.raises(BadRouting, match=f"rank {rank} arrived that was not expected"):
        merge.offer(rank, "x")


def test_a_disorder_below_zero_is_refused():
    with pytest.raises(BadRouting, match="at least 0"):
        KOrderedMerge(-1, [])
