import json

import numpy as np
import pytest

from control.admission.clusters import decided
from penstock.control.admission import (
    STRATEGIES,
    Admission,
    Admit,
    DrainGate,
    Expecting,
    ForecastIntervals,
    Limits,
    Packing,
    Redirect,
    Seen,
    StartGate,
)
from penstock.errors import BadAdmission

STREAMS = tuple(f"s{number:02d}" for number in range(12))
DECLARED = {
    "min_rate": np.full(12, 10.0),
    "max_rate": np.full(12, 400.0),
    "transition": np.array([0.0] * 6 + [np.nan] * 6),
}
PLANNERS = [*(Packing(each) for each in STRATEGIES.values()), ForecastIntervals()]
every = pytest.mark.parametrize("planner", PLANNERS, ids=lambda each: each.name)


class Cluster:
    """Carries decisions out, so that the next period is seen as they left it."""

    def __init__(self, streams=STREAMS):
        self.streams, self.gates, self.home, self.started = streams, [], dict.fromkeys(streams), 0

    def seen(self, period, work, declared=None):
        places = {gate: place for place, gate in enumerate(self.gates)}
        home = np.array([places.get(self.home[stream], -1) for stream in self.streams], np.int64)
        load = np.bincount(home[home >= 0], weights=work[home >= 0], minlength=len(self.gates))
        count = len(self.gates)
        queue = np.maximum(0, load - 1000) / 100
        every_gate = (np.full(count, 1000.0), queue, np.ones(count, bool))
        return Seen(10.0 * period, self.streams, tuple(self.gates), home, work, *every_gate, declared or {})

    def carry_out(self, decisions):
        names = {}
        for each in decisions:
            if isinstance(each, StartGate):
                self.started += 1
                names[each.gate] = f"g{self.started:03d}"
                self.gates.append(names[each.gate])
            elif isinstance(each, Admit):
                assert self.home[each.stream] is None
                self.home[each.stream] = names.get(each.gate, each.gate)
            elif isinstance(each, Redirect):
                assert self.home[each.stream] == each.source != each.target
                self.home[each.stream] = names.get(each.target, each.target)
            elif isinstance(each, DrainGate):
                self.gates.remove(each.gate)
        assert set(self.home.values()) <= set(self.gates)


def rates(period, seed=5):
    rng = np.random.default_rng([seed, period])
    return rng.uniform(20, 380, 12) * (1 + (np.arange(12) + period) % 4 / 4)


def course(planner, periods, *, cut=None, limits=None):
    """The decisions of every period; at `cut` the policy is replaced by one that knows its JSON only."""
    policy, cluster, found = make(planner, limits), Cluster(), []
    for period in range(periods):
        policy.observe(cluster.seen(period, rates(period), DECLARED))
        if period == cut:
            text = json.dumps(policy.to_json())
        decisions = decided(policy, 10.0 * period)
        if period == cut:
            text = json.dumps(policy.to_json())
            policy = make(planner, limits)
            policy.resume(json.loads(text))
        cluster.carry_out(decisions)
        found.append(decisions)
    return found


def make(planner, limits=None):
    return Admission(planner, Expecting(), capacity=1000.0, limits=limits)


@every
def test_a_replay_from_json_decides_the_same_byte_for_byte(planner):
    assert repr(course(planner, 24, cut=9)) == repr(course(planner, 24))


@every
def test_decisions_carry_reasons_with_numbers(planner):
    decisions = [each for period in course(planner, 12) for each in period]
    assert any(isinstance(each, Redirect) for each in decisions)
    assert all(any(letter.isdigit() for letter in each.reason) for each in decisions)


@every
def test_excluded_streams_and_the_least_interval_hold(planner):
    limits = Limits(least_interval=45.0, most_moves=3, excluded=frozenset({"s03"}))
    moves = {}
    for period, decisions in enumerate(course(planner, 30, limits=limits)):
        redirected = [each.stream for each in decisions if isinstance(each, Redirect)]
        assert len(redirected) <= 3
        for stream in redirected:
            assert stream != "s03"
            assert period - moves.get(stream, -100) >= 5
            moves[stream] = period
    assert moves


def test_streams_come_and_go():
    policy, cluster = make(Packing(STRATEGIES["DRF-M"])), Cluster()
    policy.observe(cluster.seen(0, rates(0)))
    cluster.carry_out(decided(policy, 0.0))
    later = Cluster((*STREAMS[4:], "t00", "t01"))
    later.gates, later.started = cluster.gates, cluster.started
    later.home = {stream: cluster.home.get(stream) for stream in later.streams}
    work = np.append(rates(1)[4:], [np.nan, np.nan])
    policy.observe(later.seen(1, np.append(rates(1)[4:], [0.0, 0.0])))
    later.carry_out(decided(policy, 10.0))
    assert None not in later.home.values()
    policy.observe(later.seen(2, np.nan_to_num(work)))
    later.carry_out(decided(policy, 20.0))


def test_a_gate_that_is_away_is_missing_data_and_not_a_rate_of_zero():
    policy, cluster = make(Packing(STRATEGIES["DRF"])), Cluster()
    steady = np.full(12, 300.0)
    for period in range(6):
        policy.observe(cluster.seen(period, steady))
        cluster.carry_out(decided(policy, 10.0 * period))
    away = cluster.seen(6, steady)
    policy.observe(
        Seen(
            60.0, STREAMS, away.gates, away.home, np.full(12, np.nan), away.capacity, away.waiting, away.open
        )
    )
    assert policy.expectations.outlook().next == pytest.approx(steady)
    assert not decided(policy, 60.0)


def test_a_declared_rate_counts_while_the_stream_is_silent():
    policy, cluster = make(Packing(STRATEGIES["DRF-M"])), Cluster()
    declared = {"expected_rate": np.where(np.arange(12) == 2, 500.0, np.nan)}
    for period in range(8):
        policy.observe(cluster.seen(period, np.zeros(12), declared))
        cluster.carry_out(decided(policy, 10.0 * period))
    assert policy.expectations.outlook().declared[2] == 500.0


def test_a_trend_that_nobody_declared_is_not_trusted_beyond_the_leads_that_are_scored():
    expecting, cluster = Expecting(), Cluster()
    for period in range(20):
        expecting.observe(cluster.seen(period, np.full(12, 100.0 + 10 * period)))
    outlook = expecting.outlook()
    scored = outlook.leads <= 8
    assert (np.diff(outlook.path[:, scored]) > 0).all()
    assert (outlook.path[:, ~scored] == outlook.path[:, scored][:, -1:]).all()


def test_nothing_is_decided_before_a_period_is_seen():
    assert not decided(make(ForecastIntervals()), 0.0)


def test_a_state_of_another_strategy_is_refused():
    value = make(Packing(STRATEGIES["ARD"])).to_json()
    with pytest.raises(BadAdmission, match="'ARD'"):
        make(ForecastIntervals()).resume(value)
