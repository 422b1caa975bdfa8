"""Every operator that has keys, over any type of key, with an oracle that sees keys in canonical form only.

Rows of the oracle have `k`, the canonical key. Results are tuples in which all key columns are one canonical
key; columns are picked by name. Payloads are whole numbers that tell rows apart.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

import penstock as ps
from operators import cases
from operators.group_cases import count_windows, session_windows
from processes import Running, Sessions, Waiting, visit_session, waiting_oracle

PAYLOAD = "v bigint, n bigint, wait bigint"


@dataclass(frozen=True)
class KeyedOperator:
    """An operator in the matrix.

    - `build`: the relation whose operator runs, from one or two streams and the names of their keys.
    - `oracle`: results of all rows, from the rows of each port and the time at which everything has ended.
    - `columns`: those of the result that the oracle tells, in its order; "k" stands for the key.
    - `delay`: how far the frontier is behind; without delay rows are up to 20 late.
    - `changes`: results are changes, which add up to what the oracle says.
    - `spread`: a key may be in several channels at once, and one with a null matches nothing.
    - `in_python`: user code gets keys as values of Python.
    - `takes`: whether the operator takes a type that others refuse.
    """

    build: Callable
    oracle: Callable
    columns: tuple
    ports: int = 1
    delay: int = 20
    changes: bool = False
    takes: Callable = field(default=lambda _sql: False)
    spread: bool = False
    in_python: bool = False


AGGREGATES = {"rows": ps.count(), "total": ps.sum("v"), "top": ps.max("n")}
WINDOWED = ("window_start", "window_end", "k", "rows", "total", "top")
OWN = ("window_start", "window_end", "k", "own")


def us(*numbers):
    return [f"{each} us" for each in numbers]


def aggregated(make, case, own=None, **options):
    """An aggregation whose oracle is that of the contract suite over a key `k`."""
    named = {"own": own("n")} if own else AGGREGATES

    def build(streams, keys):
        return make(streams[0].group_by(*keys)).agg(**named)

    return KeyedOperator(build, case.oracle, OWN if own else WINDOWED, **options)


def shaped(*shapes):
    return [ps.window(*us(*each)) for each in shapes]


WINDOWS = {
    "tumbling windows": aggregated(lambda by: by.window("7 us"), cases.slid(7, 7, ["k"])),
    "sliding windows": aggregated(lambda by: by.window(*us(20, 6, 2)), cases.slid(20, 6, ["k"], offset=2)),
    "long windows": aggregated(lambda by: by.window(*us(60, 1)), cases.slid(60, 1, ["k"])),
    "windows apart": aggregated(lambda by: by.window(*us(5, 12, 3)), cases.slid(5, 12, ["k"], offset=3)),
    "cumulating windows": aggregated(lambda by: by.cumulate(*us(24, 4)), cases.cumulated(24, 4, ["k"])),
    "several windows": aggregated(
        lambda by: by.windows(*shaped((8, 8, 0), (30, 2, 1), (6, 18, 4))),
        cases.several((8, 8, 0), (30, 2, 1), (6, 18, 4), keys=["k"]),
    ),
    "windows of user code in parts": aggregated(
        lambda by: by.window(*us(12, 4)), cases.slid(12, 4, ["k"], own=cases.Total), own=cases.Total
    ),
    "windows of user code, whole keys": aggregated(
        lambda by: by.window(*us(12, 4)), cases.slid(12, 4, ["k"], own=cases.Whole), own=cases.Whole
    ),
    "corrected windows": aggregated(
        lambda by: by.windows(*shaped((20, 6, 2)), lateness="100 us"),
        cases.corrected((20, 6, 2), keys=["k"], lateness=100),
        delay=0,
        changes=True,
    ),
    "early windows": aggregated(
        lambda by: by.windows(*shaped((20, 10, 2)), early="4 us"),
        cases.corrected((20, 10, 2), keys=["k"], early=4),
        changes=True,
    ),
    "early and corrected windows": aggregated(
        lambda by: by.windows(*shaped((30, 2, 0), (8, 8, 0)), early="15 us", lateness="100 us"),
        cases.corrected((30, 2, 0), (8, 8, 0), keys=["k"], early=15, lateness=100),
        delay=0,
        changes=True,
    ),
}


# Totals.


def totals(own=None, **options):
    named = {"own": own("n")} if own else AGGREGATES

    def build(streams, keys):
        return streams[0].group_by(*keys).agg(**named, **options)

    columns = ("k", "own") if own else ("k", "rows", "total", "top")
    return KeyedOperator(build, cases.totals(["k"], own).oracle, columns, delay=0, changes=True)


TOTALS = {
    "totals": totals(),
    "totals that are kept for a time": totals(keep="1000 us"),
    "totals of user code": totals(cases.Whole),
    "totals of user code in parts": totals(cases.Total),
}


# Operators that look at the rows of a key one by one.


def sessions(function, gap=5, **options):
    """A row exactly `gap` after the last one begins the next session."""

    def build(streams, keys):
        return streams[0].group_by(*keys).process(function, timeout=f"{gap} us", **cases.SESSION)

    return KeyedOperator(build, cases.sessions(function, gap).oracle, ("time", "k", "n", "total"), **options)


def running(order="event"):
    def build(streams, keys):
        return streams[0].group_by(*keys).process(Running(), order=order, **cases.SESSION)

    def oracle(ports, _end):
        found, sums = [], {}
        for row in sorted(ports[0], key=lambda each: (each["time"], each["v"])):
            n, total = sums.get(row["k"], (0, 0))
            sums[row["k"]] = n + 1, total + row["v"]
            found.append((row["time"], row["k"], *sums[row["k"]]))
        return found

    return KeyedOperator(build, oracle, ("time", "k", "n", "total"))


def timers():
    def build(streams, keys):
        state = {"n": "bigint", "fired": "boolean"}
        return streams[0].group_by(*keys).process(Waiting(), state=state, result="n bigint")

    def oracle(ports, end):
        return [(time, key, n) for key, time, n in waiting_oracle(ports[0], end)]

    return KeyedOperator(build, oracle, ("time", "k", "n"))


def deduplicate(within=8):
    def build(streams, keys):
        return streams[0].deduplicate(*keys, within=f"{within} us")

    def oracle(ports, _end):
        again, found = {}, []
        for row in sorted(ports[0], key=lambda each: (each["time"], each["v"])):
            if row["k"] not in again or row["time"] >= again[row["k"]]:
                again[row["k"]] = row["time"] + within
                found.append((row["time"], row["k"], row["v"]))
        return found

    return KeyedOperator(build, oracle, ("time", "k", "v"))


def grouped(make, case, **options):
    def build(streams, keys):
        return make(streams[0].group_by(*keys)).agg(**AGGREGATES)

    columns = ("window_end", "window_start", "k", "rows", "total", "top")
    return KeyedOperator(build, case.oracle, columns, **options)


def top(n=2):
    """The stage below the verb, whose results have the first rows in a list."""

    def build(streams, keys):
        rows = streams[0].group_by(*keys).window("12 us").top(n, by="n")
        return rows.inputs[0].inputs[0]

    def oracle(ports, _end):
        groups = {}
        for row in ports[0]:
            start = row["time"] // 12 * 12
            groups.setdefault((start, start + 12, row["k"]), []).append(row)
        order = lambda each: (-each["n"], each["time"], each["v"])  # noqa: E731
        return [
            (*group, tuple((row["v"], place + 1) for place, row in enumerate(sorted(rows, key=order)[:n])))
            for group, rows in groups.items()
        ]

    return KeyedOperator(build, oracle, ("window_start", "window_end", "k", "_rows"))


BY_ROWS = {
    "process": sessions(Sessions()),
    "process by visits": sessions(visit_session, in_python=True),
    "process rows": running(),
    "process with timers": timers(),
    "deduplicate": deduplicate(),
    "session windows": grouped(
        lambda by: by.session("4 us", late="drop"), session_windows(cases.EVENTS, None, 4, ["k"])
    ),
    "windows of counts": grouped(
        lambda by: by.window(4, slide=2, rows=True), count_windows(cases.EVENTS, None, 4, 2, ["k"])
    ),
    "top": top(),
}


# Functions over whole windows.


def whole(make, case, columns):
    def build(streams, keys):
        return make(streams[0].group_by(*keys))

    return KeyedOperator(build, case.oracle, (*columns, "k", "n", "text"))


def listed(windowed, **given):
    return windowed.apply(cases.listed, "n bigint, text string", **given)


WHOLE = {
    "whole windows": whole(
        lambda by: listed(by.window(*us(20, 6, 2))),
        cases.whole_windows(20, 6, ["k"], offset=2),
        ("window_start", "window_end"),
    ),
    "whole windows of keys, by windows": whole(
        lambda by: listed(by.window(*us(10, 3)), partitioning="windows"),
        cases.whole_windows(10, 3, ["k"]),
        ("window_start", "window_end"),
    ),
    "whole sessions": whole(
        lambda by: listed(by.session("4 us", late="drop")),
        cases.whole_sessions(4, ["k"]),
        ("window_end", "window_start"),
    ),
}


# Joins.


def join(how, bound, pairs):
    """Pairs are found by `pairs(left, right)`, which sees rows that can have a partner only."""

    def build(streams, keys):
        left, right = streams[0].select(*keys, "v"), streams[1].select(*keys, w="v")
        return left.join(right, list(keys), how=how, suffixes=("", "_2"), **bound)

    def oracle(ports, _end):
        left, right = ports
        known = [[row for row in rows if None not in row["k"]] for rows in ports]
        found = [(one["k"], one["v"], other["v"], *more) for one, other, *more in pairs(*known)]
        if how in {"semi", "anti"}:
            return one_sided(how, left, found)
        if how in {"left", "full"}:
            matched = {(v, *more) for _, v, _, *more in found}
            found += [(row["k"], row["v"], None, *more) for row, more in lone(left, matched)]
        if how in {"right", "full"}:
            matched = {(w, *more) for _, _, w, *more in found if w is not None}
            found += [(row["k"], None, row["v"], *more) for row, more in lone(right, matched)]
        return found

    def lone(rows, matched):
        return [(row, more) for row in rows for more in windows(row) if (row["v"], *more) not in matched]

    def windows(row):
        if "window" not in bound:
            return [()]
        return [(start,) for start, _ in cases.sliding(12, 5)(row["time"])]

    def one_sided(how, left, found):
        matched = {(v, *more) for _, v, _, *more in found}
        wanted = how == "semi"
        return [
            (row["k"], row["v"], *more)
            for row in left
            for more in windows(row)
            if ((row["v"], *more) in matched) == wanted
        ]

    columns = ["k", "v"] if how in {"semi", "anti"} else ["k", "v", "w"]
    columns += ["window_start"] if "window" in bound else []
    return KeyedOperator(build, oracle, tuple(columns), ports=2, spread=True)


def apart(after, before):
    """Pairs of which the right row is so much after or before the left one at most."""

    def pairs(left, right):
        for one in left:
            for other in right:
                if one["k"] == other["k"] and -before <= other["time"] - one["time"] <= after:
                    yield one, other

    return pairs


def with_last(count):
    """Every row looks at the last rows of its key before it on the other side; left goes before right."""

    def pairs(left, right):
        order = sorted(
            [(row["time"], side, row) for side, rows in enumerate((left, right)) for row in rows],
            key=lambda each: each[:2],
        )
        seen = ({}, {})
        for _, side, row in order:
            for other in seen[1 - side].get(row["k"], [])[-count:]:
                yield (row, other) if side == 0 else (other, row)
            seen[side].setdefault(row["k"], []).append(row)

    return pairs


def in_one_window(left, right):
    shape = cases.sliding(12, 5)
    for one in left:
        for other in right:
            if one["k"] == other["k"]:
                for start, _ in {*shape(one["time"])} & {*shape(other["time"])}:
                    yield one, other, start


BOUNDS = {
    "within": ({"within": "9 us"}, apart(9, 9)),
    "keep": ({"keep": ("15 us", "forever")}, apart(15, 10**9)),
    "last": ({"last": 2}, with_last(2)),
    "window": ({"window": ps.window("12 us", slide="5 us")}, in_one_window),
}
JOINS = {
    f"{how} join, {name}": join(how, bound, pairs)
    for name, (bound, pairs) in BOUNDS.items()
    for how in ("inner", "left", "right", "full", "semi", "anti")
    # Such a join is refused whatever its keys are.
    if not (name == "last" and how in {"semi", "anti"})
}


# Functions in channels.


def doubled(batch):
    return pa.record_batch({"w": pa.compute.multiply(batch["v"], 2)})


def mapped(**given):
    def build(streams, keys):
        return streams[0].map(doubled, "w bigint", by=list(keys), **given)

    def oracle(ports, _end):
        return [(row["time"], 2 * row["v"]) for row in ports[0]]

    return KeyedOperator(build, oracle, ("time", "w"), takes=lambda sql: "map<" not in sql)


MAPS = {"map by cost": mapped(channels=True), "map by cost where it pays": mapped()}

OPERATORS = {**WINDOWS, **TOTALS, **BY_ROWS, **WHOLE, **JOINS, **MAPS}
