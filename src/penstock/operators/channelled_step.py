"""A step as a stage of its own: without state, with channels that rows find in turn ([002] §III.B).

The operator strategy has one for every step; all other strategies let steps run where their tuples are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from penstock.columns import TIME
from penstock.distribution import Anywhere
from penstock.expressions.duck import evaluate
from penstock.expressions.schema import Schema, quoted
from penstock.expressions.types import arrow_type
from penstock.functions import SqlSetting, duck_name
from penstock.operators.exchange import Exchange, SqlColumn
from penstock.operators.kernel import Advance, Channel, Describe, Kernel, Seen, StagePosition
from penstock.operators.operator import Inputs, Operator, Step
from penstock.state.segments import Segment
from penstock.state.table import Table

__all__ = ["ChannelledStep"]


@dataclass(frozen=True, slots=True)
class ChannelledStep(Operator):
    """A step in channels of its own."""

    stateful: ClassVar[bool] = True
    passing: ClassVar[bool] = True

    step: Step
    given: tuple[str, ...]
    setting: SqlSetting

    def __str__(self) -> str:
        return str(self.step)

    @property
    def kind(self) -> str:
        """As the step."""
        return self.step.kind

    def meaning(self) -> list[object]:
        """The step."""
        return ["in channels", *self.step.meaning()]

    def schema(self, inputs: Inputs) -> Schema:
        """What the step makes."""
        return self.step.schema(inputs)

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """As the step."""
        return self.step.carriers(names)

    def why_single(self) -> str | None:
        """Any number of channels can run it."""
        return None

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "StepKernel":
        """The step on Arrow."""
        del time_type
        types = [type_ for type_, _ in ports[0]([quoted(name) for name in self.given])]
        given = tuple(
            SqlColumn(name, quoted(name), arrow_type(type_))
            for name, type_ in zip(self.given, types, strict=True)
        )
        known = dict(zip(self.given, types, strict=True))
        if self.step.calls:
            taken = pa.schema([*((each.name, each.type) for each in given), (TIME, pa.int64())])
            return StepKernel(self, given, self.step.called(taken))
        source, made = self.step.in_channel("input", known, self.setting, TIME)
        columns = [(name, arrow_type(type_)) for name, type_ in made.items() if type_ and name != TIME]
        schema = pa.schema([*columns, (TIME, pa.int64())])
        return StepKernel(
            self, given, schema, f"SELECT {', '.join(map(duck_name, schema.names))} FROM {source}"
        )

    @property
    def route(self) -> str:
        """Any channel will do."""
        return "any"

    def route_words(self) -> str:
        """Round robin."""
        return "round robin: no state, so any channel will do"


@dataclass(frozen=True)
class StepKernel(Kernel):
    """A step over new rows: a SELECT over `input` in DuckDB's SQL, or a function."""

    operator: ChannelledStep
    given: tuple[SqlColumn, ...]
    made: Any
    sql: str | None = None

    @property
    def schema(self) -> Any:
        """What the step makes, and the event time in microseconds."""
        return self.made

    @property
    def tables(self) -> tuple[Table, ...]:
        """It keeps nothing."""
        return ()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All columns, and the event time."""
        return (Exchange((*self.given, SqlColumn(TIME, TIME, pa.int64())), Anywhere(("round robin",))),)

    def bound(self, position: StagePosition, port: int) -> int | None:
        """The frontier, where what follows relies on it."""
        return position.frontier(port)

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """As far as its input; without new rows there is nothing to do."""
        del before
        if drained is not None:
            return Advance(StagePosition((drained,), drained), idle=not seen.rows, ended=True)
        return Advance(StagePosition(frontiers, frontiers[0]), idle=not seen.rows)

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Take the step with all new rows."""
        (rows,) = channel.new
        if rows is not None:
            step = self.operator.step
            made = (
                step.call(rows, channel.refuse) if self.sql is None else evaluate(self.sql, rows, str(step))
            )
            channel.emit(made.cast(self.made))
        return ()
