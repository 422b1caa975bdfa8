"""The channels of a map: the function over new rows, and for a sample of them what each value costs.

A sampled piece is sorted by value, the function is called for each value by itself, and the rows go back into
their order. So costs are measured, not attributed, and results are those of any other call, since a function
makes of each row what it makes of it alone. Samples may take 5 % of a channel's time, the first piece aside.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.columns import HASH, TIME
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.channelled_map.node import ChannelledMap
from penstock.operators.cost_meter import CostMeter
from penstock.operators.exchange import Exchange, SqlColumn
from penstock.operators.kernel import Advance, Channel, Describe, Kernel, Seen, StagePosition
from penstock.operators.poison import Refuse
from penstock.state.segments import Segment
from penstock.state.table import Table

__all__ = ["MapKernel", "compile_map"]

_FIRST, _SAMPLED, _PIECE = 256, 1024, 8192
"""Rows of the first sampled piece, of later ones, and of a piece that is not sampled."""
_MOST: Final = 0.05
"""The part of a channel's time that samples may cost beyond the first."""
_PLACE: Final = "_ps_place"


@dataclass(frozen=True)
class MapKernel(Kernel):
    """A function in channels; `columns` are those that it is given, as SQL over the port."""

    operator: ChannelledMap
    columns: tuple[SqlColumn, ...]

    @property
    def schema(self) -> Any:
        """What passes by, what the function makes, and the event time in microseconds."""
        given = {each.name: each.type for each in self.columns}
        kept = [(name, given[name]) for name in self.operator.step.kept]
        made = [(each.name, each.type) for each in self.operator.step.made.arrow()]
        return pa.schema([*kept, *made, (TIME, pa.int64())])

    @property
    def tables(self) -> tuple[Table, ...]:
        """It keeps nothing."""
        return ()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All columns, the event time, and the hash of the value if costs depend on one."""
        columns = (*self.columns, SqlColumn(TIME, TIME, pa.int64()))
        by, groupings = self.operator.by, self.operator.groupings
        if not by:
            return (Exchange(columns, groupings=groupings),)
        value = SqlColumn(HASH, f"xxhash64({', '.join(map(quoted, by))})", pa.int64())
        return (Exchange((*columns, value), groupings=groupings, value=HASH),)

    def bound(self, position: StagePosition, port: int) -> int | None:
        """The frontier, where what follows relies on it."""
        return position.frontier(port)

    def advance(
        self,
        before: StagePosition,
        frontiers: tuple[int | None, ...],
        seen: Seen,
        drained: int | None,
    ) -> Advance:
        """As far as its input; without new rows there is nothing to do."""
        if drained is not None:
            return Advance(StagePosition((drained,), drained), idle=not seen.rows, ended=True)
        return Advance(StagePosition(frontiers, frontiers[0]), idle=not seen.rows)

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Call the function with all new rows."""
        (rows,) = channel.new
        if rows is not None:
            table = rows.select(self.exchanges[0].schema.names).cast(self.exchanges[0].schema)
            made = [each.cast(self.schema) for each in self._made(table, channel.meter, channel.refuse)]
            channel.emit(pa.concat_tables(made))
        return ()

    def _made(self, table: Any, meter: CostMeter | None, refuse: Refuse | None) -> Iterator[Any]:
        """What the function makes, piece by piece, in the order of the rows."""
        function = self.operator.step
        if meter is None or not self.operator.by:
            for start in range(0, table.num_rows, _PIECE):
                yield function.call(table.slice(start, _PIECE), refuse)
            return
        sample = _Sample(self.operator, meter, refuse)
        yield sample.made(table.slice(0, _FIRST))
        start = _FIRST
        while start < table.num_rows:
            size = _SAMPLED if sample.affordable else _PIECE
            piece = table.slice(start, size)
            yield sample.made(piece) if sample.affordable else sample.plain(piece)
            start += size


class _Sample:
    """Calls the function for one value at a time, and knows what that costs beyond a plain call."""

    def __init__(self, operator: ChannelledMap, meter: CostMeter, refuse: Refuse | None) -> None:
        self._step, self._meter, self._refuse = operator.step, meter, refuse
        self._began, self._beyond = meter.wall(), 0.0
        self._fixed: tuple[float, float] | None = None

    @property
    def affordable(self) -> bool:
        """Whether samples have taken a small part of the time so far."""
        return self._beyond <= _MOST * (self._meter.wall() - self._began)

    def plain(self, piece: Any) -> Any:
        """What the function makes of a piece at once."""
        return self._step.call(piece, self._refuse)

    def made(self, piece: Any) -> Any:
        """What the function makes of a piece, value by value; rows are in their order."""
        began = self._meter.wall()
        wall, cpu = self._fixed = self._fixed or self._fixed_costs(piece)
        values = piece[HASH].to_numpy()
        order = np.argsort(values, kind="stable")
        ordered = piece.append_column(_PLACE, pa.array(np.arange(len(order)))).take(pa.array(order))
        ordered, values = ordered.combine_chunks(), values[order]
        first = np.flatnonzero(np.diff(values, prepend=values[0] ^ 1))
        found, busy = [], 0.0
        for start, end in zip(first.tolist(), [*first[1:].tolist(), len(values)], strict=True):
            rows = ordered.slice(start, end - start)
            made, took, used = self._meter.timed(partial(self._step.call, rows, self._refuse, _PLACE))
            self._meter.note(int(values[start]), end - start, took - wall, used - cpu)
            found.append(made)
            busy += max(took - wall, 0.0)
        self._beyond += self._meter.wall() - began - busy
        return pa.concat_tables(found).sort_by(_PLACE).drop_columns([_PLACE])

    def _fixed_costs(self, piece: Any) -> tuple[float, float]:
        """Wall and processor seconds of a call without rows: what a call costs whatever it is called with.

        A function that cannot take an empty batch has costs that cannot be told apart from those of rows.
        """
        empty = piece.slice(0, 0).append_column(_PLACE, pa.array([], pa.int64()))
        try:
            calls = [self._meter.timed(partial(self._step.call, empty, None, _PLACE)) for _ in range(2)]
        except Exception:  # noqa: BLE001 -- the user's function may raise anything
            return 0.0, 0.0
        return min(each[1] for each in calls), min(each[2] for each in calls)


def compile_map(operator: ChannelledMap, describe: Describe) -> MapKernel:
    """The kernel of a map, with what Spark says about the types."""
    names = operator.step.given.names
    found = [arrow_type(type_) for type_, _ in describe([quoted(name) for name in names])]
    return MapKernel(
        operator,
        tuple(SqlColumn(name, quoted(name), type_) for name, type_ in zip(names, found, strict=True)),
    )
