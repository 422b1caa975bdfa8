from demo.epochs import SIX, epoch
from penstock.demo.tally import Tally


def test_totals_add_up():
    tally = Tally()
    tally.take([epoch(0), epoch(1)])
    assert (tally.rows, tally.results, tally.late, tally.rejected) == (2000, 80, 4, 2)
    assert tally.rows_per_second == 2000


def test_an_epoch_counts_once():
    tally = Tally()
    tally.take([epoch(0), epoch(1)])
    assert [each.epoch for each in tally.take([epoch(1), epoch(2)])] == [2]
    assert tally.rows == 3000


def test_an_epoch_without_frontier_keeps_the_one_before():
    tally = Tally()
    tally.take([epoch(0), epoch(1, frontier=None)])
    assert tally.frontier == SIX


def test_nothing_has_no_rate():
    assert Tally().rows_per_second == 0
