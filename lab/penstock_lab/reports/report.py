"""The report of a measurement: rows, and checks that decide the exit status."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

Value = str | int | float | None


@dataclass(frozen=True)
class Machine:
    """Where the measurement ran; memory is in MB."""

    cores: int
    cpu: str
    memory: int
    python: str
    spark: str


@dataclass(frozen=True)
class Difference:
    """Why a value misses a published bound, and from where to where it lies if the reason is true."""

    because: str
    least: float
    most: float

    def explains(self, value: float) -> bool:
        """Whether a value lies where the reason puts it."""
        return self.least <= value <= self.most


@dataclass(frozen=True)
class Check:
    """One promise with its measured value and exactly one bound; no value at all breaks the promise.

    The quick form of a measurement may be too small for a bound. Its check then stays in the report with
    value and bound, and `unjudged` says why the bound is not applied.

    A bound that someone else published may be out of reach for a known reason. `differs` gives the reason and
    the values that it explains: within them a miss stands as a difference, outside it is a failure.

    >>> Check("p99", 0.8, source="latency bound", ceiling=1.5).ok
    True
    >>> Check("ratio", None, source="a run that gave no figure", floor=25).ok
    False
    >>> Check("ratio", 11.0, source="a promise", floor=25, unjudged="one small epoch").ok is None
    True
    >>> known = Difference("the paper counts each copy", 10, 12)
    >>> [Check("ratio", each, "a paper", floor=25, differs=known).verdict for each in (11, 9, 26)]
    ['differs', 'FAILED', 'ok']
    """

    name: str
    value: float | None
    source: str
    floor: float | None = None
    ceiling: float | None = None
    unjudged: str = ""
    differs: Difference | None = None

    def __post_init__(self) -> None:
        if (self.floor is None) == (self.ceiling is None):
            raise ValueError(
                f"check {self.name!r} has floor {self.floor} and ceiling {self.ceiling}; give exactly one"
            )

    @property
    def ok(self) -> bool | None:
        """Whether the value is within the bound; None if it is not judged, or misses as `differs` says."""
        if self.value is None or not math.isfinite(self.value):
            return False
        if self.unjudged:
            return None
        if self._within(self.value):
            return True
        return None if self.differs is not None and self.differs.explains(self.value) else False

    @property
    def verdict(self) -> str:
        """The same in a word: ok, FAILED, not judged or differs."""
        if self.ok is None:
            return "not judged" if self.unjudged else "differs"
        return "ok" if self.ok else "FAILED"

    @property
    def reason(self) -> str:
        """Why there is neither a yes nor a no; empty if there is one."""
        if self.ok is not None:
            return ""
        if self.unjudged:
            return f"not judged: {self.unjudged}"
        assert self.differs is not None
        return f"differs, because {self.differs.because}"

    def _within(self, value: float) -> bool:
        if self.floor is not None:
            return bool(value >= self.floor)
        return self.ceiling is not None and bool(value <= self.ceiling)

    def as_dict(self) -> dict[str, Value | bool]:
        """The JSON form, with only the bound that was given, and the reason if there is no yes or no."""
        bound = {"floor": self.floor} if self.floor is not None else {"ceiling": self.ceiling}
        value = float(self.value) if self.value is not None and math.isfinite(self.value) else None
        reason = {"unjudged": self.unjudged} if self.unjudged else {}
        if self.verdict == "differs" and self.differs is not None:
            reason = {"differs": self.differs.because}
        return {
            "name": self.name,
            "value": value,
            **bound,
            "ok": self.ok,
            "source": self.source,
            **reason,
        }


@dataclass(frozen=True)
class Report:
    """The outcome of one measurement on one machine from one seed."""

    name: str
    version: str
    date: str
    machine: Machine
    seed: int
    rows: tuple[Mapping[str, Value], ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed; those that are not judged or differ for a known reason do not count."""
        return all(check.ok is not False for check in self.checks)

    @property
    def status(self) -> int:
        """The exit status of the command: 0 only if no check failed."""
        return 0 if self.ok else 1

    def to_json(self) -> str:
        """One JSON object, with the keys in the documented order."""
        whole = {
            "name": self.name,
            "version": self.version,
            "date": self.date,
            "machine": asdict(self.machine),
            "seed": self.seed,
            "rows": [dict(row) for row in self.rows],
            "checks": [check.as_dict() for check in self.checks],
        }
        return json.dumps(whole, allow_nan=False)


def now() -> str:
    """The date of a report: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
