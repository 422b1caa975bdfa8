"""The ways of rows from where they come about: their steps on Arrow, and what becomes of them then.

Rows come about at the intake of a stream, or as results of a stage. A way ends in a port of a stage, in a
file for a sink, in the same channel for the next stage, or before a step that only Spark can evaluate.
Conditions at the end of a subquery are part of its way, and what they drop is never sent ([002] §III.A).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.compile import Piece, Refusing, Tail
from penstock.connect.results import ResultFile, ResultFormat
from penstock.operators.exchange import TIME
from penstock.operators.poison import Refuse
from penstock.runtime.dataflow.payloads import Payload
from penstock.runtime.dataflow.ports import OpenPort, PortMap
from penstock.runtime.dataflow.receipts import SentSeen, TaskFile

__all__ = ["End", "OpenWays", "ToFile", "ToPort", "ToSpark", "ToStage", "Way"]


@dataclass(frozen=True)
class ToPort:
    """Rows go to a port of a stage with channels of its own."""

    port: PortMap


@dataclass(frozen=True)
class ToFile:
    """Rows are written for an output, or for a step that only Spark can evaluate."""

    kind: str
    origin: Any
    target: ResultFormat


@dataclass(frozen=True)
class ToStage:
    """Rows stay where they are, for a stage in the same channel or task."""


@dataclass(frozen=True)
class ToSpark:
    """Rows leave the task as they are, for a step that only Spark can evaluate."""


End = ToPort | ToFile | ToStage | ToSpark


@dataclass(frozen=True)
class Way:
    """Steps, the columns after them, None for all, and what becomes of the rows.

    `floor` names the port whose bound holds for rows of another stage, where merging is best effort.
    """

    tail: Tail | None
    schema: Any
    end: End
    floor: tuple[int, int] | None = None

    def rows(self, table: Any, refusing: Refusing | None = None) -> Any:
        """The rows at the end of the way."""
        return self.chosen(table if self.tail is None else self.tail.apply(table, refusing))

    def chosen(self, table: Any) -> Any:
        """The columns of rows that have taken all steps."""
        if self.schema is None:
            return table
        chosen = table.select(self.schema.names)
        return chosen if chosen.schema.equals(self.schema) else chosen.cast(self.schema)


@dataclass(frozen=True)
class Floors:
    """How far ports have come that do not wait for slower stages, and where rows go that come too late."""

    bounds: Mapping[tuple[int, int], int]
    missed: ResultFormat


class OpenWays:
    """The ways from one origin in one task: rows are pushed in, payloads and files come out."""

    def __init__(
        self,
        ways: Sequence[Way],
        open_port: Callable[[PortMap], OpenPort],
        refuse: Refuse | None = None,
        floors: Floors | None = None,
    ) -> None:
        self._ways = ways
        self._refuse = refuse
        self._floors = floors
        self._ports = {
            number: open_port(way.end.port) for number, way in enumerate(ways) if isinstance(way.end, ToPort)
        }
        self._files: dict[int, ResultFile] = {}
        self._missed: dict[int, ResultFile] = {}
        self._onward: dict[int, list[Any]] = {}
        self._payloads: list[Payload] = []

    def take(self, table: Any) -> None:
        """Send rows on all ways."""
        if not table.num_rows:
            return
        refusing = None if self._refuse is None else _once(self._refuse)
        done: dict[tuple[Piece, ...], Any] = {}
        for number, way in enumerate(self._ways):
            pieces = () if way.tail is None else way.tail.pieces
            if pieces not in done:
                done[pieces] = table if way.tail is None else way.tail.apply(table, refusing)
            rows = self._in_time(number, way, way.chosen(done[pieces]))
            if not rows.num_rows:
                continue
            if number in self._ports:
                self._payloads.extend(self._ports[number].take(rows))
            elif isinstance(way.end, ToFile):
                if number not in self._files:
                    self._files[number] = ResultFile(way.end.target, rows.schema)
                self._files[number].write(rows)
            else:
                self._onward.setdefault(number, []).append(rows)

    def _in_time(self, number: int, way: Way, rows: Any) -> Any:
        """Without rows that a port has passed; these are set aside."""
        bound = None if self._floors is None or way.floor is None else self._floors.bounds.get(way.floor)
        if bound is None:
            return rows
        missed = rows[TIME].to_numpy() < bound
        if missed.any():
            assert self._floors is not None
            shown = rows.filter(pa.array(missed)).drop_columns([TIME])
            if number not in self._missed:
                self._missed[number] = ResultFile(self._floors.missed, shown.schema)
            self._missed[number].write(shown)
        return rows.filter(pa.array(~missed))

    def payloads(self) -> list[Payload]:
        """What can leave now."""
        found, self._payloads = self._payloads, []
        return found

    def onward(self) -> dict[int, Any]:
        """The rows that stay, by the number of their way, since the last call."""
        found = {number: pa.concat_tables(tables) for number, tables in self._onward.items()}
        self._onward.clear()
        return found

    def close(self) -> tuple[TaskFile, ...]:
        """Send what is held back, and make all files durable."""
        for port in self._ports.values():
            self._payloads.extend(port.flush())
        files = []
        for number, file in self._files.items():
            end = self._ways[number].end
            assert isinstance(end, ToFile)
            files += _receipts(end.kind, end.origin, file, number)
        for number, file in self._missed.items():
            files += _receipts("missed", None, file, number)
        return tuple(files)

    def sent(self) -> dict[int, SentSeen]:
        """What was sent to each stage."""
        found: dict[int, SentSeen] = {}
        for port in self._ports.values():
            stage = port.way.stage
            found[stage] = found.get(stage, SentSeen()) + port.seen
        return found


def _receipts(kind: str, origin: Any, file: ResultFile, number: int) -> list[TaskFile]:
    file.close()
    receipt = file.receipt()
    return [] if receipt is None else [TaskFile(kind, origin, replace(receipt, exit=number))]


def _once(refuse: Refuse) -> Refusing:
    """Where several ways call the same function after the same steps, a row is refused by the first."""
    seen: set[tuple[Piece, ...]] = set()

    def refusing(pieces: tuple[Piece, ...]) -> Refuse:
        if pieces in seen:
            return _ignore
        seen.add(pieces)
        return refuse

    return refusing


def _ignore(reason: str, record: str) -> None:
    """A row that another way has refused."""
