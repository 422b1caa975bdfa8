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
class Check:
    """One promise with its measured value and exactly one bound; no value at all breaks the promise.

    The quick form of a measurement may be too small for a bound. Its check then stays in the report with
    value and bound, and `unjudged` says why the bound is not applied.

    >>> Check("p99", 0.8, source="latency bound", ceiling=1.5).ok
    True
    >>> Check("ratio", None, source="a run that gave no figure", floor=25).ok
    False
    >>> Check("ratio", 11.0, source="a promise", floor=25, unjudged="one small epoch").ok is None
    True
    """

    name: str
    value: float | None
    source: str
    floor: float | None = None
    ceiling: float | None = None
    unjudged: str = ""

    def __post_init__(self) -> None:
        if (self.floor is None) == (self.ceiling is None):
            raise ValueError(
                f"check {self.name!r} has floor {self.floor} and ceiling {self.ceiling}; give exactly one"
            )

    @property
    def ok(self) -> bool | None:
        """Whether the value is within the bound; None if the check is not judged but has a value."""
        if self.value is None or not math.isfinite(self.value):
            return False
        if self.unjudged:
            return None
        if self.floor is not None:
            return bool(self.value >= self.floor)
        return self.ceiling is not None and bool(self.value <= self.ceiling)

    def as_dict(self) -> dict[str, Value | bool]:
        """The JSON form, with only the bound that was given, and the reason if it is not judged."""
        bound = {"floor": self.floor} if self.floor is not None else {"ceiling": self.ceiling}
        value = float(self.value) if self.value is not None and math.isfinite(self.value) else None
        reason = {"unjudged": self.unjudged} if self.unjudged else {}
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
        """Whether no check failed; those that are not judged do not count."""
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
