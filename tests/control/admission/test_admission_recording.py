import numpy as np
import pytest

from penstock.control.admission import (
    STRATEGY_NAMES,
    AdmissionRecording,
    AdmissionSetup,
    Arrivals,
    LineWriter,
    Seen,
    admission_differences,
    replayed_admission,
)
from penstock.control.admission.recording import decision_json
from penstock.errors import BadRecording

STREAMS = tuple(f"s{place}" for place in range(6))
DECLARED = {"max_rate": np.array([90.0, np.nan, 80.0, 70.0, np.nan, 60.0]), "transition": np.zeros(6)}


def observation(period, home, gates):
    rng = np.random.default_rng([3, period])
    work = rng.uniform(10, 90, len(STREAMS))
    work[period % 6] = np.nan
    every = (np.full(len(gates), 100.0), np.full(len(gates), np.nan), np.ones(len(gates), bool))
    return Seen(10.0 * period, STREAMS, gates, home, work, *every, DECLARED, None, ("g8", "g9"))


def recorded(strategy="drf-m", begins_at=0):
    """The lines of a course, in a file that begins in the middle of it."""
    setup = AdmissionSetup(100.0, strategy)
    policy, writer, lines = setup.policy(), LineWriter(), []
    gates, home = ("g1", "g2", "g3", "g4"), np.array([0, 0, 1, 2, 3, 3])
    for period in range(8):
        if period == begins_at:
            lines = [writer.head(setup, policy.to_json())]
        seen = observation(period, home, gates)
        policy.observe(seen)
        lines.append(writer.observed(seen, policy.decide(seen.at)))
        new = Arrivals(seen.at + 1, (f"n{period}",), gates, np.full(4, 100.0), {}, ())
        lines.append(writer.observed(new, policy.admit(new)))
    return lines, policy


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
@pytest.mark.parametrize("begins_at", [0, 4])
def test_the_recorded_strategy_decides_the_same_byte_for_byte(strategy, begins_at):
    recording = AdmissionRecording.parse(recorded(strategy, begins_at)[0])
    assert len(recording.periods) == 2 * (8 - begins_at)
    assert any(each.decisions for each in recording.periods)
    assert admission_differences(recording) == []


def test_an_altered_decision_is_found():
    lines, _ = recorded()
    at = next(place for place, each in enumerate(lines) if '"kind":"redirect"' in each)
    lines[at] = lines[at].replace('"target":"', '"target":"x')
    assert len(admission_differences(AdmissionRecording.parse(lines))) == 1


def test_another_strategy_decides_on_the_same_observations():
    recording = AdmissionRecording.parse(recorded("drf-m")[0])
    other = replayed_admission(recording, "par")
    assert len(other) == len(recording.periods)
    assert other != [list(each.decisions) for each in recording.periods]


def test_a_policy_goes_on_from_a_recording_as_if_nothing_had_happened():
    lines, policy = recorded(begins_at=3)
    again = AdmissionRecording.parse(lines).policy()
    new = Arrivals(99.0, ("z",), ("g1", "g2"), np.full(2, 100.0), {}, ("g9",))
    assert [*map(decision_json, again.admit(new))] == [*map(decision_json, policy.admit(new))]


def test_a_torn_last_line_is_left_out():
    lines, _ = recorded()
    assert len(AdmissionRecording.parse([*lines[:-1], lines[-1][:40]]).periods) == len(lines) - 2


def test_a_recording_of_a_run_is_refused():
    with pytest.raises(BadRecording, match="does not begin with the setup of a controller"):
        AdmissionRecording.parse(['{"kind":"controller"}'])
