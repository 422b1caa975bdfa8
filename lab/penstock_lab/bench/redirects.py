"""What a redirection costs a client: how long rows wait while their stream goes from one gate to another.

Streams push at a steady rate to two gates, and one after another is sent to the other gate. Each row holds
its own sequence number, so what the gates hold afterwards shows any loss or disorder. A row
that a gate stored while its stream was leaving may be on both gates; readers take every number once.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

from penstock.ingest import Client, Connection
from penstock.ingest.client.rows import Pace
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import BatchLabel, IndexTicket, ReadTicket, RedirectStreams
from penstock_lab.bench.timing import Measured
from penstock_lab.reports import Check, Value, say

__all__ = ["CEILING_S", "Held", "redirects", "what_gates_hold"]

CEILING_S: Final = 0.05
SCHEMA: Final = pa.schema([("n", pa.int64())])
INLET: Final = "moves"
SOURCE: Final = "promised for redirections"

Server = Callable[[], AbstractContextManager[str]]


def redirects(  # noqa: PLR0913 -- each is one setting of the measurement
    gate: Server,
    *,
    streams: int = 20,
    rate: int = 1000,
    seconds: float = 20.0,
    moves_per_s: float = 25.0,
    seed: int = 7,
) -> Measured:
    """Measure with two such gates: `streams` streams at `rate` rows a second each."""
    say(f"redirections: {streams} streams at {rate:,} rows/s each, for {seconds:g} s")
    with gate() as one, gate() as other, Connection(one) as connection:
        clients = [Client(connection, f"{INLET}/{n}", SCHEMA, buffer_rows=100_000) for n in range(streams)]
        done = threading.Event()
        mover = threading.Thread(target=_move, args=(clients, (one, other), moves_per_s, seed, done))
        mover.start()
        _push(clients, rate, seconds)
        done.set()
        mover.join()
        for client in clients:
            client.close(30.0)
        delays = [each.seconds for client in clients for each in client.redirections]
        pushed = sum(client.sequence for client in clients)
        held = what_gates_hold((one, other), INLET)
    return Measured(
        (_row(streams, rate, delays, held),), _checks(delays, pushed, held, seconds * moves_per_s)
    )


@dataclass(frozen=True)
class Held:
    """What gates hold of an inlet, with each row's number in place of its content."""

    rows: int
    distinct: int
    wrong: int


def what_gates_hold(gates: Sequence[str], inlet: str) -> Held:
    """Read everything back: all rows, distinct ones, and those stored under a wrong number."""
    rows, wrong, numbers = 0, 0, dict[str, list[np.ndarray]]()
    for gate in gates:
        with Endpoint(gate) as endpoint:
            index = endpoint.index(IndexTicket(inlet)).to_pylist()
            ranges = tuple((each["stream"], each["low"], each["high"]) for each in index)
            for chunk in endpoint.flight.do_get(fl.Ticket(ReadTicket(inlet, ranges).encode())):
                ((stream, sequence, _),) = BatchLabel.decode(chunk.app_metadata.to_pybytes()).runs
                own = chunk.data["n"].to_numpy()
                rows += len(own)
                wrong += int((own != sequence + np.arange(len(own))).sum())
                numbers.setdefault(stream, []).append(own)
    distinct = sum(len(np.unique(np.concatenate(each))) for each in numbers.values())
    return Held(rows, distinct, wrong)


def _push(clients: Sequence[Client], rate: int, seconds: float) -> None:
    pace = Pace(rate, time.monotonic())
    end = pace.start + seconds
    pushed = 0
    while time.monotonic() < end:
        step = pa.record_batch({"n": np.arange(pushed, pushed + pace.step)}, schema=SCHEMA)
        for client in clients:
            client.push(step)
        pushed += pace.step
        time.sleep(pace.pause(pushed, time.monotonic()))


def _move(
    clients: Sequence[Client], gates: tuple[str, str], per_second: float, seed: int, done: threading.Event
) -> None:
    """Send a stream drawn at random to the other gate, `per_second` times a second."""
    rng = random.Random(seed)  # noqa: S311 -- no secret
    with Endpoint(gates[0]) as one, Endpoint(gates[1]) as other:
        endpoints = {gates[0]: one, gates[1]: other}
        while not done.wait(1.0 / per_second):
            client = rng.choice(clients)
            if client.gate in endpoints and client.acknowledged:
                target = gates[1] if client.gate == gates[0] else gates[0]
                endpoints[client.gate].ask(RedirectStreams((client.stream,), target))


def _row(streams: int, rate: int, delays: Sequence[float], held: Held) -> dict[str, Value]:
    p50, p99, most = np.percentile(delays, [50, 99, 100]) * 1000 if delays else (None, None, None)
    return {
        "engine": "penstock",
        "case": f"redirections, {streams} streams at {rate:,} rows/s",
        "rows": held.distinct,
        "rows_on_both": held.rows - held.distinct,
        "redirections": len(delays),
        "p50_ms": _rounded(p50),
        "p99_ms": _rounded(p99),
        "max_ms": _rounded(most),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 2)


def _checks(delays: Sequence[float], pushed: int, held: Held, wanted: float) -> tuple[Check, ...]:
    p99 = round(float(np.percentile(delays, 99)), 4) if delays else None
    return (
        # Without this check, redirections that never ended would improve the next one.
        Check("redirections followed", len(delays), SOURCE, floor=round(wanted / 2)),
        Check("p99 delay of a redirection, s", p99, SOURCE, ceiling=CEILING_S),
        Check("rows lost or invented by redirections", abs(pushed - held.distinct), SOURCE, ceiling=0),
        Check("rows out of place after redirections", held.wrong, SOURCE, ceiling=0),
    )
