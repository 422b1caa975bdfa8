"""Tuples whose rate rises and falls by the wall clock, pushed to gates that a controller looks after.

Each stream gets every eighth tuple and declares between which rates it moves, and that it does so by a trend.
"""

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import numpy as np
import pyarrow as pa

from penstock.control.admission import AdmissionSetup
from penstock.ingest import Client, Connection, Directory
from penstock.ingest.directory import LocalNodes
from penstock_lab.bench.ramps import Ramps
from penstock_lab.bench.waiting import wait_until

__all__ = ["INLET", "RampGates"]

INLET: Final = "calls"
_STREAMS: Final = 8
_PERIOD_S: Final = 2.5
_PUSH_S: Final = 0.25
_SCHEMA: Final = pa.schema(
    [("time", pa.timestamp("us", tz="UTC")), ("key", pa.int64()), ("copies", pa.int64())]
)


class RampGates:
    """Controller, gates and clients, as a context manager; `address` is the controller's."""

    def __init__(self, ramps: Ramps, folder: Path, keys: int) -> None:
        self._ramps, self._folder, self._keys = ramps, folder, keys
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._push, name="ramps", daemon=True)
        self._stack = ExitStack()
        self._clients: list[Client] = []
        self.address = ""

    def __enter__(self) -> Self:
        directory = self._stack.enter_context(
            Directory(
                "127.0.0.1:0",
                self._folder,
                admission=AdmissionSetup(period=_PERIOD_S),
                nodes=lambda own: LocalNodes(self._folder / "gates", own, least=1, most=2, port=0),
            )
        )
        self.address = directory.address
        wait_until(lambda: any(each["state"] == "active" for each in directory.gates()), 60)
        rates = [rate / _STREAMS for _, rate in self._ramps.points]
        declared = {"min_rate": min(rates), "max_rate": max(rates), "transition": "trend"}
        connection = self._stack.enter_context(Connection(self.address))
        self._clients = [
            Client(connection, f"{INLET}/{number}", _SCHEMA, declared) for number in range(_STREAMS)
        ]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        for each in self._clients:
            each.close(60)
        self._stack.close()

    def _push(self) -> None:
        pushed = 0
        while pushed < self._ramps.total and not self._done.wait(_PUSH_S):
            arrived = self._ramps.arrived(time.time_ns() // 1000)
            numbers = np.arange(pushed, arrived)
            arrivals = self._ramps.arrivals(pushed, arrived)
            for place, client in enumerate(self._clients):
                own = numbers % _STREAMS == place
                if own.any():
                    times = pa.array(arrivals[own]).cast(_SCHEMA.field("time").type)
                    columns = [
                        times,
                        pa.array(numbers[own] % self._keys),
                        pa.array(np.ones(own.sum(), np.int64)),
                    ]
                    client.push(pa.record_batch(columns, schema=_SCHEMA))
            pushed = max(arrived, pushed)
