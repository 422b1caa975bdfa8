"""What it costs to hand tuples from one channel to the next: measured on Penstock's own routes and Arrow IPC.

A batch is routed, cut by channel, serialised, written to a socket, read, and put together with those of
other senders. What a batch costs beyond its rows is the cost of a connection: to keep the frontier moving,
each sender sends every receiver something every so often (the dummy tuples of [002] §III.E).
"""

import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.sketches import splitmix64
from penstock_lab.algorithms import UniformHash

__all__ = ["Clock", "Handover", "best_seconds", "measure_handover"]

Clock = Callable[[], float]

# The larger batch fits into the buffer of a socket, so that one thread can write it and then read it.
_FEW, _MANY_BYTES = 16, 2**16
_ROUTED = 32_768


@dataclass(frozen=True)
class Handover:
    """Seconds of a processor: to route and cut a tuple, to send and to receive a tuple and a batch."""

    route: float
    send: float
    receive: float
    send_batch: float
    receive_batch: float


def best_seconds(work: Callable[[], object], repeats: int, clock: Clock = thread_time) -> float:
    """The least processor time of several runs, after one that does not count."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def measure_handover(table: Any, key: str, repeats: int, clock: Clock = thread_time) -> Handover:
    """Costs for tuples like those of `table`, routed by `key`."""
    batch = table.slice(0, _ROUTED).combine_chunks().to_batches()[0]
    router = UniformHash(16)
    router.route(np.zeros(1, np.uint64))
    route = best_seconds(lambda: _cut(batch, key, router), repeats, clock) / batch.num_rows
    many_rows = _MANY_BYTES * batch.num_rows // batch.nbytes
    few, many = (_transfer(batch.slice(0, rows), 40 * repeats, clock) for rows in (_FEW, many_rows))
    slopes = [max((most - least) / (many_rows - _FEW), 0.0) for least, most in zip(few, many, strict=True)]
    return Handover(route, *slopes, *(least - _FEW * slope for least, slope in zip(few, slopes, strict=True)))


def _cut(batch: Any, key: str, router: UniformHash) -> list[Any]:
    """The rows of each channel, as neighbours of one another."""
    channels = router.route(splitmix64(batch[key].to_numpy().view(np.uint64)))
    order = np.argsort(channels, kind="stable")
    ends = np.cumsum(np.bincount(channels, minlength=router.channels))
    rows = batch.take(pa.array(order))
    return [rows.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]


def _transfer(batch: Any, repeats: int, clock: Clock) -> tuple[float, float]:
    """Least seconds to send and to receive one batch."""
    one, other = socket.socketpair()
    sending = receiving = float("inf")
    with closing(one), closing(other):
        for _ in range(repeats):
            start = clock()
            message = batch.serialize()
            one.sendall(len(message).to_bytes(8, "little"))
            one.sendall(message)
            sent = clock()
            length = int.from_bytes(other.recv(8, socket.MSG_WAITALL), "little")
            read = pa.ipc.read_record_batch(other.recv(length, socket.MSG_WAITALL), batch.schema)
            # The input merger puts what several senders sent into one table.
            pa.Table.from_batches([read, read]).combine_chunks()
            receiving = min(receiving, clock() - sent)
            sending = min(sending, sent - start)
    return sending, receiving
