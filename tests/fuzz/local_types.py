"""Types from the certified translation, in place of Spark's analyzer."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from sqlglot import exp

from penstock.compile import compile_tail
from penstock.expressions.inference import type_of
from penstock.expressions.parsing import parse_scalar
from penstock.expressions.schema import Schema
from penstock.expressions.types import arrow_type, from_arrow
from penstock.functions import Uncertified, passed_or_translated
from penstock.operators.exchange import TIME

__all__ = ["NeedsSpark", "Typed"]


class NeedsSpark(Exception):  # noqa: N818 -- it is an answer, not a fault
    """Only Spark can evaluate the query; the message says what is missing."""


@dataclass(frozen=True)
class Typed:
    """Columns and their types, in place of an empty frame by which Spark's analyzer tells types."""

    columns: tuple[tuple[str, str], ...]

    @classmethod
    def after(cls, schema: pa.Schema, steps: tuple[Any, ...]) -> "Typed":
        """The columns after steps."""
        tail = _tail(steps, pa.schema([each.with_nullable(True) for each in schema]))
        made = schema if tail is None else tail.schema
        return cls(tuple((each.name, from_arrow(each.type)) for each in made))

    @property
    def schema(self) -> Any:
        return from_arrow_schema(pa.schema([(name, arrow_type(kind)) for name, kind in self.columns]))

    def select(self, *texts: str) -> "Typed":
        return self.selectExpr(*texts)

    def selectExpr(self, *texts: str) -> "Typed":  # noqa: N802 - Spark's name
        return Typed(tuple((_name(text), _type(text, self.columns)) for text in texts))


@lru_cache(maxsize=1024)
def _name(text: str) -> str:
    node = parse_scalar(text)
    return node.name if isinstance(node, exp.Column) else text


@lru_cache(maxsize=1024)
def _type(text: str, columns: tuple[tuple[str, str], ...]) -> str:
    types = dict(columns)
    try:
        found = passed_or_translated(text, types).type
    except Uncertified as missing:
        # A digest is computed apart; the translation of anything else is asked for once more.
        found = type_of(parse_scalar(text), Schema.from_arrow(_visible(types)))
        if found is None:
            raise NeedsSpark(str(missing)) from missing
    assert found is not None, text
    return found


def _visible(types: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, arrow_type(kind)) for name, kind in types.items() if name != TIME])


@lru_cache(maxsize=64)
def _tail(steps: tuple[Any, ...], schema: pa.Schema) -> Any:
    """Steps as tasks evaluate them."""
    try:
        return compile_tail(steps, schema)
    except Uncertified as missing:
        raise NeedsSpark(str(missing)) from missing
