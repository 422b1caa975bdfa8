"""SQL types as normalised text, such as ``bigint`` or ``array<struct<a:int>>``, and their Arrow types."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import BadSchema

__all__ = [
    "arrow_type",
    "fields_of",
    "from_arrow",
    "is_atomic",
    "is_floating",
    "is_integer",
    "is_numeric",
    "is_orderable",
    "is_timestamp",
    "normalise",
    "of_node",
    "quoted_fields",
    "struct_of",
]

_KINDS: Final = exp.DataType.Type
_NAMES: Final = {
    _KINDS.BOOLEAN: "boolean",
    _KINDS.TINYINT: "tinyint",
    _KINDS.SMALLINT: "smallint",
    _KINDS.INT: "int",
    _KINDS.BIGINT: "bigint",
    _KINDS.FLOAT: "float",
    _KINDS.DOUBLE: "double",
    _KINDS.TEXT: "string",
    _KINDS.VARCHAR: "string",
    _KINDS.CHAR: "string",
    _KINDS.BINARY: "binary",
    _KINDS.DATE: "date",
    _KINDS.TIMESTAMP: "timestamp",
    _KINDS.TIMESTAMPTZ: "timestamp",
    _KINDS.TIMESTAMPLTZ: "timestamp",
    _KINDS.TIMESTAMPNTZ: "timestamp_ntz",
}
_ARROW: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_MAX_PRECISION: Final = 38
# sqlglot reads only the first type it finds, so this pattern rules out anything after it.
_ONE_TYPE: Final = re.compile(
    r"\s*\w+\s*(\(\s*\d+\s*(,\s*\d+\s*)?\))?\s*|\s*(array|map|struct)\s*<.*>\s*", re.IGNORECASE | re.DOTALL
)


@lru_cache(maxsize=1024)
def normalise(text: str) -> str:
    """The canonical spelling of a type.

    >>> normalise("LONG"), normalise("numeric(10, 2)"), normalise("ARRAY<STRUCT<a INTEGER>>")
    ('bigint', 'decimal(10,2)', 'array<struct<a:int>>')
    """
    return of_node(_parse(text))


def of_node(node: exp.DataType) -> str:
    """The normalised text of a parsed type."""
    if name := _NAMES.get(node.this):
        return name
    if node.this == _KINDS.DECIMAL:
        return _decimal(node)
    if node.this == _KINDS.ARRAY and len(node.expressions) == 1:
        return f"array<{of_node(node.expressions[0])}>"
    if node.this == _KINDS.MAP and len(node.expressions) == 2:
        return f"map<{of_node(node.expressions[0])},{of_node(node.expressions[1])}>"
    if node.this == _KINDS.STRUCT and node.expressions:
        return struct_of((each.name, of_node(each.kind)) for each in node.expressions)
    raise BadSchema(f"no type {node.sql('spark').lower()!r}; {_known()}")


def struct_of(fields: Iterable[tuple[str, str]]) -> str:
    """The struct of these names and types; a name that is none in SQL is quoted.

    >>> struct_of([("a", "int"), ("b c", "string")])
    'struct<a:int,`b c`:string>'
    """
    return f"struct<{','.join(f'{_field_name(name)}:{kind}' for name, kind in fields)}>"


@lru_cache(maxsize=1024)
def arrow_type(sql_type: str) -> pa.DataType:
    """The Arrow type for values of a SQL type.

    >>> arrow_type("timestamp")
    TimestampType(timestamp[us, tz=UTC])
    """
    return _arrow(_parse(sql_type))


def fields_of(struct: str) -> dict[str, str]:
    """The types of the fields of a struct, by their names.

    >>> fields_of("struct<a:int,b:array<string>>")
    {'a': 'int', 'b': 'array<string>'}
    """
    return {each.name: of_node(each.kind) for each in _parse(struct).expressions}


def from_arrow(kind: pa.DataType) -> str:
    """The SQL type for values of an Arrow type.

    >>> from_arrow(pa.large_string()), from_arrow(pa.list_(pa.int32()))
    ('string', 'array<int>')
    """
    if pa.types.is_dictionary(kind):
        return from_arrow(kind.value_type)
    if pa.types.is_decimal(kind):
        return normalise(f"decimal({kind.precision},{kind.scale})")
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_nested(kind):
        return _nested_from_arrow(kind)
    for fits, name in _FROM_ARROW:
        if fits(kind):
            return name
    raise BadSchema(f"Arrow type {kind} has no SQL type; {_known()}")


def is_atomic(sql_type: str) -> bool:
    """Whether the type is not an array, a map or a struct."""
    return "<" not in sql_type


def is_integer(sql_type: str) -> bool:
    """Whether the type holds whole numbers only."""
    return sql_type in _INTEGERS


def is_floating(sql_type: str) -> bool:
    """Whether the type holds binary fractions."""
    return sql_type in ("float", "double")


def is_numeric(sql_type: str) -> bool:
    """Whether the type holds numbers."""
    return is_integer(sql_type) or is_floating(sql_type) or sql_type.startswith("decimal")


def is_orderable(sql_type: str) -> bool:
    """Whether min() and max() make sense: every atomic type."""
    return is_atomic(sql_type)


def is_timestamp(sql_type: str) -> bool:
    """Whether the type can be a stream's event time."""
    return sql_type in ("timestamp", "timestamp_ntz")


