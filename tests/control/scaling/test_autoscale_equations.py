"""Equations 3 to 13 of [001] §4, one test each, with figures worked out by hand from the printed formulas."""

import math

import pytest

from penstock.control.scaling import Autoscale, Edge, Load, OperatorLoad, PoolLoad, Scale, ScalingLimits

TICK = 10.0
"""Seconds of a tick; six of them make Δ = 60 s."""


def load(number, received, *, pending=0.0, lat=0.02, units=1, use=None, shared=(), passed=None):
    """A tick of one operator, and of a second one behind it if it gets `passed` tuples for each."""
    operators = [OperatorLoad("O1", "P1", received, received, pending, lat)]
    pools = [PoolLoad("P1", units, use or (0.5,) * units, shared=shared)]
    if passed is not None:
        share, own = passed
        operators.append(OperatorLoad("O2", "P2", own, own, 0.0, lat, (Edge(0, share),)))
        pools.append(PoolLoad("P2", 1, (0.5,)))
    return Load(number * TICK, TICK, tuple(operators), tuple(pools))


def watched(policy, counts, **more):
    """A policy that has seen a tick for each count; the last load."""
    for number, count in enumerate(counts, 1):
        seen = load(number, count, **more)
        policy.observe(seen)
    return seen


def wanted(policy, counts, **more) -> list[Scale]:
    seen = watched(policy, counts, **more)
    return policy.decide(seen.at)


def paper(**settings):
    return Autoscale(ScalingLimits(), preset="paper", **settings)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # A line: R(p) = 90 + 10 p for p = 1 … 6. The next six ticks are p = 7 … 12:
        # Σ = 6 · 90 + 10 · (7 + 8 + 9 + 10 + 11 + 12) = 540 + 570 = 1,110.
        ([100, 110, 120, 130, 140, 150], 1_110.0),
        # A logarithm: R(p) = 100 + 50 ln p. Σ over 7 … 12 = 600 + 50 · ln(7 · 8 · 9 · 10 · 11 · 12)
        # = 600 + 50 · ln 665,280 = 600 + 50 · 13.40796 = 1,270.398.
        ([100 + 50 * math.log(p) for p in range(1, 7)], 1_270.398),
        # An exponential: R(p) = 2^p. Σ over 7 … 12 = 2^13 - 2^7 = 8,064.
        ([2.0**p for p in range(1, 7)], 8_064.0),
    ],
)
def test_equation_3_sums_the_best_fitting_curve_over_the_next_window(counts, expected):
    policy = paper()
    (estimate,) = policy.inputs(watched(policy, counts))
    assert estimate == pytest.approx(expected, rel=1e-4)


def test_equation_4_is_the_input_times_the_mean_selectivity():
    # O1 gets 100 a tick: EstimInput = 600. O2 got 5 a tick, so its own history says 30; of each tuple of O1
    # 0.4 come: EstimOutput = 600 · 0.4 = 240, which is the larger.
    policy = paper()
    assert policy.inputs(watched(policy, [100] * 6, passed=(0.4, 5.0)))[1] == pytest.approx(240.0)


@pytest.mark.parametrize(("combine", "expected"), [("max", 260.0), ("min", 60.0)])
def test_equation_5_combines_history_and_parents_and_adds_what_waits(combine, expected):
    # O1: 600 from its history, and 50 wait: 650. O2: 6 · 10 = 60 by its history, 650 · 0.4 = 260 from O1.
    policy = paper(combine=combine)
    first, second = policy.inputs(watched(policy, [100] * 6, pending=50.0, passed=(0.4, 10.0)))
    assert first == pytest.approx(650.0)
    assert second == pytest.approx(expected)


def test_equation_6_counts_the_tuples_that_a_unit_can_do():
    # IdealCapacity = Δ / Lat = 60 / 0.02 = 3,000. So 6 · 1,000 = 6,000 tuples are 2 units of a whole core.
    (scale,) = wanted(paper(reserved=1.0), [1_000] * 6)
    assert scale.numbers["ideal"] == pytest.approx(6_000 / 3_000)


@pytest.mark.parametrize(
    ("use", "others", "threads", "expected"),
    [
        # λ = 0.3, reserved 0.4, as min(1, max(use, reserved) + λ / n · (1 - Σ use)):
        (0.2, 0.5, 3, 0.4 + 0.3 / 3 * (1 - 0.7)),  # = 0.43: it uses less than is reserved for it
        (0.6, 0.2, 2, 0.6 + 0.3 / 2 * (1 - 0.8)),  # = 0.63: it uses more
        (0.9, 0.0, 1, 0.9 + 0.3 * 0.1),  # = 0.93: alone on its core; as printed this would be 1.27
    ],
)
def test_equation_7_is_what_a_thread_can_use_of_its_core(use, others, threads, expected):
    pool = PoolLoad("P1", 1, (use,), shared=((others, threads),))
    assert paper(reserved=0.4).usable(pool) == pytest.approx(expected)


