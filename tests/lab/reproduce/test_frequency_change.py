import numpy as np
import pytest

from penstock.routing import first_router, loads, scan
from penstock_lab.reproduce.frequency_change import Course, Trace, counted_epochs, follow
from penstock_lab.reproduce.skewed_keys import SkewedKeys

COURSE = Course(SkewedKeys(2_000, 1.0), channels=4, window=2, changes=2, seed=5)
EPOCHS = counted_epochs(COURSE)


def test_hot_keys_are_exchanged_at_each_change_and_at_no_other_time():
    hottest = [int(epoch.shares.argmax()) for epoch in EPOCHS]
    parts = [hottest[at : at + COURSE.epochs] for at in range(0, len(hottest), COURSE.epochs)]
    assert [len(set(part)) for part in parts] == [1, 1, 1]
    assert len({part[0] for part in parts}) == 3
    assert all(epoch.shares.sum() == pytest.approx(1) for epoch in EPOCHS)


def test_the_counter_has_forgotten_a_hot_key_when_the_course_says_so():
    old, new = (COURSE.keys.hashes[EPOCHS[at].shares.argmax()] for at in (0, COURSE.epochs))
    at_change, later = EPOCHS[COURSE.epochs].known, EPOCHS[COURSE.epochs + COURSE.forgotten - 1].known
    assert at_change.of(np.array([old]))[0] > at_change.of(np.array([new]))[0]
    share = float(COURSE.keys.frequencies[0])
    assert later.of(np.array([new]))[0] == pytest.approx(share, rel=0.05)
    assert later.of(np.array([old]))[0] < share / 20


def test_load_counts_every_key_by_its_true_frequency():
    router = first_router("consistent", 4)
    trace = follow(COURSE, EPOCHS, router, None)
    load = loads(router.route(COURSE.keys.hashes), EPOCHS[-1].shares, 4)
    assert trace.busiest[-1] == pytest.approx(load.max() / load.mean())
    assert not trace.moved.any()


def test_a_constructor_moves_hot_keys_after_each_change():
    first = first_router("consistent", 4)
    moving, still = (follow(COURSE, EPOCHS, first, construct) for construct in (scan, None))
    for change in (1, 2):
        part = slice(change * COURSE.epochs, (change + 1) * COURSE.epochs)
        assert moving.moved[part].any()
    assert moving.soon < still.soon


def test_figures_are_the_worst_over_changes_at_their_epoch():
    busiest = np.ones(3 * COURSE.epochs)
    busiest[COURSE.epochs + COURSE.forgotten - 1] = 1.5  # the first change
    busiest[-1] = 1.25
    trace = Trace(COURSE, busiest, np.zeros(len(busiest)))
    assert trace.soon == 1.5
    assert trace.settled == 1.25


@pytest.mark.parametrize(("skew", "best"), [(0.5, 1.0), (2.0, 2.43)])
def test_one_key_above_a_fair_share_sets_the_best_possible(skew, best):
    course = Course(SkewedKeys(2_000, skew), channels=4, window=2, changes=2, seed=5)
    assert course.best == pytest.approx(best, abs=0.01)
