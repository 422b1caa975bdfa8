"""All gates of an inlet together: which gates exist, which answer, and what they hold.

A gate that does not answer delays no one: it is asked in the background until it is back, and what it holds
is left out until then. The list of gates comes from the addresses given or from a controller.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import GateAway, Refused
from penstock.ingest.reader.gate_reader import INDEX, GateReader
from penstock.ingest.security.access import Access
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.protocol import GateListRequest, Request, StreamListRequest, WhereRequest

__all__ = ["GateWatch", "HeldRanges", "Promises"]

_ANSWER_S: Final = 2.0
"""A gate that takes longer is away until it has answered."""
_GATES_LAST_S: Final = 1.0
_AGAIN_S: Final = 0.25
_AT_ONCE: Final = 64
AnswerT = TypeVar("AnswerT", bound=Message)


@dataclass(frozen=True)
class Promises:
    """Frontiers that clients promised: no row of the stream from the number `at` on is below `frontier`."""

    streams: Any = field(default_factory=lambda: pa.array([], pa.string()))
    frontier: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    at: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class HeldRanges:
    """The ranges of the gates that answer, and for each range the number of its gate.

    All gates were found and asked after the time `since`; it is None while a gate is away. `logs` has the
    name of each gate's log. `known` are the streams that a controller expects rows of, each with the number
    after its last row that was ever seen, None if there is no controller; `unseen` are gates that have never
    answered, `forgotten` the gates and logs that a controller was told to forget. `promises` has the last one
    of each stream at each gate.
    """

    gates: tuple[str, ...]
    away: tuple[str, ...]
    streams: Any
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    gate: NDArray[np.int64]
    given_up: NDArray[np.bool_]
    since: float | None
    logs: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, int] | None = None
    unseen: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    promises: Promises = field(default_factory=Promises)


@dataclass(frozen=True)
class _Behind:
    """What an address stands for: gates, and what a controller knows of them."""

    gates: tuple[str, ...]
    controller: bool = False
    known: Mapping[str, int] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()


class GateWatch:
    """The gates behind some addresses, each a gate's or a controller's."""

    def __init__(self, addresses: Sequence[str], access: Access, inlet: str) -> None:
        self._access = access
        self._inlet = inlet
        self._readers: dict[str, GateReader] = {}
        self._behind = [GateReader(each, access) for each in addresses]
        self._addresses = [_Question(self._gates_behind(each)) for each in self._behind]
        self._unseen: set[str] = set()
        self._indexes: dict[str, _Question] = {}
        self._asked: _Question | None = None
        self._request: Request[Any] | None = None
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-watch")

    def held(self) -> HeldRanges:
        """Ask every gate, wait for those that usually answer, and put together what they hold."""
        self._answers(self._addresses, _GATES_LAST_S)
        self._update_gates()
        self._answers(list(self._indexes.values()), 0.0)
        return self._together()

    def tell(self, request: Request[Any]) -> None:
        """Send a request to every gate that answers; one that has just gone away gets the next."""
        there = [self._readers[name] for name, each in self._indexes.items() if each.answer is not None]
        self._all(there, request)

    def tell_controllers(self, request: Request[Any]) -> bool:
        """Send a request to every controller; whether all have answered. Raises what one refuses."""
        told = self._all([self._behind[place] for place in self._controllers()], request)
        return len(told) == len(self._controllers()) and all(each is None for each in told)

    def ask_controller(self, request: Request[AnswerT]) -> AnswerT | None:
        """Ask the first controller in the background, once a second; its last answer, if it gives any."""
        places = self._controllers()
        if not places:
            return None
        reader = self._behind[places[0]]
        if self._asked is None:
            self._asked = _Question(lambda: _answer(reader, self._request))
        self._request = request
        if self._asked.question is not None and self._asked.question.done():
            self._asked.take()
        self._asked.ask(self._pool, _GATES_LAST_S)
        return cast("AnswerT | None", self._asked.answer)

    def _controllers(self) -> list[int]:
        return [place for place, each in enumerate(self._addresses) if each.answer and each.answer.controller]

    def _all(self, readers: list[GateReader], request: Request[Any]) -> list[Exception | None]:
        """Ask several at once; what each failed with. A refusal is raised: it would come again each time."""
        asked = [self._pool.submit(each.endpoint.ask, request) for each in readers]
        wait(asked, timeout=_ANSWER_S)
        failed = [each.exception() if each.done() else GateAway("no answer yet") for each in asked]
        for error in failed:
            if isinstance(error, Refused):
                raise error
        return [error if isinstance(error, Exception) else None for error in failed]

    def close(self) -> None:
        """Stop asking."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _update_gates(self) -> None:
        """Add new gates, and drop those that every controller has forgotten."""
        listed = {address for known in self._addresses if known.answer for address in known.answer.gates}
        for address in sorted(listed - self._readers.keys()):
            self._readers[address] = GateReader(address, self._access)
            self._indexes[address] = _Question(self._index_of(self._readers[address]))
            self._unseen.add(address)
        self._unseen -= {name for name, each in self._indexes.items() if each.answer is not None}
        if all(known.answer is not None for known in self._addresses):
            for address in self._readers.keys() - listed:
                del self._readers[address], self._indexes[address]
                self._unseen.discard(address)

    def _answers(self, asked: "list[_Question]", lasting: float) -> None:
        """Ask everyone whose last answer is too old; wait for all that did not fail before."""
        for each in asked:
            each.ask(self._pool, lasting)
        wait([each.question for each in asked if each.question and each.failed is None], timeout=_ANSWER_S)
        for each in asked:
            each.take()

    def _gates_behind(self, reader: GateReader) -> Callable[[], _Behind]:
        """The gates that a controller knows, or the address itself if it is a gate's."""

        def ask() -> _Behind:
            with _closed_if_away(reader):
                if not reader.endpoint.offers(WhereRequest):
                    return _Behind((reader.address,))
                listed = reader.endpoint.ask(GateListRequest())
                streams = reader.endpoint.ask(StreamListRequest(self._inlet, brief=True)).streams
                return _Behind(
                    tuple(each["gate"] for each in listed.gates),
                    controller=True,
                    known={each["stream"]: each["next"] for each in streams if not each["empty"]},
                    forgotten=listed.forgotten,
                )

        return ask

    def _index_of(self, reader: GateReader) -> Callable[[], Any]:
        def ask() -> Any:
            with _closed_if_away(reader):
                return reader.index(self._inlet)

        return ask

    def _together(self) -> HeldRanges:
        there = {name: each for name, each in self._indexes.items() if each.answer is not None}
        tables = [each.answer for each in there.values()]
        table = pa.concat_tables(tables) if tables else INDEX.empty_table()
        every = [*self._addresses, *self._indexes.values()]
        whole = bool(there) and all(each.answer is not None for each in every)
        behind = [self._addresses[place].answer for place in self._controllers()]
        self._unseen -= there.keys()
        spoken = table.filter(table["frontier"].is_valid()).combine_chunks()
        return HeldRanges(
            gates=tuple(there),
            away=tuple(name for name in self._indexes if name not in there),
            streams=table["stream"].combine_chunks(),
            low=table["low"].to_numpy(),
            high=table["high"].to_numpy(),
            gate=np.repeat(np.arange(len(tables)), [each.num_rows for each in tables]),
            given_up=table["given_up"].to_numpy(),
            logs={name: log for name in there if (log := self._readers[name].log)},
            known={name: high for each in behind for name, high in each.known.items()} if behind else None,
            unseen=tuple(sorted(self._unseen)),
            forgotten=tuple(sorted({gate for each in behind for gate in each.forgotten})),
            since=min(each.asked for each in every) if whole else None,
            promises=Promises(
                spoken["stream"].combine_chunks(),
                spoken["frontier"].to_numpy(),
                spoken["frontier_at"].to_numpy(),
            ),
        )


