"""Keyed functions for tests, the channels that run them without Spark, and which rows are accepted."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

import penstock as ps
from penstock.compile import HASH, TIME, compile_process
from penstock.runtime.exits import Exit
from penstock.runtime.process_task import ProcessTask
from penstock.runtime.results import ResultFormat
from penstock.runtime.storage import Location

TYPES = {"`k`": "bigint", "`s`": "string", "`d`": "double", "`v`": "bigint", "`wait`": "bigint"}
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


def accepted(epochs, delay):
    """The rows that are not late, and where the frontier stands after each epoch."""
    rows, frontiers, latest, frontier = [], [], None, None
    for epoch in epochs:
        rows += [row for row in epoch if frontier is None or row["time"] >= frontier]
        for row in epoch:
            latest = row["time"] if latest is None else max(latest, row["time"])
        frontier = None if latest is None else latest - delay
        frontiers.append(frontier)
    return rows, frontiers


class Channels:
    """The channels of a process and their folders, epoch after epoch."""

    def __init__(self, process, folder, channels=1):
        self.plan = compile_process(process, lambda texts: [(TYPES[each], True) for each in texts])
        self.state, self.frontier, self.epoch, self.results = ((),) * channels, None, 0, []
        self.segments, self.out = Location(f"{folder}/segments"), Location(f"{folder}/out")
        self.segments.make()
        self.out.make()

    def run(self, epochs, delay):
        """All epochs and the drain; what came out, as tuples."""
        rows, frontiers = accepted(epochs, delay)
        for epoch, frontier in zip(epochs, frontiers, strict=True):
            in_time = [row for row in epoch if self.frontier is None or row["time"] >= self.frontier]
            self.step(in_time, frontier)
        if rows:
            self.step([], 1 + max(row["time"] for epoch in epochs for row in epoch), ended=True)
        return self.tuples()

    def step(self, rows, frontier, *, ended=False):
        task = ProcessTask(
            self.plan, self.segments, str(self.epoch), self.state, self.frontier, frontier, ended, self.exits
        )
        table = self.sent(rows)
        place = self.routed(table)
        receipts = []
        for channel in range(len(self.state)):
            own = table.filter(pa.array(place == channel))
            receipts.append(task.work(channel, own if own.num_rows else None)[0])
        for receipt in receipts:
            for output in receipt.outputs:
                self.results.append(pa.ipc.open_file(self.out.input(output.name)).read_all())
        self.state = tuple(receipt.segments for receipt in receipts)
        self.frontier, self.epoch = frontier, self.epoch + 1

    def routed(self, table):
        return pc.bit_wise_and(table[HASH], 2**62 - 1).to_numpy() % len(self.state)

    @property
    def exits(self):
        return (Exit(None, self.plan.schema, ResultFormat(self.out, "arrow")),)

    def sent(self, rows):
        keys = [name for name, _ in self.plan.operator.keys]
        columns = {f"_ps_key{place}": [row[name] for row in rows] for place, name in enumerate(keys)}
        columns[HASH] = [self.hashed([row[name] for name in keys]) for row in rows]
        columns[TIME] = [row["time"] for row in rows]
        columns |= {each.name: [row.get(each.name) for row in rows] for each in self.plan.columns}
        return pa.table(columns, schema=self.plan.sent)

    def hashed(self, key):
        digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def tuples(self):
        """Key columns, microseconds and declared columns of every result, sorted."""
        if not self.results:
            return []
        table = pa.concat_tables(self.results)
        keys = [name for name, _ in self.plan.operator.keys]
        names = [*keys, TIME, *self.plan.operator.result.names]
        return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=repr)
