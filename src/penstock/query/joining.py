"""Joins of two relations: by equal keys or any condition, within a distance of time or the last rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, get_args

from penstock.errors import BadJoin, BadName, WrongType
from penstock.expressions import types
from penstock.expressions.durations import microseconds, words
from penstock.expressions.pairs import PairCondition, pair_condition
from penstock.expressions.schema import Column, Schema

if TYPE_CHECKING:
    from penstock.query.relation import Relation

__all__ = ["How", "Join", "JoinKey", "On", "common_type", "join_of", "joined_schema"]

How = Literal["inner", "left", "right", "full"]
On = str | Iterable[str] | Mapping[str, str]
Suffixes = tuple[str, str]
_MOST_ROWS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A pair of columns that have to be equal; the result has one column for both, named as the left one."""

    left: str
    right: str
    type: str | None


@dataclass(frozen=True, slots=True)
class Join:
    """A join; without keys it is the Cartesian product.

    Either ``within`` (microseconds) or ``last`` (rows) bounds it. ``left`` and ``right`` are the columns
    that each side gives, with their names in the result; ``time`` names the result's event time.
    """

    keys: tuple[JoinKey, ...]
    within: int | None
    last: int | None
    how: How
    condition: PairCondition | None
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]
    time: str

    @property
    def bound(self) -> str:
        """The bound in words."""
        return f"within {words(self.within)}" if self.within is not None else f"last {self.last}"

    def __str__(self) -> str:
        keys = ", ".join(
            key.left if key.left == key.right else f"{key.left} = {key.right}" for key in self.keys
        )
        parts = [*([keys] if keys else []), self.bound, *([self.how] if self.how != "inner" else [])]
        parts += [str(self.condition)] if self.condition else []
        return f"{'join' if self.keys else 'cross'}({'; '.join(parts)})"


def join_of(  # noqa: PLR0913 -- each is one documented option
    left: "Relation",
    right: "Relation",
    on: On,
    *,
    within: str | timedelta | None,
    last: int | None,
    how: str,
    condition: str | None,
    suffixes: Suffixes | None,
) -> Join:
    """The join, all names and types checked."""
    if (within is None) == (last is None):
        raise BadJoin("a join needs one bound: within='1 minute' (event time apart) or last=100 (rows)")
    if last is not None and not (isinstance(last, int) and 1 <= last < _MOST_ROWS):
        raise BadJoin(f"last={last!r}; give a whole number of rows, 1 or more, below 2**31")
    if how not in get_args(How):
        raise BadJoin(f"how={how!r}; give one of {', '.join(get_args(How))}")
    if left.time_type != right.time_type:
        raise WrongType(
            f"the left time {left.time!r} is {left.time_type}, the right one {right.time!r} is "
            f"{right.time_type}; declare both streams with the same type of time"
        )
    keys = tuple(_key(one, other, left.schema, right.schema) for one, other in _pairs(on))
    given = _given(left, right, keys, suffixes)
    return Join(
        keys=keys,
        within=None if within is None else microseconds(within),
        last=last,
        how=how,  # type: ignore[arg-type]
        condition=None if condition is None else pair_condition(condition, left.schema, right.schema),
        left=given[0],
        right=given[1],
        time=left.time,
    )


def joined_schema(join: Join, left: "Relation", right: "Relation") -> Schema:
    """The result's time, the keys, the columns of the left and those of the right side."""
    lacking = {"inner": (False, False), "left": (False, True), "right": (True, False), "full": (True, True)}
    left_lacks, right_lacks = lacking[join.how]
    columns = [Column(join.time, left.time_type, nullable=False)]
    columns += [Column(key.left, key.type, nullable=join.how != "inner") for key in join.keys]
    for side, names, lacks in ((left, join.left, left_lacks), (right, join.right, right_lacks)):
        for stored, name in names:
            found = side.schema.column(stored)
            columns.append(Column(name, found.type, found.nullable or lacks))
    return Schema(tuple(columns))


def _pairs(on: On) -> list[tuple[str, str]]:
    if isinstance(on, Mapping):
        return list(on.items())
    return [(name, name) for name in ([on] if isinstance(on, str) else on)]


def _key(one: str, other: str, left: Schema, right: Schema) -> JoinKey:
    ours, theirs = left.column(one), right.column(other)
    type_ = common_type(ours.type, theirs.type)
    if type_ == "":
        raise WrongType(
            f"the keys {ours.name} {ours.type} and {theirs.name} {theirs.type} cannot be compared; cast one"
        )
    if type_ and not types.is_atomic(type_):
        raise WrongType(f"key {ours.name!r} is {type_}; a key has to be one plain value, take a field of it")
    return JoinKey(ours.name, theirs.name, type_)


_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")


def common_type(left: str | None, right: str | None) -> str | None:
    """The type in which two keys are compared; empty when there is none, None while one is not known."""
    if left is None or right is None or left == right:
        return left or right
    for family in (_WHOLE, ("float", "double")):
        if left in family and right in family:
            return max(left, right, key=family.index)
    return ""


def _given(
    left: "Relation", right: "Relation", keys: tuple[JoinKey, ...], suffixes: Suffixes | None
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """What each side gives to the result; its time and its keys are there already."""
    ours = [name for name in left.schema.names if name not in {left.time, *(key.left for key in keys)}]
    theirs = [name for name in right.schema.names if name not in {right.time, *(key.right for key in keys)}]
    taken = {left.time.lower(), *(key.left.lower() for key in keys)}
    shared = {name.lower() for name in ours} & {name.lower() for name in theirs}
    shared |= {name.lower() for name in (*ours, *theirs)} & taken
    if shared and suffixes is None:
        raise BadName(
            f"both sides have {', '.join(sorted(shared))}; give suffixes=('_l', '_r') or rename by select()"
        )
    one, other = suffixes or ("", "")
    return (
        tuple((name, name + (one if name.lower() in shared else "")) for name in ours),
        tuple((name, name + (other if name.lower() in shared else "")) for name in theirs),
    )
