"""How a recorded run reads: lines of JSON that stand for themselves, file by file.

A file begins with the control of the run and what it remembers at that time. Then there is a line for each
epoch, with its observation and the rulings on it, and one for each router before the first epoch that names
it. So each file can be replayed alone.
"""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.control.controller import Controller
from penstock.control.lines import line
from penstock.control.lines import values as parsed
from penstock.control.observation import Observation
from penstock.control.rescale import Rescale
from penstock.control.ruling import OVERRULED, Ruling
from penstock.control.setup import Find, Setup
from penstock.errors import BadRecording
from penstock.routing import HashPair

__all__ = [
    "Recorded",
    "Recording",
    "controller_line",
    "differences",
    "epoch_line",
    "replayed",
    "router_line",
]


@dataclass(frozen=True)
class Recorded:
    """An epoch of a recording; `rulings` are plain values."""

    seen: Observation
    rulings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Recording:
    """One file: the control, what it remembered when the file begins, the epochs, and routers by name."""

    setup: Setup
    state: Mapping[str, Any]
    epochs: tuple[Recorded, ...]
    routers: Mapping[str, HashPair] = field(default_factory=dict)

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "the recording") -> "Recording":
        """The recording in these lines; a last line that was cut off by the end of a run is left out."""
        values = parsed(list(lines), name)
        try:
            head = next((each for each in values if each["kind"] == "controller"), None)
            if head is None:
                raise BadRecording(f"{name} does not begin with the control of a run; give a recording")
            setup = Setup.from_json(head["control"]) if "control" in head else Setup()
            epochs = tuple(
                Recorded(Observation.from_json(each["observation"]), tuple(each["rulings"]))
                for each in values
                if each["kind"] == "epoch"
            )
            routers = {each["name"]: _router(each["data"]) for each in values if each["kind"] == "router"}
            return cls(setup, head["state"] or {}, epochs, routers)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise BadRecording(
                f"{name} is not of this version: {type(error).__name__}: {error}; replay it with the version "
                "that recorded it"
            ) from error


def controller_line(setup: Setup, state: Mapping[str, Any]) -> str:
    """The first line of a file, from what the controller remembers when it begins."""
    return line({"kind": "controller", "control": setup.to_json(), "state": state})


def router_line(name: str, router: HashPair) -> str:
    """The line of a router."""
    data = base64.b85encode(zlib.compress(router.to_bytes())).decode()
    return line({"kind": "router", "name": name, "data": data})


def epoch_line(seen: Observation, rulings: Sequence[Ruling]) -> str:
    """The line of an epoch."""
    told = [each.to_json() for each in rulings]
    return line({"kind": "epoch", "observation": seen.to_json(), "rulings": told})


def replayed(recording: Recording, setup: Setup, find: Find) -> list[list[Ruling]]:
    """What another control decides after each of the recorded epochs; `find` knows routers of no line.

    The control that recorded it starts from the recorded state, and so decides the same; another one begins
    anew. Observations are those of the recorded run: they do not follow what the other control decides.
    """

    def router(name: str) -> HashPair:
        return recording.routers[name] if name in recording.routers else find(name)

    control = setup.controller(router)
    if setup.policies == recording.setup.policies and recording.state:
        control.resume(recording.state)
    return [_asked(control, each) for each in recording.epochs]


def differences(recording: Recording, find: Find) -> list[tuple[Recorded, list[str], list[str]]]:
    """The epochs where the recorded control decides another thing now: its lines then and now.

    Policies of the user cannot be asked again, so what they decided is not compared.
    """
    setup = replace(recording.setup, foreign=())
    found = []
    for each, now in zip(recording.epochs, replayed(recording, setup, find), strict=True):
        then = [line(ruling) for ruling in each.rulings if ruling["policy"] in setup.policies]
        again = [line(ruling.to_json()) for ruling in now]
        if then != again:
            found.append((each, then, again))
    return found


def _asked(control: Controller[Observation, Any], each: Recorded) -> list[Ruling]:
    """The rulings after an epoch; where a user had asked for channels, policies are overruled again."""
    overruled = {ruling["decision"]["stage"] for ruling in each.rulings if ruling["held"] == OVERRULED}

    def check(change: Any) -> str:
        return OVERRULED if isinstance(change, Rescale) and change.stage in overruled else ""

    control.check = check
    control.observe(each.seen)
    return control.decide(each.seen.committed)


def _router(data: str) -> HashPair:
    return HashPair.from_bytes(zlib.decompress(base64.b85decode(data)))
