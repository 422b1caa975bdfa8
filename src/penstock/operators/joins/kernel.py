"""The channels of a join: they match new rows against kept rows and keep rows while they can match.

Rows of equal keys meet in one channel, rows of a hot key on a grid of channels, rows of a Cartesian product
on a grid of all channels: each pair meets in exactly one channel, or is delivered by one (`judging.py`). A
product with the last rows needs the order of all rows, so each channel has all of them, and forms the pairs
whose later row is of its share ([002] §IV.D).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.distribution import Broadcast, Distribution, JudgedGrids, OnGrid, OnGrids
from penstock.errors import WrongType
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.exchange import KEY, TIME, Digest, Exchange, Form, SqlColumn
from penstock.operators.joins.condition.meaning import channel_condition
from penstock.operators.joins.judging import Duties
from penstock.operators.joins.node import WINDOW_END, Join, JoinKey, common_type
from penstock.operators.joins.result import result_schema
from penstock.operators.joins.spec import (
    END,
    REACH,
    ByWindow,
    Condition,
    Frontiers,
    JoinSpec,
    Last,
    Pair,
    Share,
    Side,
    Within,
)
from penstock.operators.joins.step import HeldSide, step
from penstock.operators.kernel import Advance, Channel, Describe, Kernel, Seen, StagePosition
from penstock.operators.names import check_key
from penstock.routing import copied_on_grids, copied_sides
from penstock.state.chosen_rows import ChosenRows
from penstock.state.segments import Segment
from penstock.state.time_table import TimeTable

__all__ = ["TIE", "JoinKernel", "compile_join"]

TIE = "_ps_tie"
_SIDES = ("left", "right")


@dataclass(frozen=True)
class JoinKernel(Kernel):
    """A join in channels.

    `sides` are the columns that the left and the right side send, which segments hold. `time` is the readable
    event time of results. `parted` are the places of the keys that the router hashes, in its order; None for
    all keys. If it is `divided`, all channels have all rows, and each finds the partners of its share.
    """

    operator: Join
    join: JoinSpec
    sides: tuple[tuple[SqlColumn, ...], tuple[SqlColumn, ...]]
    time: pa.Field
    parted: tuple[int, ...] | None = None
    divided: bool = False

    @property
    def schema(self) -> Any:
        """The columns of a result, then its event time in microseconds."""
        left, right = (each.schema for each in self.exchanges)
        found = result_schema(self.join, left, right)
        ends = [] if self.operator.window is None else [self.time.with_name(WINDOW_END)]
        return pa.schema([self.time, *ends, *list(found)[1:], found.field(0)])

    @property
    def distribution(self) -> Distribution:
        """Pairs meet by their key, on a grid without one; or in each channel, where these divide the work."""
        if self.divided:
            return Broadcast()
        how, last = self.join.how, isinstance(self.join.bound, Last)
        if not self._routed:
            return OnGrid(copied_sides(how, last=last))
        by_pairs = self.join.condition is not None or isinstance(self.join.bound, ByWindow)
        return OnGrids(self._routed, copied_on_grids(how, last=last, by_pairs=by_pairs))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Both sides by their keys; a row without a key is sent only where it is delivered alone."""
        return tuple(
            Exchange(
                columns,
                self.distribution,
                side,
                nulls="sent" if alone else "never",
                digests=self._ties(side),
            )
            for side, (columns, alone) in enumerate(zip(self.sides, self.join.keeps_unmatched, strict=True))
        )

    def _ties(self, side: int) -> tuple[Digest, ...]:
        """What orders rows of equal time: all left rows precede all right rows, and content decides."""
        if self.operator.last is None:
            return ()
        content = tuple(each.name for each in self.sides[side])
        return (Digest(TIE, content, "after" if side else "before"),)

    @property
    def tables(self) -> tuple[TimeTable, TimeTable]:
        """The rows of each side that can still match."""
        left, right = (self._table(port) for port in (0, 1))
        return left, right

    def hosted(self, keys: tuple[str, ...]) -> "JoinKernel":
        """In the channels of stages that part their rows by these of its keys, in that order.

        Both sides have them from the same routing stage, so no key needs a cast to be compared.
        """
        names = [key.left for key in self.operator.keys]
        stored = [[quoted((key.left, key.right)[side]) for key in self.operator.keys] for side in (0, 1)]
        own = {KEY.format(place): place for place in range(len(names))}
        left, right = (
            tuple(
                replace(each, sql=stored[side][own[each.name]]) if each.name in own else each
                for each in columns
            )
            for side, columns in enumerate(self.sides)
        )
        return replace(self, sides=(left, right), parted=tuple(names.index(name) for name in keys))

    @property
    def _routed(self) -> tuple[str, ...]:
        """The columns that the router hashes."""
        keys = self.join.left.keys
        return keys if self.parted is None else tuple(keys[place] for place in self.parted)

    def bound(self, position: StagePosition, port: int) -> int | None:
        """The frontier of the port, since rows of the other side have left with it.

        By windows the time below which no window is open; a window is closed when both frontiers have passed.
        Where a row counts in all of its windows or in none, it is where the last closed window ends.
        """
        windows = self.join.bound
        if not isinstance(windows, ByWindow):
            return position.frontier(port)
        both = Frontiers(*(position.frontiers or (None, None))).both
        if both is None:
            return None
        return windows.ended(both) if self.operator.late == "drop" else windows.floor(both)

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """How far back results that are still to come can lie."""
        if drained is not None:
            nothing = not seen.rows and not seen.state
            return Advance(StagePosition((drained, drained), drained), idle=nothing, ended=True)
        promise, promised = before.promise, self._promised(*frontiers)
        if promised is not None:
            promise = promised if promise is None else max(promised, promise)
        unchanged = frontiers == before.frontiers or not seen.state
        return Advance(StagePosition(frontiers, promise), idle=unchanged and not seen.rows)

    def _promised(self, left: int | None, right: int | None) -> int | None:
        """The time below which no result comes any more, with these frontiers."""
        if left is None or right is None:
            return None
        bound = self.join.bound
        if isinstance(bound, ByWindow):
            return bound.start(bound.first_open(min(left, right)))
        if isinstance(bound, Last):
            return min(left, right)
        # A row that comes is not before its frontier; a kept one waits for as long as it can match. A row
        # that stands alone carries its own time.
        waits = min(left, right - bound.distance), min(right, left - bound.back)
        alone = [wait for wait, one in zip(waits, self.join.notes_matches, strict=True) if one]
        if not self.join.pairs:
            return _told(waits[0])
        pairs = {"earliest": min(waits), "latest": min(left, right), "left": waits[0], "right": waits[1]}
        return _told(min([pairs[self.join.times], *alone]))

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Match new rows against kept rows."""
        if not any(channel.new) and not channel.store.segments:
            return ()
        before = Frontiers(*(channel.before.frontiers or (None, None)))
        after = Frontiers(END, END) if channel.ended else Frontiers(*channel.after.frontiers)
        schemas = [each.schema for each in self.exchanges]
        opened = [
            table.open(channel.store, schema, channel.before.frontiers)
            for table, schema in zip(self.tables, schemas, strict=True)
        ]
        new = [
            schema.empty_table() if rows is None else rows
            for rows, schema in zip(channel.new, schemas, strict=True)
        ]
        left, right = (HeldSide(each.rows, each.matched) for each in opened)
        stepped = step(
            self.join,
            Pair(left, right),
            Pair(*new),
            before,
            after,
            lambda table: channel.emit(self._result(table)),
            Share(TIE, channel.number, channel.channels) if self.divided else None,
            self._duties(channel, Pair(left.rows.and_those(new[0]), right.rows.and_those(new[1]))),
        )
        kept: list[Segment] = []
        for table, rows, side in zip(opened, new, (stepped.left, stepped.right), strict=True):
            stays = side.new
            kept += table.close_by_masks(
                side.kept,
                side.kept_matched,
                rows.filter(pa.array(stays)) if stays.any() else None,
                side.new_matched[stays],
            )
        return tuple(kept)

    def _duties(self, channel: Channel, sides: Pair[ChosenRows]) -> Duties | None:
        """What the channel does with rows on judged grids; None if it has none."""
        duties = channel.view.duties(channel.number) if isinstance(channel.view, JudgedGrids) else {}
        return Duties(duties, self._routed, sides) if duties else None

    def partly_late(self, before: StagePosition, new: tuple[Any | None, ...], form: Form) -> int:
        """Rows of which some windows were closed and others were not; each copy on a grid counts."""
        del form
        windows = self.join.bound
        both = Frontiers(*(before.frontiers or (None, None))).both
        if not isinstance(windows, ByWindow) or both is None:
            return 0
        opened = windows.first_open(both)
        first = [windows.first_with(rows[TIME].to_numpy()) for rows in new if rows is not None]
        return sum(int(np.count_nonzero(each < opened)) for each in first)

    def _table(self, port: int) -> TimeTable:
        bound = self.join.bound
        return TimeTable(
            _SIDES[port],
            keys=self._routed,
            port=port,
            labels={
                TIE: "",
                **{KEY.format(place): key.left for place, key in enumerate(self.operator.keys)},
            },
            lives=(1 - port, (bound.distance, bound.back)[port]) if isinstance(bound, Within) else None,
            marked=isinstance(bound, Last) or self.join.notes_matches[port],
            windows=(bound.size, bound.slide, bound.offset) if isinstance(bound, ByWindow) else None,
            counted=isinstance(bound, ByWindow),
        )

    def _result(self, table: Any) -> Any:
        """Result rows with the readable event time in front, by windows with the end of the window."""
        micros, window = table[TIME], self.operator.window
        ends = [] if window is None else [pc.add(micros, window.size).cast(self.time.type)]
        return pa.table([micros.cast(self.time.type), *ends, *table.columns[1:], micros], schema=self.schema)


def _told(promise: int) -> int | None:
    """A promise; None if rows are kept for ever, so that nothing can be promised."""
    return None if promise < -(REACH >> 1) else promise


def compile_join(operator: Join, time_type: str, left: Describe, right: Describe) -> JoinKernel:
    """The kernel of a join, with what Spark says about the types of both sides."""
    own = (_key_types(operator, 0, left), _key_types(operator, 1, right))
    types = tuple(map(_compared_as, operator.keys, *own))
    whole = (_stored_keys(operator, 0, own[0], types), _stored_keys(operator, 1, own[1], types))
    sides = (
        _columns(operator, 0, left, types, _read(operator, 0, whole[0])),
        _columns(operator, 1, right, types, _read(operator, 1, whole[1])),
    )
    delivered = tuple(
        tuple((whole[side].get(stored, stored), name) for stored, name in columns)
        for side, columns in enumerate((operator.left, operator.right))
    )
    keys = tuple(KEY.format(place) for place in range(len(types)))
    ties = (TIE,) if operator.last is not None else ()
    join = JoinSpec(
        Side(TIME, keys, ties, delivered[0]),
        Side(TIME, keys, ties, delivered[1]),
        operator.bound,
        key_types=tuple(arrow_type(each) for each in types),
        how=operator.how,
        condition=_condition(operator, left, right),
        time=TIME,
        key_names=tuple(key.left for key in operator.keys),
        times=operator.times,
    )
    return JoinKernel(
        operator, join, sides, pa.field(operator.time, arrow_type(time_type)), divided=operator.divided
    )


def _condition(operator: Join, left: Describe, right: Describe) -> Condition | None:
    condition = operator.condition
    if condition is None:
        return None
    return channel_condition(condition, _types(condition.left, left), _types(condition.right, right))


def _types(names: Sequence[str], describe: Describe) -> dict[str, str | None]:
    found = describe([quoted(name) for name in names])
    return {name: type_ for name, (type_, _) in zip(names, found, strict=True)}


def _key_types(operator: Join, side: int, describe: Describe) -> list[str]:
    """The types of the keys of a side before they are made comparable."""
    return [type_ for type_, _ in describe([quoted((key.left, key.right)[side]) for key in operator.keys])]


def _compared_as(key: JoinKey, ours: str, theirs: str) -> str:
    found = common_type(ours, theirs)
    if not found:
        raise WrongType(f"the keys {key.left} {ours} and {key.right} {theirs} cannot be compared; cast one")
    check_key(key.left, found)
    return found


def _stored_keys(operator: Join, side: int, own: list[str], types: tuple[str, ...]) -> dict[str, str]:
    """Columns that are sent and kept as keys without a cast: results need no second copy of them."""
    return {
        (key.left, key.right)[side]: KEY.format(place)
        for place, key in enumerate(operator.keys)
        if own[place] == types[place]
    }


def _read(operator: Join, side: int, keys: Mapping[str, str]) -> list[str]:
    """The columns of a side that its results or the condition need, keys apart."""
    delivered = [stored for stored, _ in (operator.left, operator.right)[side] if stored not in keys]
    condition = operator.condition
    asked = (condition.left, condition.right)[side] if condition else ()
    return list(dict.fromkeys([*delivered, *asked]))


def _columns(
    operator: Join, side: int, describe: Describe, key_types: tuple[str, ...], names: list[str]
) -> tuple[SqlColumn, ...]:
    found = describe([quoted(name) for name in names])
    keys = [(key.left, key.right)[side] for key in operator.keys]
    columns = [SqlColumn(TIME, TIME, pa.int64())]
    columns += [
        SqlColumn(KEY.format(place), f"cast({quoted(name)} AS {type_})", arrow_type(type_))
        for place, (name, type_) in enumerate(zip(keys, key_types, strict=True))
    ]
    columns += [
        SqlColumn(name, quoted(name), arrow_type(type_))
        for name, (type_, _) in zip(names, found, strict=True)
    ]
    return tuple(columns)
