"""A query of the kind that [002] Fig. 8 measures, over two streams of integers.

The drawing is lost; the text says eight operators, three of them stateful, and that all but the aggregates
take and give one integer. Chosen here: join, filter, map, map, filter, aggregate, map, aggregate.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.query import Relation
from penstock_lab.bench.data import SECOND_US, START_US, write_files

__all__ = ["Integers", "figure_8"]

COLUMNS = "time timestamp not null, number bigint not null"
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Integers:
    """`rows` integers in each of two streams over `seconds`, in `files` files each.

    The range is chosen so that a number meets about one equal number within two seconds.
    """

    rows: int
    seconds: int
    files: int
    seed: int

    def table(self, side: int) -> pa.Table:
        """One of the two streams, in order of time."""
        rng = np.random.default_rng([self.seed, side])
        time = START_US + np.arange(self.rows, dtype=np.int64) * (self.seconds * SECOND_US) // self.rows
        numbers = rng.integers(0, max(1, 4 * self.rows // self.seconds), self.rows)
        return pa.table({"time": pa.array(time, _TIME), "number": pa.array(numbers)})

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The files of both streams."""
        size = -(-self.rows // self.files)
        return (
            write_files(folder / "one", lambda: self.table(0), size),
            write_files(folder / "other", lambda: self.table(1), size),
        )


def figure_8(one: Relation, other: Relation) -> Relation:
    """Eight operators over two streams of integers, three of them stateful.

    >>> left, right = (ps.stream(name, COLUMNS, time="time") for name in ("one", "other"))
    >>> figure_8(left, right).schema.names
    ('window_start', 'window_end', 'number', 'sums', 'most')
    """
    numbers = (
        one.join(other, "number", within="2 seconds")
        .where("number % 3 <> 0")
        .select(number="number * 7 + 1")
        .select(number="number % 100003")
        .where("number % 2 = 0")
    )
    counted = numbers.group_by("number").window("10 seconds", slide="2 seconds").agg(times=ps.count())
    tens = counted.select("times", number="number % 1000")
    return tens.group_by("number").window("20 seconds").agg(sums=ps.sum("times"), most=ps.max("times"))