class _Question:
    """A question that is asked again and again, in the background, and its last answer."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._call = ask
        self.answer: Any = None
        self.asked = 0.0
        self.failed: float | None = None
        self.question: Future[Any] | None = None
        self._sent = 0.0

    def ask(self, pool: ThreadPoolExecutor, lasting: float) -> None:
        """Ask, unless a question is open, it has failed just now, or the last answer lasts."""
        now = time.monotonic()
        lasts = self.answer is not None and now - self.asked < lasting
        failed = self.failed is not None and now - self.failed < _AGAIN_S
        if self.question is None and not lasts and not failed:
            self._sent = now
            self.question = pool.submit(self._call)

    def take(self) -> None:
        """Take the answer; a gate without one is away."""
        if self.question is None:
            return
        if not self.question.done():
            self.answer, self.failed = None, time.monotonic()
            return
        question, self.question = self.question, None
        try:
            self.answer, self.asked, self.failed = question.result(), self._sent, None
        except GateAway:
            self.answer, self.failed = None, time.monotonic()


def _answer(reader: GateReader, request: Request[Any] | None) -> Any:
    """What a controller answers; one of another version that refuses is away."""
    assert request is not None, "there is something to ask"
    try:
        with _closed_if_away(reader):
            return reader.endpoint.ask(request, _ANSWER_S)
    except Refused as error:
        raise GateAway(str(error)) from error


@contextmanager
def _closed_if_away(reader: GateReader) -> Iterator[None]:
    """Give up a connection on which no answer comes, so that the next try makes a new one."""
    try:
        yield
    except GateAway:
        reader.close()
        raise
