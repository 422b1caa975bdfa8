"""The join of two relations: by equal keys or any condition, near in time, in one window or the last rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.errors import BadJoin, QueryError
from penstock.expressions.conditions import substituted
from penstock.expressions.durations import words
from penstock.expressions.pairs import LEFT, RIGHT, PairCondition
from penstock.expressions.scalar import Expression
from penstock.expressions.schema import Column, Schema, quoted
from penstock.functions import SqlSetting, Types
from penstock.operators.aggregated import WINDOW_END, WINDOW_START
from penstock.operators.exchange import Form
from penstock.operators.joins.condition.meaning import check_known
from penstock.operators.joins.spec import REACH, Bound, ByWindow, How, Last, PairTime, Within
from penstock.operators.kernel import Describe
from penstock.operators.operator import NATIVE, InputRelation, Inputs, Operator, lowered
from penstock.operators.windows import Window
from penstock.operators.windows.node import Late, shown_rules
from penstock.routing.resources import LQL, Resources

if TYPE_CHECKING:
    from penstock.operators.joins.kernel import JoinKernel

__all__ = ["FOREVER", "PAIR_TIME", "WINDOW_END", "How", "Join", "JoinKey", "PairTime", "common_type"]

# Rows of all times are nearer to each other than this.
FOREVER: Final = REACH - 1
PAIR_TIME: Final = "pair_time"
"""The event time of pairs; the times of both rows are columns of their own."""
_LEFT, _RIGHT = 0, 1
# The sides that can be filtered early: every result has a row of such a side.
_TAKERS: Final = {
    "inner": (_LEFT, _RIGHT),
    "left": (_LEFT,),
    "right": (_RIGHT,),
    "full": (),
    "semi": (_LEFT,),
    "anti": (_LEFT,),
}
# Whether a result may have no left row, and no right row.
_LACKING: Final = {
    "inner": (False, False),
    "left": (False, True),
    "right": (True, False),
    "full": (True, True),
    "semi": (False, False),
    "anti": (False, False),
}
# The sides of which rows without a partner are delivered, in words.
_ALONE: Final = {"left": "the left side", "right": "the right side", "full": "either side"}
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
# A channel takes about 0.5 µs for a row that it only orders and keeps, and several times that for 32 pairs.
_WORTH_DIVIDING: Final = 32
# With a bound of the last rows, a key keeps a fixed number of rows and compares each new row with them.
_LAST_ROWS: Final = Resources.of("CLL")


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A pair of columns that have to be equal; the result has one column for both, with the left name."""

    left: str
    right: str
    type: str | None


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """A join; without keys it is the Cartesian product.

    One of ``within`` (microseconds), ``last`` (rows), ``window`` and ``keep`` (microseconds for each side)
    bounds it. ``left`` and ``right`` are the columns that each side gives, with their names in the result;
    ``time`` names the result's event time, and ``times`` says which time a pair carries. By windows ``late``
    says what becomes of a tuple of which some windows are closed.
    """

    ports: ClassVar[tuple[str, ...]] = ("left", "right")
    stateful: ClassVar[bool] = True

    keys: tuple[JoinKey, ...]
    within: int | None
    last: int | None
    how: How
    condition: PairCondition | None
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]
    time: str
    window: Window | None = None
    keep: tuple[int, int] | None = None
    times: PairTime = "earliest"
    late: Late = "count"

    @property
    def bound(self) -> Bound:
        """What two rows have to be to each other, beside their keys and the condition."""
        if self.window is not None:
            return ByWindow(self.window.size, self.window.slide, self.window.offset)
        if self.keep is not None:
            return Within(*self.keep)
        return Within(self.within) if self.within is not None else Last(self.last or 1)

    def _bound_words(self) -> str:
        if self.window is not None:
            return f"window {self.window}{shown_rules(self.late, 0, None)}"
        if self.keep is not None:
            return f"keep {_kept_words(self.keep)}"
        return f"within {words(self.within)}" if self.within is not None else f"last {self.last}"

    def __str__(self) -> str:
        keys = ", ".join(
            key.left if key.left == key.right else f"{key.left} = {key.right}" for key in self.keys
        )
        parts = [*([keys] if keys else []), self._bound_words()]
        parts += [self.how] if self.how != "inner" else []
        parts += [str(self.condition)] if self.condition else []
        usual = "latest" if self.within is None else "earliest"
        parts += [f"time {self.times}"] if self._paired and self.times != usual else []
        return f"{self.kind}({'; '.join(parts)})"

    @property
    def _paired(self) -> bool:
        """Whether results are pairs, or left rows of a semi or anti join."""
        return self.how not in {"semi", "anti"}

    @property
    def kind(self) -> str:
        """Join, or cross without keys."""
        return "join" if self.keys else "cross"

    def meaning(self) -> list[object]:
        """Keys, bound, condition and the columns of the result."""
        keys: list[object] = [[key.left, key.right, key.type] for key in self.keys]
        condition = self.condition.sql if self.condition else None
        window = self.window and [*self.window.meaning(), self.late]
        bound = [self.within, self.last, window, self.keep]
        return ["join", keys, bound, self.how, condition, self.left, self.right, self.times]

    # -- its result ------------------------------------------------------------------------------------

    def schema(self, inputs: Inputs) -> Schema:
        """The result's time, the keys, the columns of the left and those of the right side."""
        columns = [Column(name, inputs[0].time_type, nullable=False) for name in self.pinned(inputs)]
        columns += [Column(key.left, key.type, nullable=self.how != "inner") for key in self.keys]
        for place, lacks in enumerate(_LACKING[self.how]):
            for stored, name in self._given(place):
                found = inputs[place].schema.column(stored)
                columns.append(Column(name, found.type, found.nullable or lacks))
        return Schema(tuple(columns))

    def event_time(self, inputs: Inputs) -> str:
        """The time of a pair; by windows the start of the window, of semi and anti joins that of the row."""
        return self.time

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The time of a pair, or the bounds of the window."""
        return (self.time,) if self.window is None else (WINDOW_START, WINDOW_END)

    # -- keys and columns ------------------------------------------------------------------------------

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The columns of a side that have to be equal to those of the other."""
        return tuple((key.left, quoted((key.left, key.right)[place])) for key in self.keys)

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """The columns that a side gives, and the keys as they are compared."""
        names = {name: quoted(stored) for stored, name in self._given(place)}
        for key in self.keys:
            stored = (key.left, key.right)[place]
            given = inputs[place].schema.column(stored).type
            if given is not None and given == key.type:
                names[key.left] = quoted(stored)
            elif given is not None and key.type is not None:
                names[key.left] = f"CAST({quoted(stored)} AS {key.type})"
        return names

    def passes(self, condition: Expression, inputs: Inputs) -> dict[int, Expression]:
        """The sides that can be filtered instead of the result.

        Within a distance of time, a condition on the columns of one side goes to that side if that loses no
        results: both sides of an inner join, the preserved side of a left or right join, the left side of a
        semi or anti join. A condition on keys alone goes to both sides of any join, because it is equal for
        rows of equal keys. With a bound of the
        last rows only whole keys may be dropped: without one row, an older row would enter the window.
        """
        found = [
            substituted(condition, self.origins(place, inputs), each.schema)
            for place, each in enumerate(inputs)
        ]
        if set(condition.columns) <= set(self.key_names):
            return {place: each for place, each in enumerate(found) if each} if all(found) else {}
        if self.last is not None:
            return {}
        for place in _TAKERS[self.how]:
            if here := found[place]:
                return {place: here}
        return {}

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """The keys, what the condition reads, and the sources of wanted columns.

        With a bound of the last rows all columns: a digest of all columns orders rows of one time.
        """
        if self.last is not None:
            return lowered(inputs[place].schema.names)
        keys = [(key.left, key.right)[place] for key in self.keys]
        condition = (self.condition.left, self.condition.right)[place] if self.condition else ()
        given = [stored for stored, name in self._given(place) if name.lower() in wanted]
        return lowered([*keys, *condition, *given])

    def narrowed(self, wanted: frozenset[str], inputs: Inputs) -> tuple[Operator, tuple[str, ...]]:
        """The join without unused columns, so that its state is smaller."""
        if self.last is not None:
            return self, ()
        left = tuple(each for each in self.left if each[1].lower() in wanted)
        right = tuple(each for each in self.right if each[1].lower() in wanted)
        given, made = len(self.left + self.right), len(left + right)
        if made == given:
            return self, ()
        told = f"{self} gives {made} of {given} columns beside its time and keys"
        entries = (self._entry(place, wanted, inputs) for place in range(2))
        return replace(self, left=left, right=right), (told, *entries)

    def _entry(self, place: int, wanted: frozenset[str], inputs: Inputs) -> str:
        read, given = self.reads(place, wanted, inputs), inputs[place]
        names = [name for name in given.schema.names if name.lower() in read]
        counts = f"{len(names)} of {len(given.schema.names)} columns of {given.label}"
        shown = f": {', '.join(names)}" if names else ""
        return f"{counts} enter {self} beside its time{shown}"

    def _given(self, place: int) -> tuple[tuple[str, str], ...]:
        return (self.left, self.right)[place]

    # -- channels --------------------------------------------------------------------------------------

    def why_single(self) -> str | None:
        """A product has one channel if it delivers unmatched rows, or if its last rows are few."""
        if self.keys:
            return None
        if self.how != "inner":
            return "a row without a partner is known only where all rows of the other side are"
        if self.last is not None and not self.divided:
            return f"with so few last rows ({self.last}) a copy of each tuple in every channel would not pay"
        return None

    @property
    def divided(self) -> bool:
        """Whether all channels have all rows, and each finds the partners of its share of the new ones.

        So it is for products with the last rows: which those are depends on the order of all rows.
        """
        return not self.keys and self.how == "inner" and (self.last or 0) >= _WORTH_DIVIDING

    def partition_columns(self, inputs: Inputs) -> frozenset[str]:
        """The keys, unless rows without a key are delivered: these may be in any channel.

        A product without keys divides pairs by a grid, which no column describes.
        """
        lost = any(self._may_lack_a_key(place, inputs) for place in range(2))
        return frozenset() if lost else frozenset(self.key_names)

    def _may_lack_a_key(self, place: int, inputs: Inputs) -> bool:
        """Whether rows of a side with a null in their key are delivered."""
        if self.how not in {"full", *(("left", "anti"), ("right",))[place]}:
            return False
        schema = inputs[place].schema
        return any(schema.column((key.left, key.right)[place]).nullable for key in self.keys)

    def shares_channels(self) -> bool:
        """By time it does: rows of equal keys are together wherever both inputs are partitioned so.

        With the last rows, Spark's hash of their content orders rows of one time; no channel computes it.
        """
        return bool(self.keys) and self.last is None

    def why_last(self) -> str | None:
        """Rows of any age may be in its results: no operator can wait for them.

        Newer rows of a key push out rows of any age, and rows that are kept for ever match at any age.
        """
        forever = [each == FOREVER for each in self.keep or (0, 0)]
        lone = ({"left", "full", "semi", "anti"}, {"right", "full"})
        timed = ({"left", "earliest"}, {"right", "earliest"})
        if self.last is not None:
            ages = self.how != "inner"
        else:
            ages = any(kept and self.how in hows for kept, hows in zip(forever, lone, strict=True))
        if ages:
            return (
                f"{self} delivers rows of any age when they can match no more, so no window or join can "
                "follow it; use within=..., or how='inner'"
            )
        if self._paired and any(
            kept and self.times in each for kept, each in zip(forever, timed, strict=True)
        ):
            return (
                f"{self} delivers pairs with the time of a row of any age, so no window or join can follow "
                "it; use time='latest', or keep='1 day'"
            )
        return None

    def refused(self, why: str) -> QueryError:
        """A join that cannot be where it is."""
        return BadJoin(why)

    def check_setting(self, inputs: Inputs, setting: SqlSetting) -> None:
        """The condition is evaluated where pairs meet."""
        if self.condition is not None:
            left, right = map(_types_of, inputs)
            check_known(self.condition, left, right, setting)

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "JoinKernel":
        """Rows of both sides, kept while they can match."""
        from penstock.operators.joins.kernel import compile_join  # noqa: PLC0415 -- it needs this class

        left, right = ports
        return compile_join(self, time_type, left, right)

    def resources(self, form: Form = "rows") -> Resources:
        """By time, rows are kept (linear state) and paired (quadratic computation)."""
        return LQL if self.last is None else _LAST_ROWS

    # -- words for plans -------------------------------------------------------------------------------

    @property
    def route(self) -> str:
        """By hash; without keys by a grid, or to all channels."""
        if self.keys:
            return "hash"
        return "grid" if self.last is None else "all"

    def route_words(self) -> str:
        """The router and the reason for it."""
        if not self.keys and self.last is not None:
            return (
                "all: each tuple goes to every channel, which keeps the last of both sides and finds the "
                "partners of its share of the new tuples"
            )
        if not self.keys:
            return "grid: each tuple goes to about √channels of them, each pair meets in exactly one"
        names = ", ".join(
            key.left if key.left == key.right else f"{key.left} or {key.right}" for key in self.keys
        )
        if self.last is None:
            judged = ", where one channel judges each tuple" if self.how == "full" else ""
            grids = f"hot keys on grids of channels of their own{judged}"
            return f"xxhash64({names}) by ring and table, {grids}; {NATIVE}"
        return f"xxhash64({names}) by ring and table, {NATIVE}"

    def words(self) -> list[str]:
        """Its bound, what its channels keep and how long, and what happens to unmatched rows."""
        lines = [f"pairs: {self._pairs()}"]
        if self.condition:
            lines.append(f"  of these, where {self.condition} is true")
        if self.late == "drop":
            lines.append("  a tuple is late as soon as one of its windows is closed, and then counts in none")
        lines.append(f"state: {self._state()}")
        each = "" if self.window is None else ", in each of its windows"
        until = "when it can match no more" if self.window is None else "at the end of the window"
        if self.how == "semi":
            lines.append(f"semi: a left row is delivered at its first match, once, and goes{each}")
        elif self.how == "anti":
            lines.append(f"anti: a left row without a partner is delivered {until}{each}; one with goes")
        elif self.how != "inner":
            sides = _ALONE[self.how]
            lines.append(f"outer: a row of {sides} without a partner is delivered {until}{each}")
        if self.how in {"left", "full", "anti"} and self.condition and self.condition.of_side(LEFT):
            lines.append("  at once where the condition on the left row alone is false")
        if self.how in {"right", "full"} and self.condition and self.condition.of_side(RIGHT):
            lines.append("  at once where the condition on the right row alone is false")
        return lines

    def _pairs(self) -> str:
        alike = f"equal {', '.join(self.key_names)}" if self.keys else "any two rows"
        row = {"earliest": "its earlier row", "latest": "its later row"}.get(
            self.times, f"its {self.times} row"
        )
        timed = f"; the time of a pair is that of {row}" if self._paired else ""
        if self.window is not None:
            several = (
                "; a pair in each window that holds both" if self.window.slide < self.window.size else ""
            )
            return f"{alike}, in one window of {self.window}{several}"
        if self.keep is not None:
            if self.keep == (FOREVER, FOREVER):
                return f"{alike}, however far apart{timed}"
            left, right = map(_duration_words, self.keep)
            apart = (
                f"at most {left} apart"
                if left == right
                else f"the right at most {left} after the left, or the left at most {right} after the right"
            )
            return f"{alike}, {apart}{timed}"
        if self.within is not None:
            return f"{alike}, at most {words(self.within)} apart{timed}"
        return (
            f"{alike}, a row with the last {self.last} of the other side before it, at the time of the "
            "later row"
        )

    def _state(self) -> str:
        rows = "the rows of both sides in segments, new ones matched against kept ones"
        if self.window is not None:
            return f"{rows}; a row goes when the frontiers of both sides have passed its last window"
        if self.keep is not None:
            return f"{rows}; {_keeping(self.keep)}"
        if self.within is not None:
            return (
                f"{rows}; a row goes when the "
                f"frontier of the other side has passed its time by more than {words(self.within)}"
            )
        each = "of every key, for as long as the run lasts" if self.keys else "for as long as the run lasts"
        return f"the last {self.last} rows of each side {each}; those that later rows precede go"


def _duration_words(kept: int) -> str:
    return "forever" if kept == FOREVER else words(kept)


def _kept_words(keep: tuple[int, int]) -> str:
    left, right = map(_duration_words, keep)
    return left if left == right else f"{left} and {right}"


def _keeping(keep: tuple[int, int]) -> str:
    if keep == (FOREVER, FOREVER):
        return "nothing ever goes, so state grows as long as the run lasts"
    parts = []
    for side, kept in zip(("left", "right"), keep, strict=True):
        if kept == FOREVER:
            parts.append(f"a {side} row never goes, so state grows as long as the run lasts")
        else:
            parts.append(
                f"a {side} row goes when the frontier of the other side has passed its time by more than "
                f"{words(kept)}"
            )
    return "; ".join(parts)


def common_type(left: str | None, right: str | None) -> str | None:
    """The type in which two keys are compared; empty if there is none, None while a type is unknown."""
    if left is None or right is None or left == right:
        return left or right
    for family in (_WHOLE, ("float", "double")):
        if left in family and right in family:
            return max(left, right, key=family.index)
    return ""


def _types_of(relation: InputRelation) -> Types:
    return {each.name: each.type for each in relation.schema.columns}
