"""A scaling policy in a run: epochs become ticks, executors follow the load, restarts change nothing."""

import json
from dataclasses import replace

import pytest
from tests.control.scaling.runs import COST, PaperRun, hill

from penstock.control.controller import Controller
from penstock.control.expected import Expected
from penstock.control.limits import Budget, Limits
from penstock.control.observation import Nodes, Observation, OperatorWork, UnitWork
from penstock.control.recording import Recording, controller_line, differences, epoch_line
from penstock.control.scale import Scale
from penstock.control.scaling.load import Edge
from penstock.control.scaling.pacing import Pacing
from penstock.control.scaling.run_policy import RunScaling
from penstock.control.setup import Setup
from penstock.errors import BadScaling

BOUND = 8.0
LIMITS = {"least": 1, "most": 4}
POLICY = {"name": "penstock", "limits": LIMITS, "settings": {"bound": BOUND}}


def controller(**settings):
    return Controller({"scaling": RunScaling(**POLICY | settings), "pacing": Pacing(BOUND)}, Budget(Limits()))


def scales(rulings):
    return [each for each in rulings if isinstance(each.decision, Scale)]


def test_executors_follow_the_load_and_go_when_it_is_over():
    #  executors' worth   0.5 ──╮  ╭─ 3.2 ─╮  ╭── 0.5
    #  second              0   40 ╯100   150╰ 200   240
    run = PaperRun(controller(), startup=10.0, fixed=0.5)
    found = [each for _, rulings in run.epochs(240) for each in scales(rulings)]
    assert max(count for _, count in run.course) == 4
    assert run.course[-1][1] <= 2
    assert run.late(BOUND) <= 0.1
    assert run.core_seconds <= 0.8 * 4 * 240
    assert all(each.decision.reason for each in found)
    assert len([each for each in found if each.carried_out]) <= 8


@pytest.mark.parametrize("startup", [6.0, 10.0])
@pytest.mark.parametrize("name", ["autoscale", "qos", "incremental"])
def test_no_other_policy_keeps_the_bound_better(name, startup):
    settings = {"bound": BOUND} if name == "qos" else {}
    other = PaperRun(controller(name=name, settings=settings), startup=startup, fixed=1.0).run(240)
    ours = PaperRun(controller(), startup=startup, fixed=1.0).run(240)
    assert ours.late(BOUND) <= other.late(BOUND) + 0.005


def test_more_tuples_between_two_operators_are_seen_before_the_backlog_exceeds_an_epoch():
    """At constant input stage 0 gets five tuples for each instead of one: 0.4 executors' worth become 1.2."""
    run = PaperRun(controller(), lambda _: 0.4, lambda second: 1.0 if second < 60 else 5.0, fixed=0.5)
    interval = before = 0.0
    for seen, rulings in run.epochs(140):
        if any(each.carried_out for each in scales(rulings)):
            assert seen.committed > 60
            # What has come while the epoch ran is no more than what an epoch takes.
            assert seen.committed - seen.arrived <= interval
            return
        interval, before = seen.arrived - before, seen.arrived
    pytest.fail("nobody grew")


def test_what_units_get_of_their_cores_counts():
    whole, half = (PaperRun(controller(), lambda _: 0.6, got=got, fixed=0.2).run(120) for got in (1.0, 0.5))
    assert [max(count for _, count in each.course[-5:]) for each in (whole, half)] == [1, 2]


def test_a_tick_becomes_a_load_of_operators_with_parents():
    policy = RunScaling(**POLICY)
    work = (OperatorWork("calls", 100, 2.0, left=10), OperatorWork("stage 0", 300, 3.0, ((0, 300),)))
    units = (UnitWork("a", 4.0, 3.0), UnitWork("b", 2.0, 2.0))
    for number in range(2):
        policy.observe(
            Observation(
                number,
                (),
                arrived=10.0 * number,
                committed=10.0 * number + 4,
                nodes=Nodes(3, startup=7.0),
                operators=work,
                units=units,
            )
        )
    # Ten seconds from commit to commit, and from one epoch's rows to the next one's. Both left 10 tuples, so
    # 100 came: 10 a second, of which 40 in the 4 s that the epoch took.
    load = policy._load
    calls, stage = load.operators
    assert (calls.received, calls.processed, calls.pending, calls.cpu) == (100.0, 100.0, 50.0, 0.02)
    assert (stage.received, stage.pending, stage.cpu) == (300.0, 0.0, 0.01)
    assert stage.parents == (Edge(0, 3.0),)
    (pool,) = load.pools
    assert (pool.use, pool.lost) == ((0.3, 0.2, 0.0), (0.1, 0.0, 0.0))
    assert pool.got == pytest.approx(5 / 6)
    # The work, 5 s, takes 2 s on three cores of which 5/6 are got; the epoch took 4.
    assert load.fixed == pytest.approx(2.0)


