"""What tasks tell the driver of their work; only what the last successful attempt tells counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.connect.results import Output
from penstock.runtime.cores import NOWHERE, Node
from penstock.runtime.dataflow.channels import Formed, Receipt
from penstock.runtime.dataflow.payloads import TaskId

__all__ = ["SentSeen", "StreamSeen", "TaskFile", "TaskReceipt", "Took", "summed"]


@dataclass(frozen=True)
class StreamSeen:
    """What was seen of a stream: the times of tuples that fit, how many came, and how many were set aside.

    The first and the last arrival are in microseconds since 1970, None if the source does not tell. `parts`
    has the latest time of each stream behind the source, where a column tells them apart.
    """

    rows: int = 0
    latest: int | None = None
    earliest: int | None = None
    late: int = 0
    rejected: int = 0
    arrived_first: int | None = None
    arrived_last: int | None = None
    parts: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "StreamSeen") -> "StreamSeen":
        parts = dict(self.parts)
        for name, time in other.parts.items():
            parts[name] = max(time, parts.get(name, time))
        return StreamSeen(
            self.rows + other.rows,
            _over(max, self.latest, other.latest),
            _over(min, self.earliest, other.earliest),
            self.late + other.late,
            self.rejected + other.rejected,
            _over(min, self.arrived_first, other.arrived_first),
            _over(max, self.arrived_last, other.arrived_last),
            parts,
        )


@dataclass(frozen=True)
class SentSeen:
    """What was sent to a stage: rows, the tuples behind them, the first and last bucket, the latest time."""

    rows: int = 0
    tuples: int = 0
    first: int | None = None
    last: int | None = None
    latest: int | None = None

    def __add__(self, other: "SentSeen") -> "SentSeen":
        return SentSeen(
            self.rows + other.rows,
            self.tuples + other.tuples,
            _over(min, self.first, other.first),
            _over(max, self.last, other.last),
            _over(max, self.latest, other.latest),
        )


@dataclass(frozen=True)
class TaskFile:
    """A file that a task wrote: what it is, of which stream, stage or output, and its receipt."""

    kind: str
    origin: Any
    output: Output


@dataclass(frozen=True)
class Took:
    """What an attempt took: seconds, those without waits for a processor, processor time of all threads.

    `node` tells executors apart: all processes of an executor have the same.
    """

    node: Node = NOWHERE
    seconds: float = 0.0
    occupied: float = 0.0
    cpu: float = 0.0

    @property
    def work(self) -> float:
        """The seconds that it keeps a core from others, which is one that it waits for a network, too."""
        return max(self.occupied, self.cpu)


@dataclass(frozen=True)
class TaskReceipt:
    """What one attempt of a task did.

    `channels` has what kernels did, by stage; `formed` how many rows of a stage a channel made partials of
    for others, and its processor time. `consumed` names the attempts of the tasks whose rows it took.
    `relayed` counts payloads that it passed on to a later level. `passed` are the tuples that a stream or
    stage gave to a stage.
    """

    task: TaskId
    streams: Mapping[str, StreamSeen] = field(default_factory=dict)
    sent: Mapping[int, SentSeen] = field(default_factory=dict)
    files: tuple[TaskFile, ...] = ()
    channels: Mapping[int, tuple[Receipt, ...]] = field(default_factory=dict)
    formed: Mapping[int, Formed] = field(default_factory=dict)
    consumed: Mapping[tuple[int, int], str] = field(default_factory=dict)
    relayed: int = 0
    passed: Mapping[tuple[str | int, int], int] = field(default_factory=dict)
    took: Took = field(default_factory=Took)


def _over(choose: Any, *values: int | None) -> int | None:
    known = [each for each in values if each is not None]
    return choose(known) if known else None


def summed(found: Iterable[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Mappings whose values add up."""
    every: dict[Any, Any] = {}
    for each in found:
        for name, value in each.items():
            every[name] = every[name] + value if name in every else value
    return every
