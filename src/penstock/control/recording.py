"""How a recorded run reads: a line of JSON for the control it started with, then one for each epoch.

A file begins when a run starts. Its first line has the setup and the state of the controller at that time, so
that each file can be replayed alone. The others have an observation, the instant of the decision and the
rulings, in the order of epochs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.control.controller import Controller
from penstock.control.observation import Observation
from penstock.control.ruling import Ruling
from penstock.control.setup import Find, Setup
from penstock.errors import BadRecording

__all__ = ["Recorded", "Recording", "differences", "epoch_line", "replayed", "start_line"]


@dataclass(frozen=True)
class Recorded:
    """An epoch of a recording; `rulings` are plain values."""

    now: float
    seen: Observation
    rulings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Recording:
    """What a run recorded from one start on."""

    setup: Setup
    state: Mapping[str, Any] | None
    epochs: tuple[Recorded, ...]

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "the recording") -> "Recording":
        """The recording in these lines; a last line that was cut off by the end of a run is left out."""
        given = list(lines)
        if not given:
            raise BadRecording(f"{name} is empty; a recording begins with the control of its run")
        values = []
        for number, line in enumerate(given):
            try:
                values.append(json.loads(line))
            except ValueError as error:
                if number == len(given) - 1 and number:
                    break
                raise BadRecording(f"{name}, line {number + 1}: no JSON: {error}") from error
        try:
            head, *rest = values
            epochs = tuple(
                Recorded(each["now"], Observation.from_json(each["observation"]), tuple(each["rulings"]))
                for each in rest
            )
            return cls(Setup.from_json(head["control"]), head["state"], epochs)
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecording(
                f"{name} is not of this version: {type(error).__name__}: {error}; replay it with the version "
                "that recorded it"
            ) from error


def start_line(setup: Setup, state: Mapping[str, Any] | None) -> str:
    """The first line of a file, from the state with which the controller starts, or None for a new one."""
    return _line({"control": setup.to_json(), "state": state})


def epoch_line(now: float, seen: Observation, rulings: Sequence[Ruling]) -> str:
    """The line of an epoch."""
    told = [each.to_json() for each in rulings]
    return _line({"now": now, "observation": seen.to_json(), "rulings": told})


def replayed(recording: Recording, setup: Setup, find: Find) -> list[list[Ruling]]:
    """What another control decides after each of the recorded epochs.

    The control that recorded it starts from the recorded state, and so decides the same; another one begins
    anew. Observations are those of the recorded run: they do not follow what the other control decides.
    """
    control = setup.controller(find)
    if setup.policies == recording.setup.policies and recording.state is not None:
        control.resume(recording.state)
        control.started()
    return [_asked(control, each) for each in recording.epochs]


def differences(recording: Recording, find: Find) -> list[tuple[Recorded, list[str], list[str]]]:
    """The epochs where the recorded control decides another thing now: its lines then and now.

    Policies of the user cannot be asked again, so what they decided is not compared.
    """
    setup = replace(recording.setup, foreign=())
    found = []
    for each, now in zip(recording.epochs, replayed(recording, setup, find), strict=True):
        then = [_line(ruling) for ruling in each.rulings if ruling["policy"] in setup.policies]
        again = [_line(ruling.to_json()) for ruling in now]
        if then != again:
            found.append((each, then, again))
    return found


def _asked(control: Controller, each: Recorded) -> list[Ruling]:
    control.observe(each.seen)
    return control.decide(each.now)


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
