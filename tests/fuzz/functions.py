"""Functions of users for map, apply and process; `operators.py` says what they mean over whole tables."""

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa

import penstock as ps


@dataclass(frozen=True)
class Taken:
    """For map(): columns under other names."""

    names: tuple[tuple[str, str], ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({name: batch[column] for name, column in self.names})


@dataclass(frozen=True)
class Counted:
    """For apply(): how many rows a window has."""

    name: str

    def __call__(self, rows: pa.Table) -> dict:
        return {self.name: pa.array([rows.num_rows], pa.int64())}


def numbered(_key, _time, _row, state):
    """For process(): the number of each row of its key."""
    count = 1 + (state["n"] if state else 0)
    return ps.Visit({"n": count}, results=[{"n": count}])


def silent(_key, _time, row, state):
    """For process() with a timeout: how many rows a key had before it fell silent."""
    if row is None:
        return ps.Visit(None, results=[state])
    return ps.Visit({"n": 1 + (state["n"] if state else 0)})


@dataclass(frozen=True)
class Alarm:
    """For process(): a timer that the first row sets and no later one moves; it tells how many rows came."""

    after: int

    def __call__(self, _key, time, row, state):
        if row is None:
            return ps.Visit(None, results=[{"n": state["n"]}])
        if state is None:
            due = time + dt.timedelta(microseconds=self.after)
            return ps.Visit({"n": 1, "due": due}, timer=due)
        return ps.Visit({"n": state["n"] + 1, "due": state["due"]}, timer=state["due"])
