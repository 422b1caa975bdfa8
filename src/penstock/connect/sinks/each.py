"""A Python function that is called with the results of each epoch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.connect.results import EpochId, Results
from penstock.connect.sink import Delivery, Sink, SinkContext
from penstock.errors import BadSink

__all__ = ["EachSink", "each"]


@dataclass(frozen=True, repr=False)
class EachSink(Sink):
    """Calls a function on the driver, with a table and the number of the delivery."""

    function: Callable[[pa.Table, int], object]

    takes_parts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise BadSink(f"each() got {self.function!r}; give a function(table, number)")

    def open(self, context: SinkContext) -> Delivery:
        """Nothing to prepare."""
        del context
        return _EachDelivery(self.function)

    def __repr__(self) -> str:
        return f"each({getattr(self.function, '__qualname__', type(self.function).__name__)})"


@dataclass(frozen=True)
class _EachDelivery(Delivery):
    function: Callable[[pa.Table, int], object]

    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Call the function, unless there are no results."""
        if results.rows:
            self.function(results.table(), epoch.version)

    def part(self, epoch: EpochId, rows: pa.Table) -> None:
        """Call the function with some results of the epoch."""
        self.function(rows, epoch.version)


def each(function: Callable[[pa.Table, int], object]) -> EachSink:
    """Call `function(table, number)` with the results of each epoch that has any.

    The number grows from call to call. An epoch that is delivered again, after a kill, has the number and the
    rows that it had before: to get every result once, let the function replace or ignore what it knows. In a
    run with a `disorder` an epoch has several calls, all with its number. After a kill they come again,
    perhaps cut otherwise: when a process gets a number for the first time, drop what is known of it.

    >>> each(print)
    each(print)
    """
    return EachSink(function)
