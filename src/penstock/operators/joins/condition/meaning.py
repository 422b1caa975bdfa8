"""The condition of a join as a channel evaluates it: certified to mean what it means in Spark, or refused."""

from penstock.errors import BadJoin
from penstock.expressions.pairs import LEFT, RIGHT, PairCondition
from penstock.functions import DEFAULT, SqlSetting, Types, Uncertified, translated
from penstock.operators.joins.spec import Condition

__all__ = ["channel_condition", "check_known"]


def channel_condition(
    condition: PairCondition, left: Types, right: Types, setting: SqlSetting = DEFAULT
) -> Condition:
    """The condition in DuckDB's SQL over the rows ``l`` and ``r``; BadJoin if only Spark can evaluate it.

    >>> from penstock.expressions.pairs import pair_condition
    >>> from penstock.expressions.schema import Schema
    >>> calls = Schema.parse("x double")
    >>> channel_condition(pair_condition("l.x < r.x", calls, calls), {"x": "double"}, {"x": "double"}).sql
    '("l"."x" < "r"."x")'
    """
    pair = {f"{LEFT}.{name}": left[name] for name in condition.left}
    pair |= {f"{RIGHT}.{name}": right[name] for name in condition.right}
    try:
        found = translated(condition.sql, pair, setting)
    except Uncertified as missing:
        raise BadJoin(
            f"the condition {condition} cannot be evaluated where pairs meet: {missing}; make what it needs "
            "a column with select() before the join, or filter the pairs of an inner join with where()"
        ) from missing
    if found.type != "boolean":
        raise BadJoin(f"the condition {condition} is {found.type}; compare it with something")
    alone = [_alone(condition, side, types, setting) for side, types in ((LEFT, left), (RIGHT, right))]
    return Condition(found.sql, condition.left, condition.right, found.raises, *alone)


def _alone(condition: PairCondition, side: str, types: Types, setting: SqlSetting) -> tuple[str, ...]:
    """The parts that read one side alone and raise for no value, over the columns of that side."""
    parts = (translated(sql, types, setting) for sql in condition.of_side(side))
    return tuple(each.sql for each in parts if each.type == "boolean" and not each.raises)


def check_known(condition: PairCondition, left: Types, right: Types, setting: SqlSetting) -> None:
    """Refuse the condition as soon as the types of all its columns are known."""
    kinds = [left[name] for name in condition.left] + [right[name] for name in condition.right]
    if None not in kinds:
        channel_condition(condition, left, right, setting)
