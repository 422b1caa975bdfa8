"""The physical plan of a join: what each side sends to channels and keeps there, how pairs are formed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock import joins
from penstock.compile.duck import translate
from penstock.compile.lifts import TIME
from penstock.compile.partials import Column
from penstock.compile.plan import Describe
from penstock.compile.slots import Places, shared_slots
from penstock.errors import WrongType
from penstock.expressions.types import arrow_type
from penstock.query import Derived, Join, common_type, quoted
from penstock.query.joining import JoinKey

__all__ = ["KEY", "TIE", "JoinPlan", "compile_join"]

KEY = "_ps_key{}"
TIE = "_ps_tie"


@dataclass(frozen=True)
class JoinPlan:
    """Everything a channel has to know of a join; the same object serves every epoch.

    `sides` are the columns that the left and the right side send, as SQL over their port; they are
    what segments hold.
    """

    operator: Join
    join: joins.Join
    sides: tuple[tuple[Column, ...], tuple[Column, ...]]
    time: pa.Field

    def side_schema(self, side: int) -> Any:
        """The Arrow schema of what a side sends."""
        return pa.schema([(column.name, column.type) for column in self.sides[side]])

    @cached_property
    def slots(self) -> Places:
        """The columns in which the rows of both sides travel."""
        left, right = ([column.type for column in side] for side in self.sides)
        return shared_slots(left, right)

    @property
    def schema(self) -> Any:
        """The columns of a result, then its event time in microseconds."""
        found = joins.result_schema(self.join, self.side_schema(0), self.side_schema(1))
        return pa.schema([self.time, *list(found)[1:], found.field(0)])

    def result(self, table: Any) -> Any:
        """Result rows as the kernel forms them, with the event time as people read it in front."""
        micros = table[TIME]
        shown = micros.cast(self.time.type)
        return pa.table([shown, *table.columns[1:], micros], schema=self.schema)


def compile_join(relation: Derived, left: Describe, right: Describe) -> JoinPlan:
    """The plan of a relation that is made by a join, with what Spark says about both sides."""
    operator = relation.operator
    assert isinstance(operator, Join)
    own = (_key_types(operator, 0, left), _key_types(operator, 1, right))
    types = tuple(map(_common_type, operator.keys, *own))
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
    condition = operator.condition
    join = joins.Join(
        joins.Side(TIME, keys, ties, delivered[0]),
        joins.Side(TIME, keys, ties, delivered[1]),
        joins.Within(operator.within) if operator.within is not None else joins.Last(operator.last or 1),
        key_types=tuple(arrow_type(each) for each in types),
        how=operator.how,
        condition=joins.Condition(translate(condition.sql), condition.left, condition.right)
        if condition
        else None,
        time=TIME,
        key_names=tuple(key.left for key in operator.keys),
    )
    return JoinPlan(operator, join, sides, pa.field(operator.time, arrow_type(relation.time_type)))


def _key_types(operator: Join, side: int, describe: Describe) -> list[str]:
    """What the keys of a side are before they are made comparable."""
    return [type_ for type_, _ in describe([quoted((key.left, key.right)[side]) for key in operator.keys])]


def _common_type(key: JoinKey, ours: str, theirs: str) -> str:
    found = common_type(ours, theirs)
    if not found:
        raise WrongType(f"the keys {key.left} {ours} and {key.right} {theirs} cannot be compared; cast one")
    return found


def _stored_keys(operator: Join, side: int, own: list[str], types: tuple[str, ...]) -> dict[str, str]:
    """Columns that are sent and kept as keys, as they are: results need no second copy of them."""
    return {
        (key.left, key.right)[side]: KEY.format(place)
        for place, key in enumerate(operator.keys)
        if own[place] == types[place]
    }


def _read(operator: Join, side: int, keys: Mapping[str, str]) -> list[str]:
    """The columns of a side that its results or the condition need beside its keys."""
    delivered = [stored for stored, _ in (operator.left, operator.right)[side] if stored not in keys]
    condition = operator.condition
    asked = (condition.left, condition.right)[side] if condition else ()
    return list(dict.fromkeys([*delivered, *asked]))


def _columns(
    operator: Join, side: int, describe: Describe, key_types: tuple[str, ...], names: list[str]
) -> tuple[Column, ...]:
    found = describe([quoted(name) for name in names])
    keys = [(key.left, key.right)[side] for key in operator.keys]
    columns = [Column(TIME, TIME, pa.int64())]
    columns += [
        Column(KEY.format(place), f"cast({quoted(name)} AS {type_})", arrow_type(type_))
        for place, (name, type_) in enumerate(zip(keys, key_types, strict=True))
    ]
    columns += [
        Column(name, quoted(name), arrow_type(type_)) for name, (type_, _) in zip(names, found, strict=True)
    ]
    if operator.last is not None:
        content = ", ".join([TIME, *(quoted(name) for name in [*keys, *names])])
        digest = f"shiftrightunsigned(xxhash64({content}), 1)"
        # Negative on the left: at equal times all left rows go before all right ones.
        columns.append(Column(TIE, digest if side else f"-1L - {digest}", pa.int64()))
    return tuple(columns)
