"""Types, values of few kinds so that keys meet, and tables with ties, nulls, duplicates and disorder."""

import datetime as dt
import math
import struct
from decimal import Decimal
from random import Random

from fuzz.program import SECOND, Column, Table

UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
START = dt.datetime(2024, 2, 29, 23, 59, tzinfo=UTC)
MICRO = dt.timedelta(microseconds=1)


def nan_of(bits: int) -> float:
    """A NaN with these bits; Python and Arrow keep them."""
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def day(year, month, date):
    return dt.date(year, month, date)


NEGATIVE_NAN = nan_of(0xFFF8000000000000)
OTHER_NAN = nan_of(0x7FF8000000000001)

VALUES = {
    "tinyint": [-128, -100, -1, 0, 1, 2, 3, 100, 127],
    "smallint": [-(2**15), -20000, -1, 0, 1, 2, 3, 300, 20000, 2**15 - 1],
    "int": [-(2**31), -7, -1, 0, 1, 2, 3, 5, 1000, 2**31 - 1],
    "bigint": [-(2**63), -(2**31) - 1, -1, 0, 1, 2, 3, 2**40, 2**53 + 1, 2**63 - 1],
    "float": [math.nan, NEGATIVE_NAN, -0.0, 0.0, 0.5, 1.0, -2.5, 3.25, math.inf, -math.inf],
    "double": [
        math.nan,
        NEGATIVE_NAN,
        OTHER_NAN,
        -0.0,
        0.0,
        0.125,
        0.5,
        1.0,
        -1.5,
        3.25,
        math.inf,
        -math.inf,
    ],
    "decimal(9,2)": [*map(Decimal, ("-3.25", "-0.01", "0.00", "0.50", "1.10", "1.00", "9999999.99"))],
    "decimal(20,4)": [*map(Decimal, ("-3.2500", "0.0000", "0.5000", "1.1000", "9999999999999999.9999"))],
    "string": [
        *(
            "",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "b",
            "B",
            "é",
            "e\u0301",
            "日本",
            "😀",
            "\uffff",
            "it's",
            '"q"',
            " ",
            "\n",
        ),
    ],
    "binary": [b"", b"\0", b"a", b"a\0", b"ab", b"\xff\xfe", bytes(9)],
    "boolean": [True, False],
    "date": [
        day(1, 1, 1),
        day(1969, 12, 31),
        day(1970, 1, 1),
        day(2024, 2, 29),
        day(2024, 3, 1),
        day(9999, 12, 31),
    ],
    "timestamp": [
        dt.datetime(1900, 1, 1, 0, 0, 0, 1, UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        EPOCH,
        dt.datetime(2024, 2, 29, 12, 34, 56, 789012, UTC),
        dt.datetime(2024, 2, 29, 12, 34, 56, 789013, UTC),
        # Among the event times, so that they meet.
        START,
        START + dt.timedelta(seconds=2),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    ],
    "array<int>": [[], [None], [1], [1, 2], [2, 1], [1, None]],
    "array<string>": [[], ["a"], ["a", "b"], ["a", None], [""]],
    "array<double>": [[], [0.0], [-0.0], [math.nan], [NEGATIVE_NAN], [1.0, 2.0]],
    "struct<a:int,b:string>": [
        {"a": 1, "b": "x"},
        {"a": 1, "b": None},
        {"a": None, "b": "x"},
        {"a": 2, "b": "x"},
        {"a": None, "b": None},
    ],
    "struct<d:double,e:array<bigint>>": [
        {"d": 0.0, "e": [1]},
        {"d": -0.0, "e": [1]},
        {"d": math.nan, "e": []},
        {"d": NEGATIVE_NAN, "e": []},
        {"d": 1.0, "e": None},
    ],
    "struct<n:int,select:string,`odd name`:int>": [
        {"n": 1, "select": "x", "odd name": 2},
        {"n": 1, "select": "x", "odd name": 3},
        {"n": 1, "select": None, "odd name": None},
    ],
}
VALUES["timestamp_ntz"] = [each.replace(tzinfo=None) for each in VALUES["timestamp"]]
WEIGHTS = {
    "int": 4,
    "bigint": 4,
    "string": 6,
    "double": 4,
    "boolean": 2,
    "tinyint": 2,
    "smallint": 2,
    "array<int>": 2,
}
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
KEYS = ("string", "int", "bigint")
"""What tells streams of one source apart."""
NUMBERS = (*INTEGERS, *FLOATS, "decimal(9,2)", "decimal(20,4)")
NAMES = (
    "k",
    "v",
    "n",
    "x",
    "y",
    "kind",
    "Value",
    "odd name",
    "order",
    "l",
    "r",
    "t",
    "ünï",
    "user",
    "K2",
    "id",
)
TIMES = ("time", "ts", "at", "Time", "when", "et")
TABLES = ("s", "t", "u", "w", "calls", "l", "r", "x", "Orders", "k")


def draw_type(rng: Random) -> str:
    kinds = list(VALUES)
    return rng.choices(kinds, [WEIGHTS.get(each, 1) for each in kinds])[0]


def draw_pools(rng: Random) -> dict[str, list]:
    """The few values of each type that a program has; null among them now and then."""
    found = {}
    for kind, values in VALUES.items():
        few = rng.sample(values, min(len(values), rng.choice([2, 3, 3, 4, 6])))
        found[kind] = few + [None] * (rng.random() < 0.6)
    return found


def draw_tables(rng: Random, count: int) -> list[Table]:
    """Tables that share names and types of columns, so that they can be joined and confused."""
    pools = draw_pools(rng)
    kinds = [draw_type(rng) for _ in range(rng.choice([1, 2, 2, 3]))]
    shared = [Column(name, kind) for name, kind in zip(rng.sample(NAMES, len(kinds)), kinds, strict=True)]
    same_time = rng.choice(TIMES) if rng.random() < 0.5 else None
    grid = rng.choice([SECOND // 4, SECOND, SECOND, 60 * SECOND])
    # Without ties it is certain which the last rows are.
    distinct = rng.random() < 0.45
    found: list[Table] = []
    for name in rng.sample(TABLES, count):
        columns = list(shared)
        if rng.random() < 0.3:
            columns = [Column(rng.choice(NAMES), each.type) for each in shared]
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            columns.append(Column(rng.choice(NAMES), draw_type(rng)))
        time = same_time or rng.choice(TIMES)
        columns = [Column(time, "timestamp"), *columns]
        if rng.random() < 0.2:
            rng.shuffle(columns)
        unique: dict[str, Column] = {}
        for each in columns:
            unique.setdefault(each.name.lower(), each)
        unique[time.lower()] = Column(time, "timestamp")
        columns = tuple(unique.values())
        delay = rng.choice([0, 1, 2, 6, 20]) * grid
        apart = [each.name for each in columns if each.type in KEYS]
        key = rng.choice(apart) if apart and rng.random() < 0.25 else None
        rows = draw_rows(rng, columns, time, delay, grid, pools, distinct=distinct, key=key)
        found.append(Table(name, columns, time, delay, rows, key))
    return found


def draw_rows(rng, columns, time, delay, grid, pools, *, distinct=False, key=None) -> tuple[tuple, ...]:
    """Rows in the order of arrival, at most `delay` out of order; some repeated, a few without a time.

    With a `key`, the rows of each of its values are so by themselves, and some come far behind the others.
    """
    count = rng.choices([0, 1, 3, 6, 10, 16, 25, 50], [2, 4, 8, 8, 12, 12, 12, 3])[0]
    span = rng.choice([6, 20, 20, 40])
    drawn = []
    slots = rng.sample(range(max(span, count)), count)
    for place in range(count):
        if not distinct and drawn and rng.random() < 0.1:
            drawn.append(rng.choice(drawn))
            continue
        slot = (slots[place] if distinct else rng.randrange(span)) * grid
        row = tuple(
            START + slot * MICRO if each.name == time else rng.choice(pools[each.type]) for each in columns
        )
        drawn.append((slot, row))
    names = [each.name for each in columns]
    place = names.index(time)
    streams = {} if key is None else {_stream(row[names.index(key)]): row for _, row in drawn}
    # The slowest stream tells how far event time is from its first row on, so all begin at once.
    found = [(*row[:place], START, *row[place + 1 :]) for row in streams.values()]
    behind = {each: rng.choice([0, 0, 5, 15]) * grid for each in streams}

    def arrives(each: tuple[int, tuple]) -> int:
        slot, row = each
        return slot + rng.randint(0, delay) + (behind[_stream(row[names.index(key)])] if streams else 0)

    found += [row for _, row in sorted(drawn, key=arrives)]
    if found and rng.random() < 0.15:
        at = rng.randrange(len(found))
        found.insert(at, (*found[at][:place], None, *found[at][place + 1 :]))
    return tuple(found)


def _stream(value: object) -> str:
    """The name of the stream of a key."""
    return "" if value is None else str(value)
