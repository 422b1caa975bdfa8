"""Operators that only Python has: how each is written, and what it means over whole tables, row by row."""

from collections import defaultdict
from collections.abc import Callable

import pyarrow as pa

from fuzz.compare import canonical
from fuzz.program import Verb
from penstock.expressions.types import arrow_type


def _keyed(table: pa.Table, names: tuple[str, ...]) -> dict[tuple, list[dict]]:
    """The rows of each key in the order of event time; nulls, NaN and zeros are keys as in GROUP BY."""
    found = defaultdict(list)
    rows = table.to_pylist()
    for row in sorted(rows, key=lambda each: each["_t"]):
        found[tuple(canonical(row[name]) for name in names)].append(row)
    return found


def _table(verb: Verb, rows: list[dict]) -> pa.Table:
    arrays = [pa.array([row[each.name] for row in rows], arrow_type(each.type)) for each in verb.columns]
    arrays.append(pa.array([row["_t"] for row in rows], pa.int64()))
    return pa.Table.from_arrays(arrays, names=[*(each.name for each in verb.columns), "_t"])


def _content(row: dict, names: list[str]) -> tuple:
    """The order of rows of one time: column by column, nulls last."""
    return tuple((row[name] is None, row[name] if row[name] is not None else 0) for name in names)


def deduplicated(verb: Verb, given: pa.Table) -> pa.Table:
    """The first row of a key passes, then each that comes `within` after the last one that passed."""
    keys, within = verb.option("keys"), verb.option("within")
    found = []
    names = [name for name in given.column_names if name != "_t"]
    for rows in _keyed(given, keys).values():
        passed = None
        for row in sorted(
            rows, key=lambda each: (each["_t"], _content(each, names) if verb.option("content") else ())
        ):
            if passed is None or row["_t"] >= passed + within:
                passed = row["_t"]
                found.append(row)
    return _table(verb, found)


def _bounds(row: dict, start: int, end: int) -> dict:
    return {"window_start": start, "window_end": end, **row}


def counted(verb: Verb, given: pa.Table) -> pa.Table:
    """After every `slide`-th row of a key its last `size` rows."""
    key, read, size, slide = (verb.option(each) for each in ("key", "read", "size", "slide"))
    found = []
    for rows in _keyed(given, (key,)).values():
        ordered = sorted(rows, key=lambda each: (each["_t"], _content(each, [read])))
        for end in range(slide, len(ordered) + 1, slide):
            held = ordered[max(0, end - size) : end]
            values = [row[read] for row in held if row[read] is not None]
            made = {
                key: held[0][key],
                "n": len(held),
                "lo": min(values, default=None),
                "hi": max(values, default=None),
            }
            found.append(_bounds(made, held[0]["_t"], held[-1]["_t"]) | {"_t": held[-1]["_t"]})
    return _table(verb, found)


def numbered(verb: Verb, given: pa.Table) -> pa.Table:
    """Each row with its number within its key."""
    key, found = verb.option("key"), []
    for rows in _keyed(given, (key,)).values():
        found += [
            {verb.time: row["_t"], key: row[key], "n": place, "_t": row["_t"]}
            for place, row in enumerate(rows, 1)
        ]
    return _table(verb, found)


