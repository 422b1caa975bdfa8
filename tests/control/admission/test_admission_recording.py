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
    (policy, control), writer, lines = setup.policy_and_controller(), LineWriter(), []
    gates, home = ("g1", "g2", "g3", "g4"), np.array([0, 0, 1, 2, 3, 3])
    for period in range(8):
        if period == begins_at:
            lines = [writer.head(setup, control.to_json())]
        seen = observation(period, home, gates)
        control.observe(seen)
        lines.append(writer.period(seen, control.decide(seen.at)))
        new = Arrivals(seen.at + 1, (f"n{period}",), gates, np.full(4, 100.0), {}, ())
        lines.append(writer.arrivals(new, policy.admit(new)))
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
    again, _ = AdmissionRecording.parse(lines).resumed()
    new = Arrivals(99.0, ("z",), ("g1", "g2"), np.full(2, 100.0), {}, ("g9",))
    assert again.admit(new) == policy.admit(new)


def test_a_torn_last_line_is_left_out():
    lines, _ = recorded()
    assert len(AdmissionRecording.parse([*lines[:-1], lines[-1][:40]]).periods) == len(lines) - 2


def test_a_recording_of_a_run_is_refused():
    with pytest.raises(BadRecording, match="does not begin with the setup of a controller"):
        AdmissionRecording.parse(['{"kind":"controller"}'])


def test_a_dry_run_is_recorded_with_what_held_it_back_and_what_was_predicted():
    setup = AdmissionSetup(100.0, "drf-m", mode="observe")
    _, control = setup.policy_and_controller()
    writer = LineWriter()
    lines = [writer.head(setup, control.to_json())]
    for period in range(4):
        seen = observation(period, np.array([0, 0, 1, 2, 3, 3]), ("g1", "g2", "g3", "g4"))
        control.observe(seen)
        lines.append(writer.period(seen, control.decide(seen.at)))
    recording = AdmissionRecording.parse(lines)
    told = [each for period in recording.periods for each in period.decisions]
    assert {each["held"] for each in told} == {"dry run"}
    assert admission_differences(recording) == []


def test_a_period_without_a_decision_says_why_once():
    setup = AdmissionSetup(1000.0)
    _, control = setup.policy_and_controller()
    calm = [np.array([9.0] * 6), np.full(1, 1000.0), np.zeros(1), np.ones(1, bool)]
    reasons = []
    for period in range(3):
        control.observe(Seen(10.0 * period, STREAMS, ("g1",), np.zeros(6, int), *calm, epoch=period))
        reasons += [each.held for each in control.decide(10.0 * period)]
    assert reasons == ["1 gates have 5% of the work that they can do, and no move pays"]