_FROM_ARROW: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_date, "date"),
)


def _parse(text: str) -> exp.DataType:
    try:
        if not _ONE_TYPE.fullmatch(text):
            raise BadSchema(f"no type {text!r}; {_known()}")
        return exp.DataType.build(quoted_fields(text), dialect="spark")
    except SqlglotError as error:
        raise BadSchema(f"no type {text!r}; {_known()}") from error


def _arrow(node: exp.DataType) -> pa.DataType:
    name = of_node(node)
    if name in _ARROW:
        return _ARROW[name]
    if node.this == _KINDS.DECIMAL:
        return pa.decimal128(*_precision_and_scale(node))
    if node.this == _KINDS.ARRAY:
        return pa.list_(_arrow(node.expressions[0]))
    if node.this == _KINDS.MAP:
        return pa.map_(*map(_arrow, node.expressions))
    return pa.struct([(each.name, _arrow(each.kind)) for each in node.expressions])


def _nested_from_arrow(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{from_arrow(kind.key_type)},{from_arrow(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return struct_of((each.name, from_arrow(each.type)) for each in kind)
    if hasattr(kind, "value_type"):
        return f"array<{from_arrow(kind.value_type)}>"
    raise BadSchema(f"Arrow type {kind} has no SQL type; {_known()}")


def _decimal(node: exp.DataType) -> str:
    precision, scale = _precision_and_scale(node)
    if not (1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision):
        raise BadSchema(
            f"no type decimal({precision},{scale}); precision is 1 to 38, scale 0 to the precision"
        )
    return f"decimal({precision},{scale})"


def _precision_and_scale(node: exp.DataType) -> tuple[int, int]:
    numbers = [int(each.name) for each in node.expressions]
    return (numbers[0] if numbers else 10, numbers[1] if len(numbers) > 1 else 0)


def _field_name(name: str) -> str:
    return name if name.isidentifier() else _quoted(name)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# What stands between names and types; what is in back quotes is none of it.
_BETWEEN: Final = re.compile(r"([<>,()])(?=(?:[^`]*`[^`]*`)*[^`]*$)")
_FIELD: Final = re.compile(r"\s*([^`:']+?)\s*:(.*)|\s*([^`\s]+)\s(.*)", re.DOTALL)


def quoted_fields(text: str) -> str:
    """The type, or the schema, with every name of a field in back quotes.

    Without them sqlglot ends at a name that is a word of SQL, and drops it with all fields behind it. Spark
    writes none, also where a name has spaces.

    >>> quoted_fields("struct<a:int,order:array<int>,odd name:decimal(3,1)>")
    'struct<`a`:int,`order`:array<int>,`odd name`:decimal(3,1)>'
    """
    found: list[str] = []
    around: list[bool] = []
    for piece in _BETWEEN.split(text):
        named = _FIELD.fullmatch(piece) if around and around[-1] and found[-1] in {"<", ","} else None
        if piece in {"<", "("}:
            around.append(piece == "<" and found[-1].rstrip().lower().endswith("struct"))
        elif piece in {">", ")"} and around:
            around.pop()
        found.append(f"{_quoted(named[1] or named[3])}:{named[2] or named[4]}" if named else piece)
    return "".join(found)


def _known() -> str:
    return f"the types are {', '.join(sorted(set(_NAMES.values())))}, decimal(p,s), array<>, map<>, struct<>"
