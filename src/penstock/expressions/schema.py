"""Columns and schemas: names resolve without regard to case, as in Spark, and keep their spelling."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.columns import TIME
from penstock.errors import BadSchema, UnknownColumn
from penstock.expressions import types

__all__ = ["RESERVED_PREFIX", "TIME", "Column", "Schema", "quoted", "schema_of"]

RESERVED_PREFIX: Final = "_ps_"
# In every frame: the event time in whole microseconds since 1970.


@dataclass(frozen=True, slots=True)
class Column:
    """One named column; a type of None is unknown until Spark has seen the query."""

    name: str
    type: str | None
    nullable: bool = True

    def ddl(self) -> str:
        """The column in the text of a Spark schema."""
        if self.type is None:
            raise BadSchema(f"the type of column {self.name!r} is not known yet; cast its expression")
        return f"{quoted(self.name)} {self.type}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order, no two with the same name.

    >>> schema = Schema.parse("time timestamp not null, vehicle string, speed real")
    >>> schema.column("SPEED")
    Column(name='speed', type='float', nullable=True)
    >>> schema.ddl()
    '`time` timestamp NOT NULL, `vehicle` string, `speed` float'
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise BadSchema("a schema needs at least one column, such as 'time timestamp, speed double'")
        seen: set[str] = set()
        for name in self.names:
            _check_name(name, seen)
            seen.add(name.lower())

    @classmethod
    def parse(cls, text: str) -> "Schema":
        """Read a schema written as in CREATE TABLE."""
        if not text.strip():
            raise BadSchema("the schema is empty; write one such as 'time timestamp, speed double'")
        return cls(tuple(_column(each) for each in _definitions(text)))

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> "Schema":
        """The schema of an Arrow schema."""
        return cls(tuple(Column(each.name, types.from_arrow(each.type), each.nullable) for each in schema))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in order."""
        return tuple(each.name for each in self.columns)

    def column(self, name: str) -> Column:
        """The column with that name; the cost is linear in the number of columns."""
        wanted = name.lower()
        for each in self.columns:
            if each.name.lower() == wanted:
                return each
        raise UnknownColumn.among(name, self.names)

    def __contains__(self, name: str) -> bool:
        return name.lower() in {each.lower() for each in self.names}

    def ddl(self) -> str:
        """The schema as text that Spark reads."""
        return ", ".join(each.ddl() for each in self.columns)

    def arrow(self) -> pa.Schema:
        """The schema as an Arrow schema."""
        return pa.schema([_arrow_field(each) for each in self.columns])


def schema_of(value: str | pa.Schema | Schema) -> Schema:
    """A schema from any form that a user may give."""
    if isinstance(value, Schema):
        return value
    if isinstance(value, pa.Schema):
        return Schema.from_arrow(value)
    if isinstance(value, str):
        return Schema.parse(value)
    raise BadSchema(f"schema is {type(value).__name__}; give text, a pyarrow.Schema or a Schema")


def quoted(name: str) -> str:
    """A name in backquotes, so that no keyword or special character can change its meaning."""
    return f"`{name.replace('`', '``')}`"


def _definitions(text: str) -> Iterable[exp.ColumnDef]:
    try:
        statement = sqlglot.parse_one(f"CREATE TABLE t ({types.quoted_fields(text)}\n)", dialect="spark")
    except SqlglotError as error:
        raise BadSchema(
            f"cannot read the schema {text!r}; write 'name type, name type not null, …'"
        ) from error
    table = statement.this if isinstance(statement, exp.Create) else None
    if not isinstance(table, exp.Schema) or [
        key for key, arg in statement.args.items() if arg and key not in {"this", "kind"}
    ]:
        raise BadSchema(f"cannot read the schema {text!r}; write 'name type, name type not null, …'")
    return table.expressions


def _column(node: exp.Expr) -> Column:
    if not isinstance(node, exp.ColumnDef) or not isinstance(node.kind, exp.DataType):
        raise BadSchema(f"cannot read {node.sql('spark')!r} as a column; write its name and its type")
    nullable = True
    for constraint in node.constraints:
        if isinstance(constraint.kind, exp.NotNullColumnConstraint):
            nullable = bool(constraint.kind.args.get("allow_null"))
        elif not isinstance(constraint.kind, exp.CommentColumnConstraint):
            raise BadSchema(f"column {node.name!r}: only NOT NULL may follow the type")
    return Column(node.name, types.of_node(node.kind), nullable)


def _check_name(name: str, seen: set[str]) -> None:
    if not name:
        raise BadSchema("a column has an empty name; give every column a name")
    if name.lower().startswith(RESERVED_PREFIX):
        raise BadSchema(f"column {name!r}: names starting with {RESERVED_PREFIX!r} are reserved; rename it")
    if name.lower() in seen:
        raise BadSchema(f"two columns have the name {name!r}; case does not distinguish names, rename one")


def _arrow_field(column: Column) -> pa.Field:
    if column.type is None:
        raise BadSchema(f"the type of column {column.name!r} is not known yet; cast its expression")
    return pa.field(column.name, types.arrow_type(column.type), column.nullable)
