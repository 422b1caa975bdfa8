"""Every type that a key can have, with values at its edges, and the one form by which keys are told apart.

A key may have several spellings, such as NaNs of other bits or two zeros; `canonical` maps all of them to one
value, by plain Python alone.
"""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from penstock.expressions.types import arrow_type

NANS = {
    32: [0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFFFFFFF],
    64: [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1, (0x7FF0 << 48) + 1, 2**64 - 1],
}
TEXTS = [
    "",
    "a",
    "A",
    "a ",
    " a",
    "\0",
    "a\0",
    "a\0b",
    "é",
    "e\u0301",
    "\u0301",
    "\ud7ff",
    "\ue000",
    "\ufeff",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "👩\u200d🚀",
    "ß",
    "ss",
    "x" * 33,
    "x" * 32,
    "NaN",
    "null",
]
BYTES = [b"", b"\0", b"\0\0", b"\xff", b"a", b"a\0", bytes(range(256)), b"\xed\xa0\x80"]
LAST_DAY, LAST_TIME = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, eq=False)
class KeyType:
    """One or several key columns: their SQL types, and rows of values, each a key or a spelling of one."""

    sql: tuple
    values: tuple

    @property
    def keys(self):
        """The canonical form of each row of values."""
        return canonical(self.values)

    @property
    def in_python(self):
        """The rows of values that Python can hold: its dates end with the year 9999."""
        return np.flatnonzero([all(map(_held, row)) for row in zip(*self.values, strict=True)])

    @property
    def names(self):
        return tuple(f"k{place}" for place in range(len(self.sql)))


def canonical(columns):
    """A tuple for each row: equal where Spark takes the keys for equal, whatever their bits."""
    return list(zip(*map(_plain, columns), strict=True))


def _held(value):
    try:
        value.as_py()
    except (OverflowError, ValueError):
        return False
    return True


def _plain(column):
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    values = column.to_pylist()
    if pa.types.is_floating(kind):
        return [each if each is None else "NaN" if each != each else each + 0.0 for each in values]  # noqa: PLR0124
    return values


