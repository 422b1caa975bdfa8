"""The outputs of a stage: results take their last steps inside its channels and are written there.

An output leads to a sink, in the sink's own format, or to another stage, as files that live until the epoch
is committed. This is the load balancer of [002] §III.A: conditions at the end of a subquery are part of it,
and what they drop is never written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.compile import Piece, Refusing, Tail
from penstock.connect.results import Output, ResultFile, ResultFormat
from penstock.operators.poison import Refuse

__all__ = ["OpenStageOutputs", "StageOutput"]


@dataclass(frozen=True)
class StageOutput:
    """The last steps of results, the columns that come out, and where they are written.

    Without a target they stay in the same channel for the next stage.
    """

    tail: Tail | None
    schema: Any
    target: ResultFormat | None

    def rows(self, table: Any, refusing: Refusing | None = None) -> Any:
        """The rows to write for some results; `refusing` as for a `Tail`."""
        if self.tail is not None:
            table = self.tail.apply(table, refusing)
        chosen = table.select(self.schema.names)
        return chosen if chosen.schema.equals(self.schema) else chosen.cast(self.schema)


class OpenStageOutputs:
    """The files of one channel in one epoch, one for each output that has rows."""

    def __init__(self, exits: Sequence[StageOutput], refuse: Refuse | None = None) -> None:
        self._exits = exits
        self._refuse = refuse
        self._files = [ResultFile(each.target, each.schema) if each.target else None for each in exits]
        self._onward: dict[int, list[Any]] = {}

    def write(self, table: Any) -> None:
        """Send results through every output."""
        refusing = None if self._refuse is None else _once(self._refuse)
        for number, (each, file) in enumerate(zip(self._exits, self._files, strict=True)):
            rows = each.rows(table, refusing)
            if file is not None:
                file.write(rows)
            elif rows.num_rows:
                self._onward.setdefault(number, []).append(rows)

    def close(self) -> tuple[Output, ...]:
        """Make all files durable and return their receipts."""
        outputs = []
        for number, file in enumerate(self._files):
            if file is not None:
                file.close()
                receipt = file.receipt()
                if receipt is not None:
                    outputs.append(replace(receipt, exit=number))
        return tuple(outputs)

    def onward(self) -> dict[int, Any]:
        """The rows that stay in the same channel, by output."""
        return {number: pa.concat_tables(tables) for number, tables in self._onward.items()}


def _once(refuse: Refuse) -> Refusing:
    """Where several outputs call the same function after the same steps, a row is refused by the first."""
    seen: set[tuple[Piece, ...]] = set()

    def refusing(pieces: tuple[Piece, ...]) -> Refuse:
        if pieces in seen:
            return _ignore
        seen.add(pieces)
        return refuse

    return refusing


def _ignore(reason: str, record: str) -> None:
    """A row that another output has refused."""