def fussy(verb: Verb, given: pa.Table) -> pa.Table:
    """The same without the rows of every third second, for which the function raises."""
    fit = [micros // 1_000_000 % 3 != 0 for micros in given["_t"].to_pylist()]
    return numbered(verb, given.filter(pa.array(fit, pa.bool_())))


def silent(verb: Verb, given: pa.Table) -> pa.Table:
    """How many rows a key had before it fell silent for the timeout."""
    key, timeout, found = verb.option("key"), verb.option("timeout"), []
    for rows in _keyed(given, (key,)).values():
        count = 0
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            count += 1
            due = row["_t"] + timeout
            # A timer fires before a row of its time.
            if after is None or after["_t"] >= due:
                found.append({verb.time: due, key: row[key], "n": count, "_t": due})
                count = 0
    return _table(verb, found)


def alarmed(verb: Verb, given: pa.Table) -> pa.Table:
    """How many rows a key has had when the timer of the first one fires."""
    key, after, found = verb.option("key"), verb.option("after"), []
    for rows in _keyed(given, (key,)).values():
        due, count = None, 0
        for row in rows:
            if due is not None and row["_t"] >= due:
                found.append({verb.time: due, key: row[key], "n": count, "_t": due})
                due, count = None, 0
            due = row["_t"] + after if due is None else due
            count += 1
        found.append({verb.time: due, key: rows[-1][key], "n": count, "_t": due})
    return _table(verb, found)


def exploded(verb: Verb, given: pa.Table) -> pa.Table:
    """A row for each element; one with null for none where it is outer."""
    column, name, outer, found = verb.option("column"), verb.option("name"), verb.option("outer"), []
    for row in given.to_pylist():
        elements = row[column] or ([None] if outer else [])
        found += [{**row, name: each} for each in elements]
    return _table(verb, found)


def picky(verb: Verb, given: pa.Table) -> pa.Table:
    """The rows without those for which the function raises, which are set aside."""
    column, value = verb.option("column"), verb.option("value")
    return _table(verb, [row for row in given.to_pylist() if row[column] != value])


MEANINGS: dict[str, Callable[..., pa.Table]] = {
    "deduplicate": deduplicated,
    "counts": counted,
    "process": numbered,
    "fussy": fussy,
    "silent": silent,
    "alarm": alarmed,
    "explode": exploded,
    "picky": picky,
}


def _micros(duration: int) -> str:
    return f"'{duration} microseconds'"


def _write_deduplicate(verb: Verb, given: str) -> str:
    keys = ", ".join(map(repr, verb.option("keys")))
    names = ", ".join(repr(each.name) for each in verb.columns)
    return f"{given}.deduplicate({keys}, within={_micros(verb.option('within'))}).select({names})"


def _write_counts(verb: Verb, given: str) -> str:
    size, slide, read = verb.option("size"), verb.option("slide"), f"`{verb.option('read')}`"
    return (
        f"{given}.group_by({verb.option('key')!r}).window({size}, slide={slide}, rows=True)"
        f".agg(n=ps.count(), lo=ps.min({read!r}), hi=ps.max({read!r}))"
    )


def _write_process(verb: Verb, given: str) -> str:
    function = "fussy" if verb.kind == "fussy" else "numbered"
    return (
        f"{given}.group_by({verb.option('key')!r})"
        f".process(functions.{function}, state='n bigint', result='n bigint')"
    )


def _write_silent(verb: Verb, given: str) -> str:
    timeout = _micros(verb.option("timeout"))
    return (
        f"{given}.group_by({verb.option('key')!r})"
        f".process(functions.silent, state='n bigint', result='n bigint', timeout={timeout})"
    )


def _write_alarm(verb: Verb, given: str) -> str:
    return (
        f"{given}.group_by({verb.option('key')!r}).process(functions.Alarm({verb.option('after')}), "
        "state='n bigint, due timestamp', result='n bigint')"
    )


def _write_explode(verb: Verb, given: str) -> str:
    made = {verb.option("name"): f"`{verb.option('column')}`"}
    return f"{given}.explode(**{made!r}, outer={verb.option('outer')})"


def _write_picky(verb: Verb, given: str) -> str:
    others = [each for each in verb.columns if each.name != verb.time]
    schema = ", ".join(f"`{each.name}` {each.type}" for each in others)
    names = tuple(each.name for each in others)
    function = f"functions.Picky({names!r}, {verb.option('column')!r}, {verb.option('value')!r})"
    return f"{given}.map({function}, {schema!r}{verb.option('way')})"


PYTHON: dict[str, Callable[..., str]] = {
    "deduplicate": _write_deduplicate,
    "counts": _write_counts,
    "process": _write_process,
    "fussy": _write_process,
    "silent": _write_silent,
    "alarm": _write_alarm,
    "explode": _write_explode,
    "picky": _write_picky,
}
