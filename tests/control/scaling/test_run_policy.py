"""A scaling policy in a run: epochs become ticks, executors follow the load, restarts change nothing."""

import itertools
import json
from dataclasses import replace

import pytest

from penstock.control.controller import Controller
from penstock.control.observation import Nodes, Observation
from penstock.control.recording import Recording, controller_line, differences, epoch_line
from penstock.control.scale import Scale
from penstock.control.scaling.run_policy import RunScaling
from penstock.control.setup import Setup
from penstock.errors import BadScaling

COST = 0.004  # seconds of an executor for a tuple
LIMITS = {"least": 1, "most": 4}
POLICY = {"name": "penstock", "limits": LIMITS, "settings": {"bound": 8.0}}


def load(second):
    """Executors' worth: half of one, up to 3.2 and back."""
    if 60 <= second < 120:
        return 0.5 + 2.7 * (second - 60) / 60
    return 3.2 if 120 <= second < 200 else 0.5


def epochs(controller, until, startup=6.0):
    """Epochs every 4 s on the executors that were decided on, which need time to come; with the rulings."""
    now, taken, number = 0.0, 0.0, 0
    ready = [0.0]  # when each executor is there, the oldest first
    while now < until:
        begin = max(now, taken + 4.0)
        rows = sum(load(taken + step / 10) / COST / 10 for step in range(int((begin - taken) * 10)))
        units = sum(each <= begin for each in ready)
        seconds = 0.4 + rows * COST / units
        seen = Observation(
            epoch=number,
            stages=(),
            arrived=begin,
            started=begin,
            ended=begin + seconds - 0.1,
            committed=begin + seconds,
            rows=int(rows),
            latency=begin + seconds - taken,
            nodes=Nodes(
                executors=units,
                starting=len(ready) - units,
                busy=(rows * COST / units,) * units,
                startup=startup,
            ),
        )
        controller.observe(seen)
        rulings = controller.decide(seen.committed)
        for each in rulings:
            if each.carried_out:
                more = each.decision.units - len(ready)
                ready = ready[: each.decision.units] + [seen.committed + startup] * more
        yield seen, rulings
        taken, now, number = begin, begin + seconds, number + 1


def test_executors_follow_the_load_and_go_when_it_is_over():
    found = list(epochs(Controller({"scaling": RunScaling(**POLICY)}), 420))
    units = [(seen.committed, seen.nodes.executors) for seen, _ in found]
    assert max(count for _, count in units) == 4
    assert units[-1][1] == 1
    late = [seen.latency for seen, _ in found if seen.latency > 8]
    assert len(late) <= 6
    assert max(late) < 2 * 8
    static = 4 * units[-1][0]
    spent = sum(count * (after - at) for (at, count), (after, _) in itertools.pairwise(units))
    assert spent < 0.7 * static
    changes = [each for _, rulings in found for each in rulings if each.carried_out]
    assert all(isinstance(each.decision, Scale) and each.decision.reason for each in changes)
    assert len(changes) <= 8


def test_a_policy_that_was_resumed_decides_as_before():
    whole = Controller({"scaling": RunScaling(**POLICY)})
    expected = [[each.to_json() for each in rulings] for _, rulings in epochs(whole, 250)]
    parts = Controller({"scaling": RunScaling(**POLICY)})
    found = []
    for _, rulings in epochs(parts, 250):
        found.append([each.to_json() for each in rulings])
        state = json.loads(json.dumps(parts.to_json(), allow_nan=False))
        parts.policies = {"scaling": RunScaling(**POLICY)}
        parts.resume(state)
    assert found == expected


def test_a_recording_of_scaling_replays_to_the_same_decisions():
    setup = Setup({"scaling": POLICY})
    controller = setup.controller(lambda _: None)
    lines = [controller_line(setup, controller.to_json())]
    lines += [epoch_line(seen, rulings) for seen, rulings in epochs(controller, 250)]
    recording = Recording.parse(lines)
    assert any(each.rulings for each in recording.epochs)
    assert differences(recording, lambda _: None) == []


def test_a_dry_run_tells_and_changes_nothing():
    found = list(epochs(Controller({"scaling": RunScaling(**POLICY)}, mode="observe"), 130))
    rulings = [each for _, each in found for each in each]
    assert {each.held for each in rulings} == {"dry run"}
    assert rulings[0].words().startswith(f"epoch {rulings[0].epoch}, scaling: 1 to ")
    assert {seen.nodes.executors for seen, _ in found} == {1}


def test_without_nodes_nothing_is_decided():
    policy = RunScaling(**POLICY)
    policy.observe(Observation(epoch=0, stages=()))
    assert policy.decide(0.0) == []


def test_old_recordings_without_nodes_are_read():
    seen = Observation(epoch=0, stages=(), nodes=Nodes(2, busy=(1.0, 2.0)))
    value = json.loads(json.dumps(seen.to_json()))
    assert Observation.from_json(value) == seen
    for name in ("nodes", "left", "latency"):
        del value[name]
    assert Observation.from_json(value) == replace(seen, nodes=None)


def test_wrong_settings_are_refused():
    with pytest.raises(BadScaling, match="tick=0"):
        RunScaling("penstock", tick=0)
    with pytest.raises(BadScaling, match="no scaling policy 'best'"):
        RunScaling("best")
