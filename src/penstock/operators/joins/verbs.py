"""The verbs join and cross, which check the arguments against both sides."""

from collections.abc import Iterable, Mapping
from typing import Final, get_args

from penstock.errors import BadJoin, BadName, QueryError, WrongType
from penstock.expressions import types
from penstock.expressions.durations import microseconds
from penstock.expressions.pairs import pair_condition
from penstock.expressions.schema import Schema
from penstock.functions import DEFAULT
from penstock.operators.joins.node import How, Join, JoinKey, common_type
from penstock.operators.operator import D, Derivable, Duration, InputRelation, R

__all__ = ["JoinVerbs", "On", "join_of"]

On = str | Iterable[str] | Mapping[str, str]
Suffixes = tuple[str, str]
_MOST_ROWS: Final = 1 << 31


class JoinVerbs(Derivable[R, D]):
    """The verbs of a relation that pair its tuples with those of another."""

    def join(  # noqa: PLR0913 -- each is one documented option
        self,
        other: R,
        on: On,
        *,
        within: Duration | None = None,
        last: int | None = None,
        how: str = "inner",
        condition: str | None = None,
        suffixes: Suffixes | None = None,
    ) -> D:
        """Pair tuples of equal keys at most ``within`` apart in time, or each with the ``last`` before it.

        ``on`` names the keys: one, several, or a mapping of left to right names. ``condition`` is over the
        pair, ``l`` and ``r``. ``how`` is inner, left, right or full; tuples without a partner are delivered
        when they can match no more. A result has the time of the earlier tuple of its pair (with ``last`` of
        the later one), the keys, and the columns of both sides; shared names get ``suffixes``.

        >>> from penstock.query import stream
        >>> calls = stream("calls", "time timestamp, caller string, x double", time="time")
        >>> calls.join(calls, "caller", within="1 minute", condition="l.x < r.x", suffixes=("_1", "_2"))
        calls.join(calls; caller; within 1 minute; `l`.`x` < `r`.`x`)
        """
        if not (bool(on) if isinstance(on, str) else bool(list(on))):
            raise QueryError("join() needs a key; for a condition alone use cross()")
        made = join_of(
            self, other, on, within=within, last=last, how=how, condition=condition, suffixes=suffixes
        )
        return self.derive(made, other)

    def cross(  # noqa: PLR0913 -- each is one documented option
        self,
        other: R,
        condition: str | None = None,
        *,
        within: Duration | None = None,
        last: int | None = None,
        how: str = "inner",
        suffixes: Suffixes | None = None,
    ) -> D:
        """Pair tuples for which a condition over ``l`` and ``r`` is true; otherwise like ``join``."""
        made = join_of(
            self, other, (), within=within, last=last, how=how, condition=condition, suffixes=suffixes
        )
        return self.derive(made, other)


def join_of(  # noqa: PLR0913 -- each is one documented option
    left: InputRelation,
    right: InputRelation,
    on: On,
    *,
    within: Duration | None,
    last: int | None,
    how: str,
    condition: str | None,
    suffixes: Suffixes | None,
) -> Join:
    """The join, after all names and types are checked."""
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
    made = Join(
        keys=keys,
        within=None if within is None else microseconds(within),
        last=last,
        how=how,  # type: ignore[arg-type]
        condition=None if condition is None else pair_condition(condition, left.schema, right.schema),
        left=given[0],
        right=given[1],
        time=left.time,
    )
    made.check_setting((left, right), DEFAULT)
    return made


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


def _given(
    left: InputRelation, right: InputRelation, keys: tuple[JoinKey, ...], suffixes: Suffixes | None
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """The columns that each side adds to the time and the keys of the result."""
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
