"""Functions of users for map, apply and process; `operators.py` says what they mean over whole tables."""

import datetime as dt
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps


@dataclass(frozen=True)
class Taken:
    """For map(): columns under other names."""

    names: tuple[tuple[str, str], ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({name: batch[column] for name, column in self.names})


@dataclass(frozen=True)
class Picky:
    """For map(): columns as they are; it raises for a value."""

    names: tuple[str, ...]
    column: str
    value: object

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.value in batch[self.column].to_pylist():
            raise ValueError(f"{self.column} is {self.value!r}")
        return batch.select(list(self.names))


class Joined(ps.ArrowAggregate):
    """The texts of a group in the order of event time."""

    state: ClassVar = {"text": "string"}
    result = "string"

    def accumulate(self, groups, n, *columns):
        found: list[str | None] = [None] * n
        for group, text in zip(groups.tolist(), columns[0].to_pylist(), strict=True):
            if text is not None:
                found[group] = text if found[group] is None else f"{found[group]},{text}"
        return pa.record_batch({"text": pa.array(found, pa.string())})

    def merge(self, left, right):
        both = pc.binary_join_element_wise(left["text"], right["text"], ",")
        return pa.record_batch({"text": pc.coalesce(both, left["text"], right["text"])})

    def finish(self, state):
        return state["text"]


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


def fussy(key, time, row, state):
    """For process(): the number of each row of its key; it raises for rows of every third second."""
    if time.second % 3 == 0:
        raise ValueError(f"{time} is not to be had")
    return numbered(key, time, row, state)


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
