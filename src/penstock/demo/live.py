"""The city's vehicles as live streams: each pushes its own reports, all over one connection."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.demo.city import SCHEMA, City
from penstock.ingest.client import Client, Connection, Pace

__all__ = ["LiveCity", "by_vehicle"]

SEEN_EVERY_S = 0.25


@dataclass
class LiveCity:
    """Pushes report after report; the stream of vehicle v17 is `inlet/v17`.

    The stream of a vehicle opens with its first report and continues after the last row that the gates hold.
    """

    city: City
    connection: Connection
    inlet: str = "reports"
    batch_seconds: float = 0.05
    rows: int = field(default=0, init=False)
    clients: dict[str, Client] = field(default_factory=dict, init=False, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients.values():
            client.close(timeout=30.0 if kind is None else 1.0)

    def drive(self, rate: float, seconds: float, seen: Callable[[], None] = lambda: None) -> None:
        """Push `rate` reports a second in all, for some seconds; `seen` is called a few times a second."""
        pace = Pace(rate, time.monotonic())
        end, seen_at = pace.start + seconds, 0.0
        for step in self._steps(pace.step):
            time.sleep(pace.pause(self.rows, time.monotonic()))
            if time.monotonic() >= end:
                return
            for vehicle, reports in by_vehicle(step):
                self._client(vehicle).push(reports)
            self.rows += step.num_rows
            if time.monotonic() >= seen_at + SEEN_EVERY_S:
                seen_at = time.monotonic()
                seen()

    @property
    def acknowledged(self) -> int:
        """Reports pushed so far that are durable."""
        return self.rows - sum(client.buffered_rows for client in self.clients.values())

    def _steps(self, rows: int) -> Iterator[pa.Table]:
        for minute in count():
            reports = self.city.reports(minute)
            for start in range(0, reports.num_rows, rows):
                yield reports.slice(start, rows)

    def _client(self, vehicle: str) -> Client:
        if vehicle not in self.clients:
            stream = f"{self.inlet}/{vehicle}"
            self.clients[vehicle] = Client(
                self.connection, stream, SCHEMA, batch_seconds=self.batch_seconds, buffer_rows=10_000
            )
        return self.clients[vehicle]


def by_vehicle(reports: pa.Table) -> list[tuple[str, pa.Table]]:
    """The reports of each vehicle, in the order of arrival.

    >>> city = City(seed=7, vehicles=10)
    >>> sum(part.num_rows for _, part in by_vehicle(city.reports(30))) == city.reports(30).num_rows
    True
    """
    codes = pc.dictionary_encode(reports["vehicle"]).combine_chunks()
    numbers = codes.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    parted = reports.take(pa.array(order))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    ends = np.append(starts[1:], len(order))
    names = codes.dictionary.to_pylist()
    return [
        (names[numbers[order[start]]], parted.slice(start, end - start))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
