"""Keyed functions for tests, and what they give."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps

SCHEMA = "time timestamp, k bigint, s string, d double, v bigint, wait bigint"


class Sessions(ps.Processor):
    """Rows and the sum of v between timeouts."""

    def step(self, block):
        rows = ~block.fired
        values = pc.fill_null(block.rows["v"], 0).to_numpy()
        n, total = (np.bincount(block.runs, weights).astype(np.int64) for weights in (rows, values))
        begun = block.runs[block.first]
        n[begun] += block.state["n"].fill_null(0).to_numpy()
        total[begun] += block.state["total"].fill_null(0).to_numpy()
        table = pa.table({"n": n, "total": total})
        at = np.flatnonzero(block.fired)
        state = table.take(pa.array(block.runs[block.last]))
        return ps.Outcome(table.take(pa.array(block.runs[at])), at, state, keep=rows[block.last])


def visit_session(key, time, row, state):
    if row is None:
        return ps.Visit(None, results=[state])
    before = state or {"n": 0, "total": 0}
    return ps.Visit({"n": before["n"] + 1, "total": before["total"] + row["v"]})


class Running(ps.Processor):
    """After every row the number of rows and the sum of their values so far, and the last value."""

    def step(self, block):
        counts = np.arange(len(block.groups)) - block.first[block.groups] + 1
        n = counts + block.state["n"].fill_null(0).to_numpy()[block.groups]
        values = block.rows["v"].to_numpy()
        sums = np.cumsum(values)
        before = block.state["total"].fill_null(0).to_numpy() - (sums - values)[block.first]
        table = pa.table({"n": n, "total": sums + before[block.groups]})
        return ps.Outcome(table, np.arange(len(n)), table.take(pa.array(block.last)))


class Waiting(ps.Processor):
    """A timer `wait` after every row; when it fires after an odd number of rows, one more 7 later."""

    def step(self, block):
        rows = ~block.fired
        seen = np.cumsum(rows)
        before = block.state["n"].fill_null(0).to_numpy() - (seen - rows)[block.first]
        n = seen + before[block.groups]
        chained = np.append(False, block.fired[:-1] & (np.diff(block.groups) == 0))
        chained[block.first] = block.state["fired"].fill_null(False).to_numpy(zero_copy_only=False)
        again = np.where((n % 2 == 1) & ~chained, block.times + 7, ps.NO_TIMER)
        waits = block.times + pc.fill_null(block.rows["wait"], 0).to_numpy()
        at = np.flatnonzero(block.fired)
        state = pa.table({"n": n[block.last], "fired": block.fired[block.last]})
        return ps.Outcome(pa.table({"n": n[at]}), at, state, timers=np.where(rows, waits, again))


def waiting_oracle(rows, ended):
    """(key, time, n) of every timer that fires, row by row; the last may fire behind the end, once."""
    found, by_key = [], {}
    for row in sorted(rows, key=lambda each: each["time"]):
        by_key.setdefault(row["k"], []).append((row["time"], row["wait"]))
    for key, given in by_key.items():
        n, timer, chained = 0, None, False
        for time, wait in [*given, (None, None)]:
            while timer is not None and (time is None or timer <= time):
                over = time is None and timer > ended
                found.append((key, timer, n))
                timer = timer + 7 if n % 2 == 1 and not chained else None
                chained = True
                if over:
                    break
            if time is not None:
                n, timer, chained = n + 1, time + wait, False
    return sorted(found, key=repr)


def relation(function, keys=("k",), **options):
    stream = ps.stream("t", SCHEMA, time="time")
    return stream.group_by(*keys).process(function, **options)
