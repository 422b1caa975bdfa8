"""Clients in processes of their own that push rows as fast as they are acknowledged.

The same client pushes to a gate and to the bare Flight server; several batches are on their way at a time,
and an acknowledgement is timed from the moment its batch was handed to Flight. Redis gets one XADD for each
row, a batch as one pipeline, which is how redis-py sends many at once.
"""

import json
import multiprocessing as mp
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import flight

from penstock_lab.bench.report_rows import FIRST_US, SCHEMA, entries, report_rows

__all__ = ["PUSHING", "Clients", "Load", "Pushed"]

_PUSH: Final = flight.FlightDescriptor.for_command(json.dumps({"op": "push", "protocol": 1}).encode())
_STUCK_S: Final = 60


@dataclass(frozen=True)
class Load:
    """What one client pushes: batches in turn over its streams, at most `window` unacknowledged.

    With a `spacing_us` the event times of a stream go on from batch to batch, so far apart; without it every
    batch has the same times.
    """

    engine: str
    address: str
    streams: tuple[str, ...]
    batches: int
    batch_rows: int
    window: int
    seed: int
    spacing_us: int = 0

    def timed(self, batch: Any, sequence: int) -> Any:
        """A batch as it is pushed when so many rows of its stream came before."""
        if not self.spacing_us:
            return batch
        times = FIRST_US + np.arange(sequence, sequence + batch.num_rows) * self.spacing_us
        return batch.set_column(0, "time", pa.array(times, SCHEMA.field("time").type))


@dataclass(frozen=True)
class Pushed:
    """How long clients took for `rows` rows, and how long each batch waited for its acknowledgement."""

    rows: int
    seconds: float
    waits: NDArray[np.float64]

    @property
    def rows_per_s(self) -> float:
        """Rows acknowledged a second."""
        return self.rows / self.seconds

    def wait_ms(self, percentile: float) -> float:
        """Milliseconds to an acknowledgement."""
        return float(np.percentile(self.waits, percentile)) * 1e3


class Clients:
    """Processes that wait for loads; started once, since importing takes longer than measuring."""

    def __init__(self, number: int) -> None:
        spawn = mp.get_context("spawn")
        self._pipes, self._processes = [], []
        for _ in range(number):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            process.join(5)
            process.kill()

    def push(self, loads: Sequence[Load]) -> Pushed:
        """Push loads at the same time, at most one for each process."""
        pipes = self._pipes[: len(loads)]
        for pipe, load in zip(pipes, loads, strict=True):
            pipe.send(load)
        for pipe in pipes:
            _answer(pipe)
        for pipe in pipes:
            pipe.send("go")
        done = [_answer(pipe) for pipe in pipes]
        first, last = min(each[0] for each in done), max(each[1] for each in done)
        rows = sum(load.batches * load.batch_rows for load in loads)
        return Pushed(rows, last - first, np.concatenate([each[2] for each in done]))


def _answer(pipe: Any) -> Any:
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _serve(pipe: Any) -> None:
    while True:
        try:
            load = pipe.recv()
        except EOFError:
            return
        try:
            push = PUSHING[load.engine](load)
            pipe.send("ready")
            pipe.recv()
            began = time.monotonic()
            waits = push()
            pipe.send((began, time.monotonic(), waits))
        except Exception as error:  # noqa: BLE001 -- it is raised again by the process that measures
            pipe.send(RuntimeError(f"{load.engine}: {error!r}"))


def _turns(load: Load) -> list[tuple[str, int]]:
    """Stream and first sequence of each batch."""
    return [
        (stream, place // len(load.streams) * load.batch_rows)
        for place, stream in enumerate(islice(cycle(load.streams), load.batches))
    ]


def _over_flight(load: Load) -> Callable[[], NDArray[np.float64]]:
    batches = [report_rows(load.batch_rows, load.seed + number) for number in range(8)]
    writer, answers = flight.FlightClient(f"grpc://{load.address}").do_put(_PUSH, SCHEMA)
    turns = [
        (
            stream,
            sequence,
            json.dumps({"stream": stream, "sequence": sequence, "connect": not sequence}).encode(),
        )
        for stream, sequence in _turns(load)
    ]
    acknowledged = _Acknowledgements(load.batch_rows, load.window)
    listening = threading.Thread(target=acknowledged.listen, args=(answers,), daemon=True)
    listening.start()

    def push() -> NDArray[np.float64]:
        for (stream, sequence, said), batch in zip(turns, cycle(batches), strict=False):
            acknowledged.sending(stream, sequence)
            writer.write_with_metadata(load.timed(batch, sequence), said)
        acknowledged.wait_for(len(turns))
        writer.done_writing()
        listening.join(_STUCK_S)
        writer.close()
        return np.array(acknowledged.waits)

    return push


class _Acknowledgements:
    """Times batches; lets at most `window` of them be under way."""

    def __init__(self, batch_rows: int, window: int) -> None:
        self._rows = batch_rows
        self._window = window
        self._under_way = 0
        self._sent: dict[str, deque[tuple[int, float]]] = {}
        self._changed = threading.Condition()
        self._error: str | None = None
        self.waits: list[float] = []

    def sending(self, stream: str, sequence: int) -> None:
        """Wait for room, then start the clock of a batch."""
        with self._changed:
            self._until(lambda: self._under_way < self._window)
            self._under_way += 1
            self._sent.setdefault(stream, deque()).append((sequence + self._rows, time.monotonic()))

    def wait_for(self, batches: int) -> None:
        """Wait until that number of batches is acknowledged."""
        with self._changed:
            self._until(lambda: len(self.waits) >= batches)

    def listen(self, answers: Any) -> None:
        """Take answers until the server has no more."""
        while (message := answers.read()) is not None:
            now = time.monotonic()
            said = json.loads(message.to_pybytes())
            with self._changed:
                for each in said.get("answers", [said]):
                    self._take(each, now)
                self._changed.notify_all()

    def _take(self, answer: dict[str, Any], now: float) -> None:
        if "acknowledged" not in answer:
            self._error = f"the server answered {answer}, which would have to be sent again"
            return
        sent = self._sent[answer["stream"]]
        while sent and sent[0][0] <= answer["acknowledged"]:
            self.waits.append(now - sent.popleft()[1])
            self._under_way -= 1

    def _until(self, ready: Callable[[], bool]) -> None:
        in_time = self._changed.wait_for(lambda: ready() or self._error is not None, _STUCK_S)
        if self._error is not None or not in_time:
            raise RuntimeError(self._error or f"no acknowledgement for {_STUCK_S} s")


def _over_redis(load: Load) -> Callable[[], NDArray[np.float64]]:
    from redis import Redis  # noqa: PLC0415 -- needed by this measurement alone

    batches = [entries(report_rows(load.batch_rows, load.seed + number)) for number in range(8)]
    host, port = load.address.rsplit(":", 1)
    server = Redis(host, int(port))
    server.ping()

    def push() -> NDArray[np.float64]:
        waits = []
        for (stream, _), batch in zip(_turns(load), cycle(batches), strict=False):
            began = time.monotonic()
            pipeline = server.pipeline(transaction=False)
            for entry in batch:
                pipeline.xadd(stream, entry)
            pipeline.execute()
            waits.append(time.monotonic() - began)
        return np.array(waits)

    return push


PUSHING: Final = {"gate": _over_flight, "bare": _over_flight, "redis": _over_redis}
