"""Random SQL that means the same in Spark and in DuckDB: no division, no rounding, no overflow."""

from random import Random

from graphs.graph import Column

NUMBERS = ("int", "bigint", "double", "decimal(9,2)")
WHOLE = ("int", "bigint")


def is_number(column: Column) -> bool:
    return column.type in {"int", "bigint", "double"} or column.type.startswith("decimal")


def condition(rng: Random, columns: tuple[Column, ...]) -> str:
    """A condition over one tuple; it may be null."""
    usable = [each for each in columns if each.exact and each.type != "timestamp"]
    if not usable:
        return "1 = 1"
    kind = rng.random()
    if kind < 0.15:
        return f"NOT ({_simple(rng, rng.choice(usable))})"
    if kind < 0.4:
        word = rng.choice(["AND", "OR", "OR"])
        return f"{_simple(rng, rng.choice(usable))} {word} {_simple(rng, rng.choice(usable))}"
    return _simple(rng, rng.choice(usable))


def _simple(rng: Random, column: Column) -> str:
    name = column.name
    if rng.random() < 0.15:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if column.type == "string":
        return rng.choice(
            [f"{name} = 'a'", f"{name} <> 'b'", f"{name} IN ('', 'a')", f"{name} LIKE 'a%'", f"{name} >= 'b'"]
        )
    if column.type in WHOLE:
        return rng.choice(
            [f"{name} > 1", f"{name} % 2 = 0", f"{name} IN (0, 1)", f"{name} BETWEEN -1 AND 3", f"{name} < 4"]
        )
    return rng.choice([f"{name} > 0.5", f"{name} <= 2", f"{name} < 3.25"])


def expression(rng: Random, columns: tuple[Column, ...], name: str) -> tuple[str, Column]:
    """An expression over one tuple, and the column that it makes."""
    found = rng.choice(columns)
    sql, type_ = _expression(rng, found)
    return sql, Column(name, type_, found.exact)


def _expression(rng: Random, found: Column) -> tuple[str, str]:
    name, type_ = found.name, found.type
    if not found.exact or type_ == "timestamp" or rng.random() < 0.2:
        return name, type_
    if type_ == "string":
        return rng.choice(
            [
                (f"{name} || 'x'", "string"),
                (f"upper({name})", "string"),
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


def pair_condition(rng: Random, left: tuple[Column, ...], right: tuple[Column, ...]) -> str | None:
    """A condition over `l` and `r`."""
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
    if one.type in WHOLE and other.type in WHOLE:
        return [f"{a} < {b}", f"abs({a} - {b}) < 3", f"{a} + {b} > 2", f"{a} <> {b} OR {a} IS NULL"]
    if is_number(one) and is_number(other):
        return [f"{a} < {b}"]
    return []
