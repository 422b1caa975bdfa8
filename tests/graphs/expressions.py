"""Random SQL that raises for no row: plain, of certified functions, and what only Spark evaluates."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import product
from random import Random

from functions.calls import BOUNDED, LITERALS, UNITS, kinds_of
from functions.compositions import CONSTANTS
from graphs.graph import Column
from penstock.functions import FUNCTIONS, Form, Function, Uncertified, translated

NUMBERS = ("int", "bigint", "double", "decimal(9,2)")
WHOLE = ("int", "bigint")
KINDS = ("string", "int", "bigint", "double", "boolean", "date", "timestamp")
"""Types of what certified functions take and give here; decimals have expressions of their own."""

BOUNDS = {
    name: "({0} % 20)" if text == BOUNDED["repeat"] else "({0} % 1000)" for name, text in BOUNDED.items()
}
DERIVED = {
    "int": ("string", "length({})"),
    "bigint": ("int", "cast({} as bigint)"),
    "double": ("int", "cast({} as double)"),
    "boolean": ("string", "({} > 'a')"),
    "date": ("timestamp", "to_date({})"),
}
ONLY_SPARK = {
    "string": [
        ("upper({})", "string"),
        ("initcap({})", "string"),
        ("regexp_replace({}, '[a-c]+', '-')", "string"),
        ("levenshtein({}, 'ab')", "int"),
        ("hash({})", "int"),
        ("crc32({})", "bigint"),
        ("{} rlike '^a.*'", "boolean"),
    ],
    "int": [
        ("hash({}, 'a')", "int"),
        ("format_string('%d-%s', {0}, {0})", "string"),
        ("array_contains(array(1, {}), 1)", "boolean"),
        ("shiftleft({}, 3)", "int"),
    ],
    "bigint": [("xxhash64({})", "bigint"), ("bin({})", "string"), ("sin({})", "double")],
    "double": [
        ("round({}, 1)", "double"),
        ("exp(least({}, 20D))", "double"),
        ("cbrt({})", "double"),
        ("cast({} as string)", "string"),
    ],
    "decimal(9,2)": [("{0} * {0}", "decimal(19,4)"), ("bround({}, 1)", "decimal(9,1)")],
    "boolean": [("hash({})", "int")],
    "date": [("date_format({}, 'EEE yyyy-MM-dd')", "string"), ("next_day({}, 'MON')", "date")],
    "timestamp": [
        ("date_format({}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "string"),
        ("from_utc_timestamp({}, 'America/New_York')", "timestamp"),
        ("months_between({}, timestamp'2024-03-10 07:30:00')", "double"),
    ],
}


def is_number(column: Column) -> bool:
    return column.type in {"int", "bigint", "double"} or column.type.startswith("decimal")


Maker = tuple[Function, Form, list[tuple[str, ...]]]


@cache
def _makers() -> dict[str, list[Maker]]:
    """For each type the forms that give it and raise for no value, with the types that they take."""
    found = defaultdict(list)
    for function in FUNCTIONS.values():
        for form in function.forms:
            every = product(
                *([kind for kind in kinds_of(each) if kind in {*KINDS, "unit"}] for each in form.takes)
            )
            by_result = defaultdict(list)
            for kinds in every if not form.raises else ():
                by_result[form.result(kinds)].append(kinds)
            for kind in by_result.keys() & set(KINDS):
                found[kind].append((function, form, by_result[kind]))
    return {kind: found[kind] for kind in KINDS}


def _certified(rng: Random, kind: str, leaves: dict[str, list[str]]) -> str:
    """A random expression of certified functions, of depth one or two; over a column, if there is one."""
    named = [name for names in leaves.values() for name in names]
    for _ in range(10):
        found = _composed(rng, kind, leaves, rng.randint(1, 2))
        if any(name in found for name in named):
            break
    return found


def _composed(rng: Random, kind: str, leaves: dict[str, list[str]], depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        choices = leaves.get(kind, [])
        return rng.choice(choices if choices and rng.random() < 0.85 else CONSTANTS[kind])
    function, form, combinations = rng.choice(_makers()[kind])
    # Those that read a column at once are worth more.
    taken = max((rng.choice(combinations) for _ in range(3)), key=lambda kinds: len({*kinds} & {*leaves}))
    arguments = []
    for place, each in enumerate(taken):
        if each == "unit":
            arguments.append(rng.choice(UNITS))
        elif place in form.literals:
            arguments.append(rng.choice(LITERALS[function.name, place]))
        else:
            inner = _composed(rng, each, leaves, depth - 1)
            bounded = each in WHOLE and function.name in BOUNDS
            arguments.append(BOUNDS[function.name].format(inner) if bounded else inner)
    return function.call(arguments)


def _leaves(columns: tuple[Column, ...], written: Callable[[str], str] = str) -> dict[str, list[str]]:
    """What expressions read, by type: columns, and for types without any what follows from others."""
    found = defaultdict(list)
    for each in columns:
        if each.exact:
            found[each.type].append(written(each.name))
    for kind, (other, sql) in DERIVED.items():
        if kind not in found and other in found:
            found[kind] += [sql.format(name) for name in found[other]]
    return dict(found)


def _only_spark(rng: Random, columns: tuple[Column, ...]) -> tuple[str, str] | None:
    """An expression that has no certified translation, and its type."""
    fit = [each for each in columns if each.exact and each.type in ONLY_SPARK]
    if not fit:
        return None
    found = rng.choice(fit)
    sql, kind = rng.choice(ONLY_SPARK[found.type])
    return sql.format(found.name), kind


def drawn(rng: Random, columns: tuple[Column, ...], kinds: tuple[str, ...] = KINDS) -> tuple[str, str]:
    """A certified expression of one of some types, or one that only Spark evaluates; and its type."""
    if rng.random() < 0.5:
        found = _only_spark(rng, columns)
        if found and found[1] in kinds:
            return found
    kind = rng.choice(kinds)
    return _certified(rng, kind, _leaves(columns)), kind


def condition(rng: Random, columns: tuple[Column, ...]) -> str:
    """A condition over one tuple; it may be null."""
    kind = rng.random()
    if kind < 0.25:
        return _certified(rng, "boolean", _leaves(columns))
    if kind < 0.45:
        sql, type_ = drawn(rng, columns)
        return _simple(rng, f"({sql})", type_)
    return _plain_condition(rng, columns)


def _plain_condition(rng: Random, columns: tuple[Column, ...]) -> str:
    usable = [(each.name, each.type) for each in columns if each.exact and each.type != "timestamp"]
    if not usable:
        return "1 = 1"
    kind = rng.random()
    if kind < 0.15:
        return f"NOT ({_simple(rng, *rng.choice(usable))})"
    if kind < 0.4:
        word = rng.choice(["AND", "OR", "OR"])
        return f"{_simple(rng, *rng.choice(usable))} {word} {_simple(rng, *rng.choice(usable))}"
    return _simple(rng, *rng.choice(usable))


def _simple(rng: Random, name: str, type_: str) -> str:
    if rng.random() < 0.15:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if type_ == "string":
        return rng.choice(
            [f"{name} = 'a'", f"{name} <> 'b'", f"{name} IN ('', 'a')", f"{name} LIKE 'a%'", f"{name} >= 'b'"]
        )
    if type_ in WHOLE:
        return rng.choice(
            [f"{name} > 1", f"{name} % 2 = 0", f"{name} IN (0, 1)", f"{name} BETWEEN -1 AND 3", f"{name} < 4"]
        )
    if type_ == "boolean":
        return rng.choice([name, f"NOT {name}"])
    if type_ in {"date", "timestamp"}:
        return rng.choice([f"{name} > {type_}'2020-01-01'", f"{name} <= {type_}'1970-01-01'"])
    return rng.choice([f"{name} > 0.5", f"{name} <= 2", f"{name} < 3.25"])


def expression(rng: Random, columns: tuple[Column, ...], name: str) -> tuple[str, Column]:
    """An expression over one tuple, and the column that it makes."""
    if rng.random() < 0.45:
        sql, type_ = drawn(rng, columns)
        return sql, Column(name, type_, plain=False)
    found = rng.choice(columns)
    sql, type_ = _expression(rng, found)
    return sql, Column(name, type_, found.exact, found.plain)


def _expression(rng: Random, found: Column) -> tuple[str, str]:
    name, type_ = found.name, found.type
    if not found.exact or not found.plain or rng.random() < 0.2:
        return name, type_
    if type_ == "string":
        return rng.choice(
            [
                (f"{name} || 'x'", "string"),
                (f"substring({name}, 1, 1)", "string"),
                (f"coalesce({name}, '?')", "string"),
                (f"length({name})", "int"),
            ]
        )
    if type_ in WHOLE:
        return rng.choice(
            [
                (f"{name} + 1", type_),
                (f"{name} * 2 - 3", type_),
                (f"abs({name})", type_),
                (f"{name} % 3", type_),
                (f"CAST(coalesce({name}, 0) AS {type_})", type_),
                (f"coalesce({name}, 0)", type_),
                (f"CASE WHEN {name} > 1 THEN 'a' ELSE 'b' END", "string"),
                (f"CAST({name} AS string)", "string"),
                (f"CAST({name} AS bigint)", "bigint"),
            ]
        )
    if type_ == "double":
        return rng.choice([(f"{name} * 2", type_), (f"{name} + 1", type_), (f"abs({name})", type_)])
    if type_ == "decimal(9,2)":
        return rng.choice(
            [(f"{name} + {name}", "decimal(10,2)"), (f"CAST({name} AS decimal(12,3))", "decimal(12,3)")]
        )
    return name, type_


def addend(column: Column) -> str:
    """The values of a column as far as they can be added."""
    if column.plain:
        return column.name
    if column.type in WHOLE:
        return f"{column.name} % 1000"
    return f"CASE WHEN abs({column.name}) < 1000 THEN {column.name} END"


def pair_condition(rng: Random, left: tuple[Column, ...], right: tuple[Column, ...]) -> str | None:
    """A condition over `l` and `r`; only of certified functions, for others are refused there."""
    if rng.random() < 0.5:
        sides = (("l", left), ("r", right))
        leaves = defaultdict(list)
        for side, columns in sides:
            for kind, names in _leaves(columns, f"{side}__{{}}".format).items():
                leaves[kind] += names
        types = {f"{side}__{each.name}": each.type for side, columns in sides for each in columns}
        sql = _certified(rng, "boolean", leaves)
        if _is_certified(sql, types):
            return sql.replace("l__", "l.").replace("r__", "r.")
    return _plain_pair_condition(rng, left, right)


def _is_certified(sql: str, types: dict[str, str]) -> bool:
    """Whether a channel evaluates it: of some functions it takes no argument that may raise."""
    try:
        translated(sql, types)
    except Uncertified:
        return False
    return True


def _plain_pair_condition(rng: Random, left: tuple[Column, ...], right: tuple[Column, ...]) -> str | None:
    choices = []
    for one in left:
        if one.exact and one.type in {*WHOLE, "double"}:
            choices.append(f"l.{one.name} > 0")
        for other in right:
            choices += _compared(one, other) if one.exact and other.exact else []
    if not choices:
        return None
    if rng.random() < 0.3:
        return f"{rng.choice(choices)} {rng.choice(['AND', 'OR'])} {rng.choice(choices)}"
    return rng.choice(choices)


def _compared(one: Column, other: Column) -> list[str]:
    a, b = f"l.{one.name}", f"r.{other.name}"
    if one.type == other.type in {"string", "timestamp"}:
        return [f"{a} <= {b}", f"{a} <> {b}"]
    if one.type in WHOLE and other.type in WHOLE and one.plain and other.plain:
        return [f"{a} < {b}", f"abs({a} - {b}) < 3", f"{a} + {b} > 2", f"{a} <> {b} OR {a} IS NULL"]
    if is_number(one) and is_number(other):
        return [f"{a} < {b}"]
    return []