def test_a_policy_that_was_resumed_decides_as_before():
    expected = [[each.to_json() for each in rulings] for _, rulings in PaperRun(controller()).epochs(120)]
    parts = controller()
    found = []
    for _, rulings in PaperRun(parts).epochs(120):
        found.append([each.to_json() for each in rulings])
        state = json.loads(json.dumps(parts.to_json(), allow_nan=False))
        parts.policies = controller().policies
        parts.resume(state)
    assert found == expected


def test_a_recording_of_scaling_replays_to_the_same_decisions():
    setup = Setup({"scaling": POLICY, "pacing": {"bound": BOUND}})
    made = setup.controller(lambda _: None)
    lines = [controller_line(setup, made.to_json())]
    lines += [epoch_line(seen, rulings) for seen, rulings in PaperRun(made).epochs(120)]
    recording = Recording.parse(lines)
    told = [ruling["decision"] for each in recording.epochs for ruling in each.rulings]
    assert {each["kind"] for each in told if each is not None} == {"scale", "pace"}
    assert differences(recording, lambda _: None) == []


def test_a_dry_run_tells_and_changes_nothing():
    dry = controller()
    dry.mode = "observe"
    run = PaperRun(dry)
    rulings = [each for _, every in run.epochs(90) for each in every]
    assert {each.held for each in rulings if each.decision is not None} == {"dry run"}
    assert scales(rulings)[0].words().startswith(f"epoch {scales(rulings)[0].epoch}, scaling: 1 to ")
    assert {count for _, count in run.course} == {1}


def test_proposals_say_what_an_epoch_saves_or_why_nothing_changes():
    policy = RunScaling(**POLICY)
    assert policy.propose(0.0)[0].reason == "a tick of 2.50 s is not over"
    reasons = set()
    for seen, _ in PaperRun(Controller({"pacing": Pacing(BOUND)}, Budget(Limits()))).epochs(80):
        policy.observe(seen)
        (proposal,) = policy.propose(seen.committed)
        reasons.add(" ".join(proposal.reason.split()[-4:]))
        if proposal.changes:
            (scale,) = proposal.changes
            assert scale.units > scale.before
            assert proposal.effect.seconds > 0
            assert proposal.effect.price == 10.2
            assert proposal.urgent
            break
    else:
        pytest.fail("nobody grew")
    assert "as many as wanted" in reasons


def test_without_nodes_nothing_is_decided():
    policy = RunScaling(**POLICY)
    policy.observe(Observation(epoch=0, stages=()))
    assert not any(each.changes for each in policy.propose(0.0))


def test_old_recordings_without_nodes_are_read():
    seen = Observation(epoch=0, stages=(), nodes=Nodes(2, busy=(1.0, 2.0)))
    value = json.loads(json.dumps(seen.to_json()))
    assert Observation.from_json(value) == seen
    for name in ("nodes", "left", "latency", "operators", "units"):
        del value[name]
    assert Observation.from_json(value) == replace(seen, nodes=None)


def test_wrong_settings_are_refused():
    with pytest.raises(BadScaling, match="tick=0"):
        RunScaling("penstock", tick=0)
    with pytest.raises(BadScaling, match="no scaling policy 'best'"):
        RunScaling("best")


def known_hill(now):
    """What a directory says that knows the streams: the rates of the hill, five per cent apart."""
    rates = tuple(hill(now + 5.0 * step + 2.5) / COST for step in range(12))
    return Expected(
        now, 5.0, rates, tuple(0.95 * each for each in rates), tuple(1.05 * each for each in rates)
    )


def test_executors_are_asked_for_before_the_load_that_gates_forecast_is_there():
    #  executors' worth   0.5 ──╮ 1.0 at 51 s
    #  second              0   40
    found = {}
    for name, forecast in (("alone", None), ("with gates", known_hill)):
        run = PaperRun(controller(), startup=20.0, fixed=0.5, forecast=forecast)
        made = [(seen.committed, each) for seen, rulings in run.epochs(240) for each in scales(rulings)]
        found[name] = run.late(BOUND), next((at, each) for at, each in made if each.carried_out)
    at, first = found["with gates"][1]
    assert hill(at) < 1.0
    assert "gates forecast" in first.decision.reason
    assert at < found["alone"][1][0]
    assert found["with gates"][0] <= found["alone"][0]


def test_what_gates_forecast_is_recorded_and_replayed():
    run = PaperRun(controller(), startup=20.0, fixed=0.5, forecast=known_hill)
    seen = [each for each, _ in run.epochs(30)]
    assert [Observation.from_json(json.loads(json.dumps(each.to_json()))) for each in seen] == seen
