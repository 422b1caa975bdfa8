"""The stateful operators in the suite, each with an oracle in plain Python: a new one is one entry."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import penstock as ps
from operators.contract import Case
from operators.deduplicate.case import ROW, build
from operators.deduplicate.case import oracle as deduplicated
from operators.group_cases import count_windows, session_windows
from penstock.functions import DEFAULT
from penstock.operators.channelled_step import ChannelledStep
from processes import Running, Sessions, Waiting, visit_session, waiting_oracle

TIMES = st.integers(-20, 100)
SESSION = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}


def drawn(**columns):
    return st.fixed_dictionaries({"time": TIMES, **columns})


KEY = st.one_of(st.none(), st.integers(0, 4), st.integers(0, 4))


# Windows.

EVENTS = ps.stream("events", "time timestamp, k bigint, s string, v bigint, n bigint", time="time")
EVENT = drawn(
    k=KEY,
    s=st.sampled_from(["", "a", "é", None]),
    v=st.one_of(st.none(), st.integers(-9, 9)),
    n=st.integers(0, 9),
)


class Total(ps.ArrowAggregate):
    """A sum and a maximum in user code."""

    state = {"total": "bigint", "top": "bigint"}  # noqa: RUF012
    result = "bigint"
    split = True

    def accumulate(self, groups, n, *columns):
        values = columns[0].to_numpy()
        total, top = np.zeros(n, np.int64), np.full(n, -1)
        np.add.at(total, groups, values)
        np.maximum.at(top, groups, values)
        return pa.record_batch({"total": total, "top": top})

    def merge(self, left, right):
        total = left["total"].to_numpy() + right["total"].to_numpy()
        return pa.record_batch({"total": total, "top": np.maximum(left["top"], right["top"])})

    def finish(self, state):
        return pa.compute.add(pa.compute.multiply(state["total"], 1000), state["top"])


class Whole(Total):
    """The same for keys that stay whole."""

    split = False


def sliding(size, slide, offset=0):
    """The windows of a time, as bounds."""

    def windows(time):
        last = (time - offset) // slide
        first = -((size - 1 - time + offset) // slide)
        return [(n * slide + offset, n * slide + offset + size) for n in range(first, last + 1)]

    return windows


def cumulating(size, step, offset=0):
    """The windows of a time, as bounds."""

    def windows(time):
        start = (time - offset) // size * size + offset
        return [(start, end) for end in range(start + step, start + size + 1, step) if end > time]

    return windows


def windows(windowed, shapes, keys, *, own=None, late="count", lateness=0):
    if own is None:
        relation = windowed.agg(rows=ps.count(), total=ps.sum("v"), top=ps.max("n"))
    else:
        relation = windowed.agg(own=own("n"))

    def oracle(ports, _end):
        groups = {}
        for row in ports[0]:
            closed = row.get("closed")
            for bounds in (each for shape in shapes for each in shape(row["time"])):
                if late == "drop" or closed is None or bounds[1] > closed - lateness:
                    groups.setdefault((*bounds, *(row[key] for key in keys)), []).append(row)
        return [(*group, *aggregated(rows, own)) for group, rows in groups.items()]

    def late_below(frontiers, _port):
        if not frontiers or frontiers[0] is None:
            return None
        floors = [lowest(shape, frontiers[0] - lateness, late) for shape in shapes]
        return max(floors) if late == "drop" else min(floors)

    group = 2 + len(keys) if relation.schema.names[0] == "change" else None
    return Case(relation, (EVENT,), oracle, late_below=late_below, dated=late == "count", group=group)


def aggregated(rows, own):
    top = max(row["n"] for row in rows)
    if own is not None:
        return [sum(row["n"] for row in rows) * 1000 + top]
    values = [row["v"] for row in rows if row["v"] is not None]
    return [len(rows), sum(values) if values else None, top]


def lowest(shape, closed, late):
    """The lowest time that has a window left, or is not below the last end of a closed one; by looking."""
    around = range(closed - 400, closed + 400)
    passed = max(end for time in around for _, end in shape(time) if end <= closed)
    held = [time for time in around if any(end > closed for _, end in shape(time))]
    return passed if late == "drop" else min(passed, *held)


def grouped(*keys):
    return EVENTS.group_by(*keys) if keys else EVENTS


def slid(size, slide, keys, *, offset=0, own=None, late="count"):
    windowed = grouped(*keys).window(f"{size} us", f"{slide} us", f"{offset} us", late=late)
    return windows(windowed, [sliding(size, slide, offset)], keys, own=own, late=late)


def corrected(*given, keys, lateness=0, early=None, own=None):
    """Windows of many shapes that are corrected for some time or delivered early."""
    made = [ps.window(*(f"{each} us" for each in shape)) for shape in given]
    often = None if early is None else f"{early} us"
    windowed = grouped(*keys).windows(*made, lateness=f"{lateness} us", early=often)
    return windows(windowed, [sliding(*each) for each in given], keys, own=own, lateness=lateness)


def cumulated(size, step, keys, *, offset=0):
    windowed = grouped(*keys).cumulate(f"{size} us", f"{step} us", f"{offset} us")
    return windows(windowed, [cumulating(size, step, offset)], keys)


def several(*given, keys, own=None, late="count"):
    """Windows of many shapes at once: (size, slide, offset)."""
    made = [ps.window(*(f"{each} us" for each in shape)) for shape in given]
    windowed = grouped(*keys).windows(*made, late=late)
    return windows(windowed, [sliding(*each) for each in given], keys, own=own, late=late)


def totals(keys, own=None):
    """All tuples so far, however old."""
    named = {"own": own("n")} if own else {"rows": ps.count(), "total": ps.sum("v"), "top": ps.max("n")}

    def oracle(ports, _end):
        groups = {}
        for row in ports[0]:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        return [(*group, *aggregated(rows, own)) for group, rows in groups.items()]

    relation = grouped(*keys).agg(**named)
    return Case(relation, (EVENT,), oracle, late_below=lambda *_: None, group=len(keys))


# Functions over whole windows.


def listed(rows):
    """What a sum would not tell: the order of times, and each of the rows."""
    times = rows["time"].cast(pa.int64()).to_pylist()
    return {
        "n": [rows.num_rows],
        "text": [f"{times} {sorted(zip(times, rows['n'].to_pylist(), strict=True))}"],
    }


def tops(window, rows):
    """A row for each of the two greatest values, with what it is told of the window."""
    found = sorted(rows["n"].to_pylist())[-2:]
    length = (window.end - window.start).microseconds
    return pa.table({"n": found, "text": [f"{length} {window.keys}"] * len(found)})


def whole_windows(size, slide, keys, *, offset=0, function=listed, late="count", **given):
    windowed = grouped(*keys).window(f"{size} us", slide=f"{slide} us", offset=f"{offset} us", late=late)
    relation = windowed.apply(function, "n bigint, text string", **given)
    shape = sliding(size, slide, offset)

    def oracle(ports, _end):
        groups = {}
        for row in ports[0]:
            closed = row.get("closed")
            for start, end in shape(row["time"]):
                if closed is None or end > closed:
                    groups.setdefault((start, end, *(row[key] for key in keys)), []).append(row)
        return [
            (start, end, *key, *values)
            for (start, end, *key), rows in groups.items()
            for values in called(key, rows)
        ]

    def called(key, rows):
        if function is tops:
            named = dict(zip(keys, key, strict=True))
            return [(n, f"{size} {named}") for n in sorted(row["n"] for row in rows)[-2:]]
        ordered = sorted((row["time"], row["n"]) for row in rows)
        return [(len(rows), f"{[time for time, _ in ordered]} {ordered}")]

    def late_below(frontiers, _port):
        return None if not frontiers or frontiers[0] is None else lowest(shape, frontiers[0], late)

    return Case(relation, (EVENT,), oracle, late_below=late_below, dated=late == "count")


def whole_sessions(gap, keys):
    """The function `listed` over sessions."""

    def called(rows):
        found = sorted((row["time"], row["n"]) for row in rows)
        return [(len(rows), f"{[time for time, _ in found]} {found}")]

    function = (listed, "n bigint, text string"), called
    return session_windows(EVENTS, EVENT, gap, keys, function=function)


# Joins.

LEFT = ps.stream("l", "time timestamp, k bigint, v bigint", time="time")
RIGHT = ps.stream("r", "time timestamp, k bigint, w bigint", time="time")
PAIR = (drawn(k=KEY, v=st.integers(0, 9)), drawn(k=KEY, w=st.integers(0, 9)))


PAIR_TIMES = {"earliest": min, "latest": max, "left": lambda one, _: one, "right": lambda _, other: other}
CONDITIONS = {
    None: lambda _one, _other: True,
    "l.v < r.w": lambda one, other: one["v"] < other["w"],
    "l.v < r.w AND l.v > 2": lambda one, other: 2 < one["v"] < other["w"],
}


def join(how="inner", *, within=None, last=None, keep=None, time=None, condition=None):
    bound = {"last": last} if last else {"within": f"{within} us"}
    if keep:
        bound = {"keep": tuple(each if each == "forever" else f"{each} us" for each in keep)}
    relation = LEFT.join(RIGHT, "k", condition=condition, how=how, time=time, suffixes=("", "_2"), **bound)
    apart = tuple(10**9 if each == "forever" else each for each in keep or (within, within))
    settle = PAIR_TIMES[time or ("latest" if within is None else "earliest")]

    def oracle(ports, _end):
        left, right = ports
        pairs = near(left, right, *apart) if last is None else last_rows(left, right, last)
        pairs = [(i, j) for i, j in pairs if CONDITIONS[condition](left[i], right[j])]
        matched = {i for i, _ in pairs}, {j for _, j in pairs}
        if how in {"semi", "anti"}:
            chosen = [row for place, row in enumerate(left) if (place in matched[0]) == (how == "semi")]
            return [(row["time"], row["k"], row["v"]) for row in chosen]
        found = [joined(left[i], right[j], settle) for i, j in pairs]
        if how in {"left", "full"}:
            lone = [row for place, row in enumerate(left) if place not in matched[0]]
            found += [(row["time"], row["k"], row["time"], row["v"], None, None) for row in lone]
        if how in {"right", "full"}:
            lone = [row for place, row in enumerate(right) if place not in matched[1]]
            found += [(row["time"], row["k"], None, None, row["time"], row["w"]) for row in lone]
        return found

    return Case(relation, PAIR, oracle, distinct=last is not None)


def near(left, right, within, back):
    return [
        (i, j)
        for i, one in enumerate(left)
        for j, other in enumerate(right)
        if one["k"] is not None and one["k"] == other["k"] and -back <= other["time"] - one["time"] <= within
    ]


def join_by_window(how, size, slide=None, late="count"):
    """A pair in each window that holds both; what closes windows is the lesser of both frontiers."""
    shape = sliding(size, slide or size)
    window = ps.window(*(f"{each} us" for each in (size, slide or size)))
    relation = LEFT.select("k", "v").join(RIGHT.select("k", "w"), "k", window=window, how=how, late=late)

    def oracle(ports, _end):
        left, right = (
            [row | {"time": start, "end": end} for row in rows for start, end in shape(row["time"])]
            for rows in ports
        )
        pairs = near(left, right, 0, 0)
        matched = {i for i, _ in pairs}, {j for _, j in pairs}
        lone = [row for place, row in enumerate(left) if place not in matched[0]]
        if how == "anti":
            return [(*bounds(row), row["k"], row["v"]) for row in lone]
        if how == "semi":
            return [(*bounds(left[i]), left[i]["k"], left[i]["v"]) for i in matched[0]]
        found = [(*bounds(left[i]), left[i]["k"], left[i]["v"], right[j]["w"]) for i, j in pairs]
        if how == "full":
            found += [(*bounds(row), row["k"], row["v"], None) for row in lone]
            lone = [row for place, row in enumerate(right) if place not in matched[1]]
            found += [(*bounds(row), row["k"], None, row["w"]) for row in lone]
        return found

    def bounds(row):
        return row["time"], row["end"]

    def late_below(frontiers, _port):
        """By the end of the last window that both frontiers have passed."""
        known = frontiers and None not in frontiers
        return lowest(shape, min(frontiers), late) if known else None

    return Case(relation, PAIR, oracle, late_below=late_below)


def last_rows(left, right, count):
    """Every row looks at the last rows of its key before it on the other side; left goes before right."""
    order = sorted(
        (row["time"], side, i) for side, rows in enumerate((left, right)) for i, row in enumerate(rows)
    )
    seen, pairs = ([], []), []
    for _, side, i in order:
        key = (left, right)[side][i]["k"]
        same = [j for j in seen[1 - side] if key is not None and (right, left)[side][j]["k"] == key]
        pairs += [(i, j) if side == 0 else (j, i) for j in same[-count:]]
        seen[side].append(i)
    return pairs


def joined(left, right, time):
    times = left["time"], right["time"]
    return (time(*times), left["k"], times[0], left["v"], times[1], right["w"])


def product(left, right, time):
    sides = [(row["time"], row["k"], row[value]) for row, value in ((left, "v"), (right, "w"))]
    return (time(left["time"], right["time"]), *sides[0], *sides[1])


def cross(within):
    relation = LEFT.cross(RIGHT, "l.v < r.w", within=f"{within} us", suffixes=("", "_2"))

    def oracle(ports, _end):
        return [
            product(one, other, min)
            for one in ports[0]
            for other in ports[1]
            if abs(one["time"] - other["time"]) <= within and one["v"] < other["w"]
        ]

    return Case(relation, PAIR, oracle)


def cross_last(count):
    relation = LEFT.cross(RIGHT, "l.v < r.w", last=count, suffixes=("", "_2"))

    def oracle(ports, _end):
        left, right = ([row | {"k": 0} for row in rows] for rows in ports)
        found = [(ports[0][i], ports[1][j]) for i, j in last_rows(left, right, count)]
        return [product(one, other, max) for one, other in found if one["v"] < other["w"]]

    return Case(relation, PAIR, oracle, distinct=True)


# Keyed functions.

VALUES = ps.stream("values", "time timestamp, k bigint, s string, v bigint", time="time")
VALUE = drawn(k=KEY, s=st.sampled_from(["a", "b", None]), v=st.integers(0, 9))
WAITS = ps.stream("waits", "time timestamp, k bigint, wait bigint", time="time")


def sessions(function, gap):
    """Sessions end `gap` after their last row; the next one begins with a row at that time or after it."""
    relation = VALUES.group_by("k").process(function, timeout=f"{gap} us", **SESSION)

    def oracle(ports, _end):
        found, opened = [], {}
        for row in sorted(ports[0], key=lambda each: each["time"]):
            time, n, total = opened.get(row["k"], (row["time"], 0, 0))
            if n and row["time"] >= time + gap:
                found.append((time + gap, row["k"], n, total))
                n, total = 0, 0
            opened[row["k"]] = row["time"], n + 1, total + row["v"]
        return found + [(time + gap, key, n, total) for key, (time, n, total) in opened.items()]

    return Case(relation, (VALUE,), oracle)


def running():
    """Rows of one key and one time come by their content."""
    relation = VALUES.group_by("s", "k").process(Running(), **SESSION)

    def oracle(ports, _end):
        found, sums = [], {}
        for row in sorted(ports[0], key=lambda each: (each["time"], each["v"])):
            key = row["s"], row["k"]
            n, total = sums.get(key, (0, 0))
            sums[key] = n + 1, total + row["v"]
            found.append((row["time"], *key, *sums[key]))
        return found

    return Case(relation, (VALUE,), oracle)


def deduplicate(within=12):
    def oracle(ports, _end):
        passed, _ = deduplicated(ports[0], within)
        return [tuple(row[name] for name in ("time", "k", "s", "d", "v")) for row in passed]

    return Case(build(within), (ROW,), oracle)


def timers():
    options = {"state": {"n": "bigint", "fired": "boolean"}, "result": "n bigint"}
    relation = WAITS.group_by("k").process(Waiting(), **options)

    def oracle(ports, end):
        return [(time, key, n) for key, time, n in waiting_oracle(ports[0], end)]

    return Case(relation, (drawn(k=KEY, wait=st.integers(1, 30)),), oracle, distinct=True)


# Functions in channels.


def shouted(batch):
    columns = {"s": pa.compute.utf8_upper(batch["s"]), "w": pa.compute.multiply(batch["v"], 2)}
    return pa.record_batch(columns)


def channelled_map(**given):
    def oracle(ports, _end):
        return [(row["time"], row["s"] and row["s"].upper(), 2 * row["v"]) for row in ports[0]]

    return Case(VALUES.map(shouted, "s string, w bigint", **given), (VALUE,), oracle)


def channelled_step(made, oracle):
    """A step as a stage of its own, as the operator strategy has it."""
    step = ChannelledStep(made.operator, VALUES.schema.names, DEFAULT)
    return Case(VALUES.derive(step), (VALUE,), oracle)


CASES = {
    "tumbling windows": slid(7, 7, ["k"]),
    "sliding windows": slid(20, 6, ["k", "s"], offset=2),
    "sliding windows, all or none": slid(20, 6, ["k", "s"], offset=2, late="drop"),
    "long windows": slid(90, 1, ["k"]),
    "windows without a key": slid(10, 5, []),
    "windows of user code": slid(12, 4, ["k"], own=Total),
    "windows of user code without a key": slid(12, 4, [], own=Total),
    "long windows of user code without a key": slid(40, 1, [], own=Total, offset=3),
    "windows of user code, whole keys": slid(12, 4, ["s"], own=Whole),
    "long windows of user code, whole keys": slid(60, 1, ["s"], own=Whole),
    "windows apart": slid(5, 12, ["k"], offset=3),
    "cumulating windows": cumulated(24, 4, ["k"], offset=5),
    "long cumulating windows": cumulated(80, 1, ["k"]),
    "several windows": several((8, 8, 0), (60, 2, 1), (6, 18, 4), keys=["k"]),
    "several windows, all or none": several((8, 8, 0), (60, 2, 1), keys=["k"], late="drop"),
    "whole windows": whole_windows(20, 6, ["k", "s"], offset=2),
    "whole windows without a key": whole_windows(12, 4, []),
    "whole windows in long batches": whole_windows(30, 1, [], function=tops),
    "whole windows apart, all or none": whole_windows(5, 9, [], offset=3, late="drop"),
    "whole windows of keys, by windows": whole_windows(10, 3, ["k"], function=tops, partitioning="windows"),
    "whole windows of keys, by fixed batches": whole_windows(10, 3, ["k"], batch=3),
    "corrected windows": corrected((20, 6, 2), keys=["k"], lateness=9),
    "corrected windows of user code": corrected((12, 12, 0), keys=["s"], lateness=40, own=Whole),
    "long corrected windows": corrected((90, 1, 0), (10, 5, 0), keys=["k"], lateness=25),
    "early windows": corrected((20, 10, 2), keys=["k"], early=4),
    "early and corrected windows": corrected((60, 2, 0), (8, 8, 0), keys=["k"], early=15, lateness=7),
    "totals": totals(["k", "s"]),
    "totals of user code": totals(["s"], own=Whole),
    "totals of user code in parts": totals(["k"], own=Total),
    "totals without a key": totals([]),
    "totals of user code without a key": totals([], own=Total),
    "join": join(within=9),
    "join on a condition": join("left", within=9, condition="l.v < r.w"),
    "right join": join("right", within=0),
    "full join": join("full", within=15),
    "full join on a condition": join("full", within=15, condition="l.v < r.w"),
    "semi join": join("semi", within=9),
    "anti join on a condition": join("anti", within=9, condition="l.v < r.w AND l.v > 2"),
    "join that keeps rows": join("left", keep=(12, "forever"), time="left"),
    "full join by window": join_by_window("full", 8),
    "full join by sliding windows, all or none": join_by_window("full", 12, 5, late="drop"),
    "join with the last rows": join(last=2),
    "full join with the last row": join("full", last=1),
    "product": cross(6),
    "product with few last rows": cross_last(2),
    "product with the last rows": cross_last(32),
    "sessions": sessions(Sessions(), 8),
    "sessions by visits": sessions(visit_session, 8),
    "running sums": running(),
    "timers": timers(),
    "deduplicate": deduplicate(),
    "session windows": session_windows(EVENTS, EVENT, 8, ["k"]),
    "session windows without a key": session_windows(EVENTS, EVENT, 3, []),
    "session windows of user code": session_windows(EVENTS, EVENT, 6, ["k", "s"], own=Total),
    "whole sessions": whole_sessions(6, ["k", "s"]),
    "whole sessions without a key": whole_sessions(3, []),
    "windows of counts": count_windows(EVENTS, EVENT, 4, 2, ["k"]),
    "windows of counts that do not divide": count_windows(EVENTS, EVENT, 5, 3, []),
    "windows of counts of user code": count_windows(EVENTS, EVENT, 3, 1, ["s"], own=Whole),
    "map in channels": channelled_map(channels=True),
    "map by cost": channelled_map(by=["k", "s"]),
    "map by what is found": channelled_map(by="*"),
    "projection in channels": channelled_step(
        VALUES.select("time", w="v + 1"), lambda ports, _: [(row["time"], row["v"] + 1) for row in ports[0]]
    ),
    "condition in channels": channelled_step(
        VALUES.where("v > 0"),
        lambda ports, _: [
            tuple(row[name] for name in VALUES.schema.names) for row in ports[0] if row["v"] > 0
        ],
    ),
}
