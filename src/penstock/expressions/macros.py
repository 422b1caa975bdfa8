"""Penstock's own scalar functions, each expanded to Spark SQL before anything runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from penstock.errors import BadExpression
from penstock.expressions.parsing import Tree, call_name, shared_scalar

__all__ = ["MACROS", "Macro", "expand"]

# Metres in one degree of latitude: the earth's circumference, 40,075 km, over 360.
_METRES_PER_DEGREE: Final = 111_320


@dataclass(frozen=True, slots=True)
class Macro:
    """A function defined by its parameters and its Spark SQL."""

    parameters: tuple[str, ...]
    body: str
    type: str
    check: Callable[[tuple[Tree, ...]], None]


def expand(node: Tree) -> Tree:
    """A copy of the tree with every macro call, nested ones too, replaced by its Spark SQL."""
    return node.transform(_expand_call)


def _expand_call(node: Tree) -> Tree:
    name = call_name(node)
    macro = MACROS.get(name) if name else None
    if macro is None:
        return node
    arguments = tuple(expand(each) for each in node.expressions)
    if len(arguments) != len(macro.parameters):
        wanted = f"{name}({', '.join(macro.parameters)})"
        raise BadExpression(f"{name}() got {len(arguments)} arguments; call it as {wanted}")
    macro.check(arguments)
    values = dict(zip(macro.parameters, arguments, strict=True))
    return shared_scalar(macro.body).transform(lambda each: _argument(each, values))


def _argument(node: Tree, values: dict[str, Tree]) -> Tree:
    if isinstance(node, exp.Column) and node.name in values:
        return exp.paren(values[node.name].copy())
    return node


def _positive_edge(arguments: tuple[Tree, ...]) -> None:
    edge = arguments[2]
    sign = -1 if isinstance(edge, exp.Neg) else 1
    number = edge.this if isinstance(edge, exp.Neg) else edge
    if isinstance(number, exp.Literal) and (number.is_string or sign * float(number.name) <= 0):
        raise BadExpression(f"grid() needs an edge in metres above 0, got {edge.sql('spark')}")


_ROW: Final = f"floor(cast(lat as double) * {_METRES_PER_DEGREE} / metres)"
_AS_TEXT: Final = "cast(cast({} as bigint) as string)"
_SHRINK: Final = f"cos(radians({_ROW} * metres / {_METRES_PER_DEGREE}))"
_COLUMN: Final = f"floor(cast(lon as double) * {_METRES_PER_DEGREE} * {_SHRINK} / metres)"

MACROS: Final = {
    "grid": Macro(
        parameters=("lon", "lat", "metres"),
        body=f"{_AS_TEXT.format(_ROW)} || ':' || {_AS_TEXT.format(_COLUMN)}",
        type="string",
        check=_positive_edge,
    ),
}