def _integers(bits):
    last = 2 ** (bits - 1) - 1
    return [-last - 1, -last, -1, 0, 1, 2, last // 2, last - 1, last, None]


def _floats(bits):
    """NaNs of several bits, both zeros, and what has neighbours."""
    kind = np.dtype(f"f{bits // 8}")
    nans = np.array(NANS[bits], f"u{bits // 8}").view(kind)
    facts = np.finfo(kind)
    others = [0.0, -0.0, np.inf, -np.inf, 1.5, 1.0, facts.max, facts.smallest_subnormal, -1.5]
    return pa.concat_arrays(
        [pa.array(nans), pa.array(np.array(others, kind)), pa.nulls(1, arrow_type_of(bits))]
    )


def arrow_type_of(bits):
    return pa.float32() if bits == 32 else pa.float64()


def _decimals(precision, scale):
    unit = Decimal(1).scaleb(-scale)
    most = (Decimal(10) ** precision - 1).scaleb(-scale)
    return [Decimal(0).quantize(unit), unit, -unit, 2 * unit, most, -most, most - unit, None]


def _context():
    import decimal

    decimal.getcontext().prec = 60


_context()


def _one(sql, values):
    kind = arrow_type(sql)
    return KeyType((sql,), (values if isinstance(values, pa.Array) else pa.array(values, kind),))


def _days(*numbers):
    return pa.array([*numbers, None], pa.int32()).cast(pa.date32())


def _times(sql, *numbers):
    return pa.array([*numbers, None], pa.int64()).cast(arrow_type(sql))


def _micros(*given):
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- only distances count
    return [(dt.datetime(*each) - epoch) // dt.timedelta(microseconds=1) for each in given]  # noqa: DTZ001


TIMES = [
    *_micros((1, 1, 1), (9999, 12, 31, 23, 59, 59, 999_999), (1582, 10, 4), (1582, 10, 15), (2024, 2, 29)),
    0,
    -1,
    1,
    LAST_TIME - 1,
    -LAST_TIME + 1,
]
SINGLE = {
    "tinyint": _one("tinyint", _integers(8)),
    "smallint": _one("smallint", _integers(16)),
    "int": _one("int", _integers(32)),
    "bigint": _one("bigint", _integers(64)),
    "float": _one("float", _floats(32)),
    "double": _one("double", _floats(64)),
    "decimal(5,2)": _one("decimal(5,2)", _decimals(5, 2)),
    "decimal(9,0)": _one("decimal(9,0)", _decimals(9, 0)),
    "decimal(18,4)": _one("decimal(18,4)", _decimals(18, 4)),
    "decimal(19,0)": _one("decimal(19,0)", _decimals(19, 0)),
    "decimal(38,10)": _one("decimal(38,10)", _decimals(38, 10)),
    "decimal(38,38)": _one("decimal(38,38)", _decimals(38, 38)),
    "string": _one("string", [*TEXTS, None]),
    "binary": _one("binary", [*BYTES, None]),
    "boolean": _one("boolean", [True, False, None]),
    "date": _one("date", _days(-719_162, 2_932_896, 0, -1, 1, -141_427, LAST_DAY, -LAST_DAY)),
    "timestamp": _one("timestamp", _times("timestamp", *TIMES)),
    "timestamp_ntz": _one("timestamp_ntz", _times("timestamp_ntz", *TIMES)),
}


def _several(*names):
    """All rows of several types at once: each value meets several of the others, nulls too."""
    rows = 24
    columns = []
    for place, name in enumerate(names):
        (values,) = SINGLE[name].values
        # Steps that share no factor with the lengths, so that pairs differ.
        columns.append(values.take(pa.array([(row // (place + 1)) % len(values) for row in range(rows)])))
    return KeyType(tuple(each for name in names for each in SINGLE[name].sql), tuple(columns))


def packed(rng, *, constant):
    """A column for each type, of which one varies in each row; and the rows in which each of them does.

    The others are null, or constant and not null.
    """
    columns, places, rows = [[] for _ in SINGLE], [], 0
    for place, kind in enumerate(SINGLE.values()):
        (values,) = kind.values
        # Spellings of one key come first, and some of them are always chosen.
        chosen = np.unique(
            np.concatenate([rng.integers(0, min(7, len(values)), 3), rng.integers(0, len(values), 2)])
        )
        for other, column in enumerate(columns):
            (own,) = list(SINGLE.values())[other].values
            rest = (
                own.take(pa.array([7 % (len(own) - 1)] * len(chosen)))
                if constant
                else pa.nulls(len(chosen), own.type)
            )
            column.append(values.take(pa.array(chosen)) if other == place else rest)
        places.append(np.arange(rows, rows + len(chosen)))
        rows += len(chosen)
    whole = tuple(pa.concat_arrays(column) for column in columns)
    return KeyType(tuple(sql for kind in SINGLE.values() for sql in kind.sql), whole), places


KEY_TYPES = {
    **SINGLE,
    "bigint, string": _several("bigint", "string"),
    "double, decimal(18,4), boolean": _several("double", "decimal(18,4)", "boolean"),
    "tinyint, date, timestamp, binary, float": _several("tinyint", "date", "timestamp", "binary", "float"),
}
"""Types that every operator takes."""

REFUSED = {
    "array": "array<int>",
    "struct": "struct<a:int,b:double>",
    "map": "map<string,int>",
    "array of structs": "array<struct<a:string>>",
}
"""Types that no operator over keys takes."""

COMPARED = {
    "tinyint with bigint": (SINGLE["tinyint"], SINGLE["bigint"]),
    "smallint with int": (SINGLE["smallint"], SINGLE["int"]),
    "int with tinyint": (SINGLE["int"], SINGLE["tinyint"]),
    "float with double": (SINGLE["float"], SINGLE["double"]),
    "double with float": (SINGLE["double"], SINGLE["float"]),
}
"""Keys of joins that are compared in a common type."""
