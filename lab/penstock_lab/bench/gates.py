"""`penstock bench gates`: rows taken in per second, and how long a client waits for an acknowledgement.

A gate checks, stores and syncs before it acknowledges. It is measured against a bare Flight server that does
none of this, and against Redis Streams with an append-only file synced every second, on the same rows. The
engines take turns, and the best round of each counts. The delay of a redirection is measured as well.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final

from penstock_lab.bench import push_servers
from penstock_lab.bench.pushing_clients import Clients, Load, Pushed
from penstock_lab.bench.redirects import redirects
from penstock_lab.bench.timing import Measured
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["FULL", "QUICK", "Case", "Size", "gates"]

CLIENTS: Final = 4
STREAMS: Final = (1, 8, 64, 512)
BARE_FLOOR: Final = 0.5
REDIS_FLOOR: Final = 5.0
FLOOR_ROWS: Final = 10_000
SOURCE: Final = "promised for gates"


@dataclass(frozen=True)
class Case:
    """`streams` streams in batches of `batch_rows` rows; each client has `window` batches under way."""

    streams: int
    batch_rows: int

    @property
    def window(self) -> int:
        """A few large batches, or many small ones."""
        return 8 if self.batch_rows >= FLOOR_ROWS else 64

    def __str__(self) -> str:
        return f"{self.streams} stream{'s' * (self.streams > 1)}, batches of {self.batch_rows:,}"


@dataclass(frozen=True)
class Size:
    """How many batches of every kind are pushed, over all clients and at least to each stream.

    `unjudged` says why the floor against the bare server is not applied; empty if it is.
    """

    streams: tuple[int, ...]
    batches: dict[int, int]
    redis_rows: int
    repeats: int
    redirecting_s: float
    unjudged: str = ""


FULL: Final = Size(STREAMS, {100: 8_000, 10_000: 800}, redis_rows=120_000, repeats=3, redirecting_s=20)
QUICK: Final = Size(
    STREAMS,
    {100: 2_000, 10_000: 160},
    redis_rows=20_000,
    repeats=1,
    redirecting_s=5,
    unjudged="one round of a fraction of a second; the floor is for the best of several longer ones",
)

Server = Callable[[], AbstractContextManager[str]]


def gates(*, repeats: int | None = None, seed: int = 7, quick: bool = False, size: Size = FULL) -> Report:
    """Measure all cases; `quick`: fewer batches, one round."""
    size = QUICK if quick else size
    servers: dict[str, Server] = {"gate": push_servers.gate, "bare": push_servers.bare}
    if push_servers.has_redis():
        servers["redis"] = push_servers.redis
    else:
        say("redis-server is not installed: its checks fail; on Debian, apt-get install redis-server")
    with Clients(CLIENTS) as clients:
        parts = [
            _case(clients, servers, Case(streams, rows), size, repeats or size.repeats, seed)
            for rows in size.batches
            for streams in size.streams
        ]
    parts.append(redirects(push_servers.gate, seconds=size.redirecting_s, seed=seed))
    rows = [row for part in parts for row in part.rows]
    return report_here("gates", seed, rows, [check for part in parts for check in part.checks])


def _case(  # noqa: PLR0913, PLR0917 -- one measurement has all of these
    clients: Clients, servers: dict[str, Server], case: Case, size: Size, repeats: int, seed: int
) -> Measured:
    say(str(case))
    best: dict[str, Pushed] = {}
    with ExitStack() as stack:
        addresses = {engine: stack.enter_context(server()) for engine, server in servers.items()}
        for turn in range(repeats + 1):
            for engine, address in addresses.items():
                pushed = clients.push(loads(engine, address, case, size, seed, turn))
                # The first turn warms clients and servers.
                if turn and (engine not in best or pushed.rows_per_s > best[engine].rows_per_s):
                    best[engine] = pushed
    rows = tuple(_row(engine, case, pushed) for engine, pushed in best.items())
    speeds = {engine: each.rows_per_s for engine, each in best.items()}
    return Measured(rows, _checks(case, speeds, size.unjudged))


def loads(  # noqa: PLR0913, PLR0917 -- one measurement has all of these
    engine: str, address: str, case: Case, size: Size, seed: int, turn: int
) -> list[Load]:
    """What each client pushes: new streams in every turn, dealt evenly; turn 0 is an eighth as long."""
    number = min(CLIENTS, case.streams)
    batches = max(size.batches[case.batch_rows], case.streams)
    if engine == "redis":
        batches = min(batches, max(number, size.redis_rows // case.batch_rows))
    if not turn:
        batches = max(number, batches // 8)
    names = [f"reports/vehicle-{turn}-{each}" for each in range(case.streams)]
    return [
        Load(
            engine=engine,
            address=address,
            streams=tuple(names[client::number]),
            batches=-(-batches // number),
            batch_rows=case.batch_rows,
            window=case.window,
            seed=seed + client,
        )
        for client in range(number)
    ]


def _row(engine: str, case: Case, pushed: Pushed) -> dict[str, Value]:
    return {
        "engine": {"gate": "penstock", "bare": "bare Flight", "redis": "Redis Streams"}[engine],
        "case": str(case),
        "rows": pushed.rows,
        "rows_per_s": round(pushed.rows_per_s),
        "p50_ms": round(pushed.wait_ms(50), 2),
        "p99_ms": round(pushed.wait_ms(99), 2),
        "wall_s": round(pushed.seconds, 3),
    }


def _checks(case: Case, speeds: dict[str, float], unjudged: str = "") -> tuple[Check, ...]:
    def ratio(other: str) -> float | None:
        return round(speeds["gate"] / speeds[other], 2) if other in speeds else None

    redis = Check(f"ratio to Redis Streams, {case}", ratio("redis"), SOURCE, floor=REDIS_FLOOR)
    if case.batch_rows < FLOOR_ROWS:
        return (redis,)
    name = f"ratio to bare Flight, {case}"
    return (Check(name, ratio("bare"), SOURCE, floor=BARE_FLOOR, unjudged=unjudged), redis)
