"""The channels of a map: the function over new rows, and for a sample of them what each value costs.

Sampled rows are sorted by value, the function is called for each value by itself, and the rows go back into
their order. So costs are measured, not attributed, and results are those of any other call, since a function
makes of each row what it makes of it alone. While nobody knows which columns make the value, it is called for
each sampled row. As many rows are sampled as may cost 5 % of a channel's time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.columns import TIME
from penstock.distribution import Anywhere
from penstock.errors import MachineFault
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.channelled_map.node import ChannelledMap
from penstock.operators.cost_meter import CostMeter
from penstock.operators.exchange import Exchange, SqlColumn
from penstock.operators.kernel import Advance, Channel, Describe, Kernel, Seen, StagePosition
from penstock.operators.poison import Refuse
from penstock.routing.spark_hash import spark_hash
from penstock.state.segments import Segment
from penstock.state.table import Table

__all__ = ["MapKernel", "compile_map"]

_PIECE: Final = 8192
"""The most rows of a call."""
_PILOT: Final = 32
"""Rows of the call that tells about how much a row costs, at most a quarter of all."""
_MOST: Final = 0.05
"""The part of a channel's time that its samples may cost."""
_FEWEST: Final = 8
"""Rows that are sampled in any case, so that something is learnt."""
_TICK: Final = 1e-6
_BITS: Final = (1 << 63) - 1
_PLACE: Final = "_ps_place"
_PLAIN: Final = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_string,
    pa.types.is_large_string,
)
_MOST_CANDIDATES: Final = 16


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
        """All columns and the event time."""
        columns = (*self.columns, SqlColumn(TIME, TIME, pa.int64()))
        by, groupings = self.operator.by, self.operator.groupings
        return (Exchange(columns, Anywhere(groupings, by, () if by else self._candidates)),)

    @property
    def _candidates(self) -> tuple[str, ...]:
        """The columns that costs may go by: those with plain values, which are compared at little cost."""
        names = [each.name for each in self.columns if any(plain(each.type) for plain in _PLAIN)]
        return tuple(names[:_MOST_CANDIDATES])

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
            made = [each.cast(self.schema) for each in self._made(table, channel)]
            channel.emit(pa.concat_tables(made))
        return ()

    def _made(self, table: Any, channel: Channel) -> Iterator[Any]:
        """What the function makes, piece by piece, in the order of the rows."""
        meter, by, candidates = channel.meter, channel.view, self._candidates
        if meter is None or not (by or candidates):
            yield from self._plain(table, channel.refuse)
            return
        # Rows come in the order of the source, which may go by value. Equal rows give equal samples.
        chance = np.random.default_rng([table[TIME][0].as_py() & _BITS, table.num_rows])
        start = int(chance.integers(0, max(table.num_rows - _PIECE, 0) + 1))
        yield from self._plain(table.slice(0, start), channel.refuse)
        sample = _Sample(self.operator, by, candidates, meter, channel.refuse, chance)
        yield sample.made(table.slice(start, _PIECE), table.num_rows)
        yield from self._plain(table.slice(start + _PIECE), channel.refuse)

    def _plain(self, table: Any, refuse: Refuse | None) -> Iterator[Any]:
        for start in range(0, table.num_rows, _PIECE):
            yield self.operator.step.call(table.slice(start, _PIECE), refuse)


@dataclass(frozen=True)
class _Sample:
    """Calls the function for one value or row at a time, with as many rows as may be afforded."""

    operator: ChannelledMap
    by: tuple[str, ...]
    candidates: tuple[str, ...]
    meter: CostMeter
    refuse: Refuse | None
    chance: np.random.Generator

    def made(self, piece: Any, rows: int) -> Any:
        """What the function makes of a piece, in its order; so many `rows` are to be taken in all."""
        placed = piece.append_column(_PLACE, pa.array(np.arange(piece.num_rows)))
        drawn = self.chance.permutation(piece.num_rows)
        fixed = self._fixed(placed)
        pilot = min(_PILOT, len(drawn) // 4)
        found, each = [], 0.0
        if pilot:
            made, wall, _ = self.meter.timed(partial(self._call, _taken(placed, drawn[:pilot])))
            found, each = [made], max(wall - fixed[0], 0.0) / pilot
        # A call for each row at worst; the function takes what it takes in any case.
        most = _MOST * each * rows / max(fixed[0], _TICK)
        last = pilot + max(_FEWEST, int(min(most, _PIECE)))
        measured = self._by_value if self.by else self._by_row
        found += measured(_taken(placed, drawn[pilot:last]), fixed)
        if last < len(drawn):
            found.append(self._call(_taken(placed, drawn[last:])))
        return pa.concat_tables(found).sort_by(_PLACE).drop_columns([_PLACE])

    def _by_value(self, rows: Any, fixed: tuple[float, float]) -> Iterator[Any]:
        """What the function makes of rows, one value after another, with a note on what each costs."""
        if not rows.num_rows:
            return
        values = spark_hash([rows[name] for name in self.by], rows.num_rows).view(np.int64)
        order = np.argsort(values, kind="stable")
        ordered, values = rows.take(pa.array(order)).combine_chunks(), values[order]
        first = np.flatnonzero(np.diff(values, prepend=values[0] ^ 1))
        for start, end in zip(first.tolist(), [*first[1:].tolist(), len(values)], strict=True):
            made, wall, cpu = self.meter.timed(partial(self._call, ordered.slice(start, end - start)))
            self.meter.note(int(values[start]), end - start, wall - fixed[0], cpu - fixed[1])
            yield made

    def _by_row(self, rows: Any, fixed: tuple[float, float]) -> Iterator[Any]:
        """What the function makes of rows, one after another, with a note on what each costs."""
        hashes = [spark_hash([rows[name]], rows.num_rows).tolist() for name in self.candidates]
        for place, values in enumerate(zip(*hashes, strict=True)):
            made, wall, cpu = self.meter.timed(partial(self._call, rows.slice(place, 1)))
            self.meter.note_row(list(values), wall - fixed[0], cpu - fixed[1])
            yield made

    def _fixed(self, placed: Any) -> tuple[float, float]:
        """Wall and processor seconds of a call without rows: what a call costs whatever it is called with.

        A function that cannot take an empty batch has costs that cannot be told apart from those of rows.
        """
        empty = partial(self.operator.step.call, placed.slice(0, 0), None, _PLACE)
        try:
            calls = [self.meter.timed(empty) for _ in range(2)]
        except MachineFault:
            raise
        except Exception:  # noqa: BLE001 -- the user's function may raise anything
            return 0.0, 0.0
        return min(each[1] for each in calls), min(each[2] for each in calls)

    def _call(self, rows: Any) -> Any:
        return self.operator.step.call(rows, self.refuse, _PLACE)


def _taken(table: Any, places: Any) -> Any:
    return table.take(pa.array(np.sort(places)))


def compile_map(operator: ChannelledMap, describe: Describe) -> MapKernel:
    """The kernel of a map, with what Spark says about the types."""
    names = operator.step.given.names
    found = [arrow_type(type_) for type_, _ in describe([quoted(name) for name in names])]
    return MapKernel(
        operator,
        tuple(SqlColumn(name, quoted(name), type_) for name, type_ in zip(names, found, strict=True)),
    )
