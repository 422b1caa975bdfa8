"""Aggregate calls in the query language, turned into the aggregates that the methods make."""

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from penstock.errors import BadAggregate, BadExpression, BadName
from penstock.expressions.functions import AGGREGATES
from penstock.expressions.parsing import Tree, call_name, render
from penstock.query import aggregates as native
from penstock.query.aggregate_call import Aggregate
from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate

__all__ = ["Definition", "aggregate_of", "check_definitions", "is_aggregate"]

Definition = SqlAggregate | type[ArrowAggregate]
_ONE_ARGUMENT: Final[dict[str, Callable[[str], Aggregate]]] = {
    "sum": native.sum,
    "avg": native.avg,
    "mean": native.avg,
    "min": native.min,
    "max": native.max,
    "var": native.var,
    "variance": native.var,
    "var_samp": native.var,
    "stddev": native.stddev,
    "stddev_samp": native.stddev,
    "std": native.stddev,
    "first": native.first,
    "first_value": native.first,
    "last": native.last,
    "last_value": native.last,
    "approx_count_distinct": native.count_distinct,
}
_WITH_NUMBERS: Final[dict[str, tuple[Callable[..., Aggregate], int, int]]] = {
    "count_distinct": (native.count_distinct, 0, 1),
    "quantile": (native.quantile, 1, 2),
    "percentile_approx": (native.quantile, 1, 1),
    "approx_percentile": (native.quantile, 1, 1),
    "top_k": (native.top_k, 0, 2),
}
_MODIFIERS: Final = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Window)


def check_definitions(definitions: Mapping[str, object]) -> None:
    """Raise for a definition that is none, or that takes the name of a known aggregate."""
    for name, each in definitions.items():
        if name.lower() in AGGREGATES:
            raise BadName(f"{name}() is an aggregate already; define yours under another name")
        if not isinstance(each, SqlAggregate) and not _is_arrow_aggregate(each):
            raise BadAggregate(
                f"{name}={each!r} defines no aggregate and is no relation; give a sql_aggregate(), an "
                "ArrowAggregate class or a relation"
            )


def is_aggregate(node: Tree, definitions: Mapping[str, Definition]) -> bool:
    """Whether the node is the call of an aggregate, Spark's or a user's."""
    name = call_name(node)
    return name is not None and (name in AGGREGATES or name in definitions)


def aggregate_of(call: Tree, definitions: Mapping[str, Definition]) -> Aggregate | ArrowAggregate:
    """The aggregate that a call stands for."""
    if isinstance(call.parent, _MODIFIERS):
        raise BadExpression(
            f"{render(call.parent)}: FILTER, OVER and the treatment of nulls are not supported; nulls are "
            "always skipped, and a CASE inside the aggregate chooses the tuples"
        )
    name, arguments = call_name(call) or "", call.expressions
    if name in definitions:
        return definitions[name](*map(render, arguments))
    if name == "count":
        return _count(arguments)
    if name in _ONE_ARGUMENT:
        _check_count(name, arguments, 1, 1)
        return _ONE_ARGUMENT[name](render(arguments[0]))
    if name in _WITH_NUMBERS:
        function, least, most = _WITH_NUMBERS[name]
        _check_count(name, arguments, 1 + least, 1 + most)
        return function(render(arguments[0]), *(_number(name, each) for each in arguments[1:]))
    known = sorted({"count", *_ONE_ARGUMENT, *_WITH_NUMBERS, *definitions})
    raise BadAggregate(f"{name}() is not supported; the aggregates are {', '.join(known)}")


def _is_arrow_aggregate(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ArrowAggregate)


def _count(arguments: list[Tree]) -> Aggregate:
    if not arguments or isinstance(arguments[0], exp.Star):
        return native.count()
    if isinstance(arguments[0], exp.Distinct):
        _check_count("count", arguments[0].expressions, 1, 1)
        return native.count_distinct(render(arguments[0].expressions[0]))
    _check_count("count", arguments, 1, 1)
    return native.count(render(arguments[0]))


def _check_count(name: str, arguments: list[Tree], least: int, most: int) -> None:
    if any(isinstance(each, exp.Distinct) for each in arguments):
        raise BadExpression(f"DISTINCT is supported in count() only, not in {name}()")
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise BadExpression(f"{name}() got {len(arguments)} arguments; it takes {wanted}")


def _number(name: str, node: Tree) -> float:
    if not isinstance(node, exp.Literal) or node.is_string:
        raise BadExpression(f"{name}() got {render(node)} after its first argument; write a number")
    return int(node.name) if node.name.isdigit() else float(node.name)
