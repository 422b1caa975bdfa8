"""How the recorded admission of a controller reads: lines of JSON that stand for themselves, file by file.

A file begins with the setup and what the policy knows at that time. Then there is a line for each period, and
one for each arrival of streams between two periods, with what was observed and what was decided. What is the
same as in the line before is left out. What an operator has decided has lines too, which are not replayed. So
each file can be replayed alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np

from penstock.control.admission.cluster import Floats
from penstock.control.admission.costs import Costs
from penstock.control.admission.decision import Decision
from penstock.control.admission.policy import NAME, Admission, AdmissionController, Arrivals, Seen
from penstock.control.admission.setup import AdmissionSetup
from penstock.control.lines import line, values
from penstock.control.ruling import Ruling
from penstock.errors import BadRecording

__all__ = [
    "AdmissionRecording",
    "LineWriter",
    "RecordedAdmission",
    "admission_differences",
    "replayed_admission",
    "ruling_json",
]


def ruling_json(ruling: Ruling) -> dict[str, Any]:
    """A ruling as plain values: the decision, why it is held back, and what it was predicted to bring."""
    told: dict[str, Any] = dict(ruling.decision.to_json())
    if ruling.held:
        told["held"] = ruling.held
    if ruling.effect is not None:
        told["effect"] = ruling.effect.to_json()
    return told


@dataclass(frozen=True)
class RecordedAdmission:
    """What was observed, a period or arrivals, and what was decided then, as plain values; or why nothing."""

    seen: Seen | Arrivals
    decisions: tuple[Mapping[str, Any], ...]
    why: tuple[str, ...] = ()


@dataclass
class LineWriter:
    """Writes the lines of one file; it remembers the line before, of which only changes are written."""

    _last: dict[str, Any] = field(default_factory=dict)

    def head(self, setup: AdmissionSetup, state: Mapping[str, Any]) -> str:
        """The first line of a file, from what the policy knows when it begins."""
        self._last = {}
        return line({"kind": "admission", "setup": setup.to_json(), "state": state})

    def period(self, seen: Seen, rulings: Sequence[Ruling]) -> str:
        """The line of a period."""
        told = {name: _plain(value) for name, value in vars(seen).items()}
        changed = {
            name: value for name, value in told.items() if name not in self._last or self._last[name] != value
        }
        self._last = told
        made = [ruling_json(each) for each in rulings if each.decision is not None]
        why = [each.held for each in rulings if each.decision is None]
        return line({"kind": "period", "seen": changed, "decisions": made, "why": why})

    def arrivals(self, seen: Arrivals, decisions: Sequence[Decision]) -> str:
        """The line of arrivals."""
        told = {name: _plain(value) for name, value in vars(seen).items()}
        return line({"kind": "arrivals", "seen": told, "decisions": [each.to_json() for each in decisions]})

    def asked(self, at: float, decisions: Sequence[Decision]) -> str:
        """The line of what an operator has decided, which no policy is asked about."""
        return line({"kind": "asked", "at": at, "decisions": [each.to_json() for each in decisions]})


@dataclass(frozen=True)
class AdmissionRecording:
    """One file: the setup, what the policy knew when the file begins, and what it then saw and decided."""

    setup: AdmissionSetup
    state: Mapping[str, Any] | None
    periods: tuple[RecordedAdmission, ...]

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "the recording") -> "AdmissionRecording":
        """The recording in these lines; a last line that was cut off by the end of a process is left out."""
        found = values(list(lines), name)
        try:
            if found[0]["kind"] != "admission":
                raise BadRecording(f"{name} does not begin with the setup of a controller; give a recording")
            setup = AdmissionSetup.from_json(found[0]["setup"])
            periods, last = [], dict[str, Any]()
            for each in found[1:]:
                decisions = tuple(each["decisions"])
                if each["kind"] == "asked":
                    continue
                if each["kind"] == "period":
                    last = {**last, **each["seen"]}
                    periods.append(RecordedAdmission(_seen(last), decisions, tuple(each["why"])))
                else:
                    periods.append(RecordedAdmission(_arrivals(each["seen"]), decisions))
            return cls(setup, found[0]["state"], tuple(periods))
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecording(
                f"{name} is not of this version: {type(error).__name__}: {error}; replay it with the version "
                "that recorded it"
            ) from error

    @property
    def learnt(self) -> Mapping[str, Any]:
        """What was known of gates and prices in the last period."""
        return next((each.seen.learnt for each in self.periods[::-1] if isinstance(each.seen, Seen)), {})

    def resumed(self) -> tuple[Admission, AdmissionController]:
        """The policy and its controller as they were after the last line."""
        policy, control = self.setup.policy_and_controller()
        for _ in _replay(self, policy, control):
            pass
        return policy, control


def replayed_admission(recording: AdmissionRecording, strategy: str) -> list[list[dict[str, Any]]]:
    """What another strategy decides on the recorded observations.

    The recorded one starts from the recorded state, and so decides the same; another one begins anew.
    Observations are those of the controller: they do not follow what the other strategy decides.
    """
    return list(_replay(recording, *recording.setup.under(strategy).policy_and_controller()))


def admission_differences(
    recording: AdmissionRecording,
) -> list[tuple[RecordedAdmission, list[str], list[str]]]:
    """Where the recorded strategy decides another thing now: its lines then and now."""
    found = []
    now = _replay(recording, *recording.setup.policy_and_controller())
    for each, decided in zip(recording.periods, now, strict=True):
        then, again = [line(told) for told in each.decisions], [line(told) for told in decided]
        if then != again:
            found.append((each, then, again))
    return found


def _replay(
    recording: AdmissionRecording, policy: Admission, control: AdmissionController
) -> Iterable[list[dict[str, Any]]]:
    state = recording.state
    if state and state["policies"][NAME]["planner"] == policy.planner.name:
        control.resume(state)
    for each in recording.periods:
        if isinstance(each.seen, Seen):
            control.observe(each.seen)
            rulings = control.decide(each.seen.at)
            yield [ruling_json(ruling) for ruling in rulings if ruling.decision is not None]
        else:
            yield [decision.to_json() for decision in policy.admit(each.seen)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        known = value.tolist()
        return [None if isnan(each) else each for each in known] if value.dtype.kind == "f" else known
    if isinstance(value, Costs):
        return _plain(vars(value))
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, list | tuple) else value


def _floats(given: Sequence[float | None]) -> Floats:
    return np.array([np.nan if each is None else each for each in given], np.float64)


def _declared(given: Mapping[str, Any]) -> dict[str, Floats]:
    return {name: _floats(each) for name, each in given.items()}


def _seen(given: Mapping[str, Any]) -> Seen:
    return Seen(
        at=given["at"],
        streams=given["streams"],
        gates=given["gates"],
        home=np.array(given["home"], np.int64),
        rates=_floats(given["rates"]),
        capacity=_floats(given["capacity"]),
        waiting=_floats(given["waiting"]),
        open=np.array(given["open"], np.bool_),
        declared=_declared(given["declared"]),
        away=None if given["away"] is None else np.array(given["away"], np.bool_),
        startable=given["startable"],
        prices=None if given["prices"] is None else Costs(*map(_floats, given["prices"].values())),
        new_capacity=given["new_capacity"],
        learnt=given["learnt"],
        epoch=given["epoch"],
        seconds=given["seconds"],
        startup=given["startup"],
    )


def _arrivals(given: Mapping[str, Any]) -> Arrivals:
    return Arrivals(
        at=given["at"],
        streams=given["streams"],
        gates=given["gates"],
        capacity=_floats(given["capacity"]),
        declared=_declared(given["declared"]),
        startable=given["startable"],
        prices=None if given["prices"] is None else Costs(*map(_floats, given["prices"].values())),
        new_capacity=given["new_capacity"],
    )
