"""Sessions and windows of counts in the suite: their builders, and oracles that take rows one by one."""

import penstock as ps
from operators.contract import Case


def session_windows(stream, row, gap, keys, *, own=None, function=None):
    """Without tuples below the frontier, so that the oracle needs no epochs; `test_sessions` has such.

    `function` is one over all rows, with what it makes of them as the oracle has them.
    """
    sessions = (stream.group_by(*keys) if keys else stream).session(f"{gap} us", late="drop")
    relation = _aggregated(sessions, own) if function is None else sessions.apply(*function[0])

    def oracle(ports, _end):
        found, opened = [], {}
        for each in sorted(ports[0], key=lambda each: each["time"]):
            key = tuple(each[name] for name in keys)
            if key not in opened or each["time"] > opened[key][-1]["time"] + gap:
                opened[key] = []
                found.append((key, opened[key]))
            opened[key].append(each)
        return [
            (rows[-1]["time"] + gap, rows[0]["time"], *key, *values)
            for key, rows in found
            for values in ([_values(rows, own)] if function is None else function[1](rows))
        ]

    return Case(relation, (row,), oracle)


def count_windows(stream, row, size, slide, keys, *, own=None):
    grouped = stream.group_by(*keys) if keys else stream
    relation = _aggregated(grouped.window(size, slide=slide, rows=True), own)

    def content(each):
        """Time, then what the aggregates read, column by column, nulls last."""
        value = () if own is not None else (each["v"] is None, each["v"] or 0)
        return each["time"], *value, each["n"]

    def oracle(ports, _end):
        found, groups = [], {}
        for each in sorted(ports[0], key=content):
            groups.setdefault(tuple(each[name] for name in keys), []).append(each)
        for key, rows in groups.items():
            for end in range(slide, len(rows) + 1, slide):
                last = rows[max(0, end - size) : end]
                found.append((last[-1]["time"], last[0]["time"], *key, *_values(last, own)))
        return found

    return Case(relation, (row,), oracle)


def _aggregated(windowed, own):
    if own is not None:
        return windowed.agg(own=own("n"))
    return windowed.agg(rows=ps.count(), total=ps.sum("v"), top=ps.max("n"))


def _values(rows, own):
    top = max(each["n"] for each in rows)
    if own is not None:
        return [sum(each["n"] for each in rows) * 1000 + top]
    values = [each["v"] for each in rows if each["v"] is not None]
    return [len(rows), sum(values) if values else None, top]