def test_equation_7_takes_for_reserved_what_a_unit_got_if_nothing_is_given():
    # It had work for 0.6 of the tick and got its core for 0.2 of it: sure of a third.
    # 1/3 + 0.3 / 2 · (1 - 0.6) = 0.393.
    pool = PoolLoad("P1", 1, (0.2,), shared=((0.4, 2),))
    assert paper().usable(pool) == pytest.approx(1 / 3 + 0.06)


def test_equation_8_is_the_least_over_the_threads():
    # 0.43 and 0.63 from above: the least is 0.43.
    pool = PoolLoad("P1", 2, (0.2, 0.6), shared=((0.5, 3), (0.2, 2)))
    assert paper(reserved=0.4).usable(pool) == pytest.approx(0.43)


def test_equation_9_takes_the_usable_part_of_the_capacity():
    # Capacity = 60 / 0.02 · 0.43 = 1,290; 6 · 430 = 2,580 tuples are then 2 units.
    (scale,) = wanted(paper(reserved=0.4), [430] * 6, use=(0.2,), shared=((0.5, 3),))
    assert scale.numbers["usable"] == pytest.approx(0.43)
    assert scale.numbers["ideal"] == pytest.approx(2_580 / 1_290)


def test_equation_10_asks_for_more_where_the_ideal_degree_exceeds_the_units():
    # EstimInput 6 · 620 = 3,720 over 3,000: idealK = 1.24 > 1.
    (scale,) = wanted(Autoscale(reserved=1.0), [620] * 6)
    assert scale.numbers["ideal"] == pytest.approx(1.24)
    assert scale.units > 1
    # 6 · 480 = 2,880: idealK = 0.96 is within the interval.
    assert wanted(Autoscale(reserved=1.0), [480] * 6) == []


def test_equation_11_leaves_the_units_alone_above_beta_times_them():
    # k = 4, β = 0.5: min_k = 2. 6 · 1,050 / 3,000 = 2.1 stays; 6 · 950 / 3,000 = 1.9 goes to
    # ⌈5,700 · 0.02 / (60 · 0.8)⌉ = ⌈2.375⌉ = 3.
    settings = {"reserved": 1.0, "beta": 0.5}
    assert wanted(Autoscale(**settings), [1_050] * 6, units=4) == []
    (scale,) = wanted(Autoscale(**settings), [950] * 6, units=4)
    assert scale.units == 3


def test_equation_12_takes_the_least_whole_degree():
    # ResCapacity = 60 / 0.02 · 1 · 0.3 = 900. 6 · 600 = 3,600 tuples: k' = 4 exactly; 6 · 601: 4.007, so 5.
    (four,), (five,) = (wanted(paper(reserved=1.0), [count] * 6) for count in (600, 601))
    assert (four.units, five.units) == (4, 5)


def test_equation_13_takes_reservations_and_the_second_lambda():
    # ResCapacity = 60 / 0.02 · 0.5 · 0.4 = 600. 6 · 300 = 1,800 tuples: k' = 3, while
    # idealK = 1,800 / (3,000 · max(0.5, 0.5)) = 1.2 with λ of Eq. 7 at 0.
    (scale,) = wanted(paper(reserved=0.5, fill=0.4, share=0.0), [300] * 6)
    assert scale.numbers["ideal"] == pytest.approx(1.2)
    assert scale.units == 3


def test_the_window_slides_by_a_tick_and_forgets_nothing_when_it_decides():
    """At every tick the last six count: a rise is seen as it goes on, not at the end of each minute."""
    policy, degrees = paper(reserved=1.0), []
    for number in range(1, 13):
        policy.observe(load(number, 100.0 if number <= 6 else 100.0 + 400.0 * (number - 6)))
        degrees.append([scale.numbers["ideal"] for scale in policy.decide(number * TICK)])
    assert degrees[:5] == [[]] * 5
    assert degrees[5] == []
    assert all(each and each[0] > 1 for each in degrees[6:])


def test_nothing_is_measured_while_the_system_stabilises():
    policy = paper(reserved=1.0)
    watched(policy, [100] * 6)
    starting = load(7, 9_999.0)
    pool = PoolLoad("P1", 1, (1.0,), starting=2)
    policy.observe(Load(starting.at, TICK, starting.operators, (pool,)))
    assert policy.decide(starting.at) == []
    after = load(8, 100.0)
    policy.observe(after)
    # The tick of the change is not among them: 600 as before.
    assert policy.inputs(after) == [pytest.approx(600.0)]
