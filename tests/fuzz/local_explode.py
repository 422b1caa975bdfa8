"""Rows of arrays and fields of structs on DuckDB, which the product leaves to Spark.

First rows of windows and GROUPING SETS are made of them, so that what is around them runs without Spark too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from penstock.expressions.parsing import call_name, parse_scalar
from penstock.expressions.types import fields_of
from penstock.functions import Uncertified, duck_name, passed_or_translated
from penstock.functions.translation import Passed
from penstock.operators import steps
from penstock.operators.steps import Explode

__all__ = ["exploding"]


@contextmanager
def exploding() -> Iterator[None]:
    """Let what is compiled meanwhile take both on Arrow."""
    before = Explode.in_channel
    Explode.in_channel = _in_channel
    steps.passed_or_translated = _passed_or_translated
    try:
        yield
    finally:
        Explode.in_channel = before
        steps.passed_or_translated = passed_or_translated


def _in_channel(
    self: Explode, source: str, given: Any, _setting: Any, *carried: str
) -> tuple[str, dict[str, Any]]:
    """A tuple for each element."""
    array, kind = _array(parse_scalar(self.expression.sql), given)
    if self.outer:
        array = f"CASE WHEN len({array}) > 0 THEN {array} ELSE [NULL] END"
    columns = [*map(duck_name, self.kept), f"unnest({array}) AS {duck_name(self.name)}", *carried]
    types = {name: given[name] for name in self.kept}
    return f"(SELECT {', '.join(columns)} FROM {source})", types | {self.name: kind}


def _array(node: exp.Expr, given: Any) -> tuple[str, str]:
    """An array in DuckDB's SQL, and the type of its elements: a column, or numbers."""
    found = _column(node, given)
    if found is not None and (found.type or "").startswith("array<"):
        return found.sql, found.type.removeprefix("array<").removesuffix(">")
    numbers = [each.this if isinstance(each, exp.Cast) else each for each in node.expressions]
    if call_name(node) == "array" and numbers and all(each.is_int for each in numbers):
        return f"[{', '.join(f'{each.name}::BIGINT' for each in numbers)}]", "bigint"
    raise Uncertified(f"{node.sql('spark')} is no column and no list of numbers")


def _passed_or_translated(sql: str, columns: Any, *setting: Any) -> Any:
    """A field of a struct by itself passes too."""
    node = parse_scalar(sql)
    if isinstance(node, exp.Column) and len(node.parts) == 2:
        struct, name = node.parts[0], node.parts[1].name
        found = _column(exp.Column(this=struct.copy()), columns)
        fields = (
            fields_of(found.type) if found is not None and (found.type or "").startswith("struct<") else {}
        )
        for field, kind in fields.items():
            if field.lower() == name.lower():
                return Passed(f"{found.sql}.{duck_name(field)}", kind)
    return passed_or_translated(sql, columns, *setting)


def _column(node: exp.Expr, given: Any) -> Passed | None:
    """A column by itself."""
    if not isinstance(node, exp.Column) or len(node.parts) != 1:
        return None
    names = [each for each in given if each.lower() == node.name.lower()]
    return Passed(duck_name(names[0]), given[names[0]]) if names else None
