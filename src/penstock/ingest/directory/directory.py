"""The directory: gates register, clients ask where to go; its answers survive a restart (000, section 3.3).

A policy decides every period which stream enters through which gate (`steering.py`), and with `Nodes` which
gates run (`fleet.py`).

A gate that has been silent for `away_seconds` is away: it gets no streams, and its streams go elsewhere
when their clients ask. The rows that it acknowledged stay with it; readers of them wait for it.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from penstock import threads
from penstock.control.admission import AdmissionSetup
from penstock.control.controller import Mode
from penstock.control.expected import Expected, QueryLoad
from penstock.errors import BadMessage, BadMetadata, IngestError, NoGate
from penstock.ingest.directory.control_loop import ControlLoop
from penstock.ingest.directory.fleet import Fleet
from penstock.ingest.directory.journal import Journal
from penstock.ingest.directory.lease import Lease
from penstock.ingest.directory.listing import list_gates, list_readers, list_streams
from penstock.ingest.directory.next_question import NextQuestion
from penstock.ingest.directory.nodes import Nodes
from penstock.ingest.directory.operator import Operator
from penstock.ingest.directory.registry import StreamRegistry
from penstock.ingest.directory.server import DirectoryServer
from penstock.ingest.directory.steering import Steering
from penstock.ingest.security.access import TLS, Access
from penstock.ingest.security.tokens import OPEN, Security
from penstock.ingest.wire.codec import check_stream
from penstock.ingest.wire.flight import CONTROLLER_PORT, Address, Endpoint
from penstock.ingest.wire.metadata import Metadata
from penstock.ingest.wire.protocol import (
    GateStatusRequest,
    IndexTicket,
    NextRequest,
    NextSequences,
    Registered,
)

__all__ = ["Directory", "Poller"]

CALL_S: Final = 2.0
INLETS_EVERY_S: Final = 10.0
_LOGGER = logging.getLogger("penstock.controller")


@dataclass
class _View:
    """What was seen of a gate so far: its inlets, and the generation of its index of each."""

    gate: Endpoint
    inlets: list[str] = field(default_factory=list)
    inlets_due: float = 0.0
    since: dict[str, str] = field(default_factory=dict)


class Poller:
    """A thread that looks at all gates every `seconds` seconds; a gate is asked only for what has changed."""

    def __init__(
        self, registry: StreamRegistry, lock: threading.Lock, access: Access, seconds: float
    ) -> None:
        self._registry = registry
        self._lock = lock
        self._access = access
        self._seconds = seconds
        self._views: dict[str, _View] = {}
        self._troubled: set[str] = set()
        self._stop = threading.Event()
        self._thread = threads.service("penstock-directory-poll", self._run, _LOGGER)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End after the call under way."""
        self._stop.set()
        self._thread.join()
        for view in self._views.values():
            view.gate.close()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            now = time.time()
            with self._lock:
                gates = [each.address for each in self._registry.gates()]
                there = [each for each in gates if not self._registry.is_away(each, now)]
            for gate in there:
                try:
                    self._look(gate)
                except IngestError as error:
                    # A gate that does not answer is away as soon as it has not registered for long enough.
                    _LOGGER.debug("gate %s was not looked at: %s", gate, error)
                    self._drop(gate)
                except Exception:
                    # Whatever one gate causes, the others are looked at; it is said once.
                    if gate not in self._troubled:
                        _LOGGER.exception("gate %s cannot be looked at; if it is not a gate, forget it", gate)
                    self._troubled.add(gate)
                    self._drop(gate)
                else:
                    self._troubled.discard(gate)

    def _drop(self, gate: str) -> None:
        view = self._views.pop(gate, None)
        if view is not None:
            view.gate.close()

    def _look(self, gate: str) -> None:
        view = self._views.get(gate)
        if view is None:
            view = self._views[gate] = _View(Endpoint(gate, self._access))
        if time.monotonic() >= view.inlets_due:
            view.inlets = list(view.gate.ask(GateStatusRequest(), CALL_S).inlets)
            view.inlets_due = time.monotonic() + INLETS_EVERY_S
        with self._lock:
            inlets = sorted({*view.inlets, *self._registry.inlets()})
        for inlet in inlets:
            index = view.gate.index(IndexTicket(inlet, view.since.get(inlet)), CALL_S)
            generation = (index.schema.metadata or {}).get(b"generation")
            if generation is not None:
                view.since[inlet] = generation.decode()
            with self._lock:
                self._registry.observe(gate, index)


class Directory:
    """A directory that listens at `address` and keeps its state in `folder` (without one, in memory).

    `token` and `tls` are those that it calls gates with. Port 0 takes any free one; `address` then tells it.
    `admission` says how streams are placed. With `control="observe"` it is only recorded what it would do;
    with "off" nothing is decided, and new streams go where the fewest are. `nodes` makes, from the address of
    the directory, the manager that starts and stops gates. `lease` is the right to decide over the folder,
    taken if it is not given; `advertise` is where others find it.

    >>> with Directory("127.0.0.1:0") as directory:
    ...     known = directory.register("127.0.0.1:7400")
    ...     directory.where({"reports/v1": None})
    {'reports/v1': '127.0.0.1:7400'}
    """

    def __init__(  # noqa: PLR0913 -- each is one setting with a default
        self,
        address: str = f"127.0.0.1:{CONTROLLER_PORT}",
        folder: str | Path | None = None,
        *,
        away_seconds: float = 5.0,
        poll_seconds: float = 1.0,
        admission: AdmissionSetup | None = None,
        control: Mode = "on",
        nodes: Callable[[str], Nodes] | None = None,
        lease: Lease | None = None,
        advertise: str | None = None,
        security: Security = OPEN,
        token: str | None = None,
        tls: TLS | None = None,
    ) -> None:
        wanted = Address.parse(address, CONTROLLER_PORT)
        security.check(wanted.host)
        self._lock = threading.Lock()
        setup = replace(admission or AdmissionSetup(), mode=control)
        place = None if folder is None else Path(folder)
        self._registry = StreamRegistry(place, away_seconds, time.time(), lease)
        self._access = Access(tls, token, self._registry.term)
        self._poller = Poller(self._registry, self._lock, self._access, poll_seconds)
        self._fleet = Fleet(self._registry)
        journal = None if place is None or control == "off" else Journal(place, setup)
        self._steering = Steering(self._registry, self._fleet, setup, journal)
        self.operator = Operator(self._steering, self._lock, lambda gate: Endpoint(gate, self._access))
        self._server = DirectoryServer(self, wanted, security)
        self.address = advertise or str(Address(wanted.host, self._server.port))
        self.lost = threading.Event()
        """Whether another controller has taken over: this one gives no answers and no orders any more."""
        self.started = time.time()
        with self._lock:
            self._fleet.nodes = None if nodes is None else nodes(self.address)
        self._control = ControlLoop(
            self._steering, self._lock, self._access, self.address, setup.period, self.lost
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Begin to look at gates; calls are answered from the beginning."""
        self._poller.start()
        self._control.start()
        return self

    def stop(self) -> None:
        """Stop; every answer given is on disk. Gates of a controller that was taken over are left alone."""
        self._control.stop()
        if self._fleet.nodes is not None and not self.lost.is_set():
            self._fleet.nodes.close()
        self._server.shutdown()
        self._poller.stop()
        self._steering.close()
        self._registry.close()

    def check(self) -> None:
        """Raise if another controller has taken over."""
        self._registry.check()

    def register(self, gate: str, info: Mapping[str, Any] | None = None) -> Registered:
        """A gate says that it is there, and hears of readers; it repeats this well within `away_seconds`."""
        address, now = str(Address.parse(gate)), time.time()
        with self._lock:
            new = self._registry.is_away(address, now)
            self._registry.register(address, dict(info or {}), now)
        if new:
            _LOGGER.info("gate %s is there", address)
        with self._lock:
            readers, forgotten = self._registry.readers(), self._registry.readers(forgotten=True)
            most, reason = self._steering.intake.get(address, (None, None))
        return Registered(
            tuple((each.inlet, each.reader) for each in readers),
            tuple((each.inlet, each.reader) for each in forgotten),
            term=self._registry.term,
            most_rows=most,
            reason=reason,
        )

    def where(
        self,
        streams: Mapping[str, Mapping[str, Any] | None],
        producers: Mapping[str, int] | None = None,
    ) -> dict[str, str]:
        """The gate of each stream; new ones get one, by the metadata they come with.

        Streams of a producer that is not the newest any more get none.
        """
        for stream in streams:
            check_stream(stream)
        known = {stream: _checked(stream, metadata) for stream, metadata in streams.items()}
        with self._lock:
            given = producers or {}
            asked = {
                stream: metadata
                for stream, metadata in known.items()
                if stream not in given or given[stream] >= self._registry.producer(stream)
            }
            return self._registry.where(asked, time.time(), self._steering.admit)

    def declare(self, stream: str, metadata: Mapping[str, Any]) -> None:
        """Say what is known of a stream's rate, in place of what was said before, also before it flows."""
        check_stream(stream)
        known = Metadata.of(metadata).given()
        with self._lock:
            self._registry.declare(stream, known)

    def next_sequences(
        self,
        streams: list[str],
        *,
        claim: bool = False,
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> NextSequences:
        """For each stream the number after the last row that was ever there; with `claim` a new producer too.

        Raises if a gate that may hold some is away: its rows could be more than the others know of. Every
        gate that may hold rows hears of a new producer before anyone else, and refuses older ones.
        """
        known = {stream: _checked(stream, said) or {} for stream, said in (metadata or {}).items()}
        question = NextQuestion(
            self._registry, streams, claim=claim, metadata=known, admit=self._steering.admit
        )
        answer = None
        while answer is None:
            with self._lock:
                requests = question.requests(time.time())
            answers = [self._ask(gate, request) for gate, request in requests.items()]
            with self._lock:
                answer = question.conclude(answers)
        return answer

    def _ask(self, gate: str, request: NextRequest) -> NextSequences:
        try:
            with Endpoint(gate, self._access) as endpoint:
                return endpoint.ask(request)
        except IngestError as error:
            raise NoGate(
                f"gate {gate}, which may hold rows of {request.streams[0]!r}, does not answer ({error}); "
                "start it again, or `forget` it"
            ) from None

    def reader_at(self, inlet: str, reader: str, upto: Mapping[str, int], run: str | None = None) -> None:
        """A reader has come so far; gates delete nothing before every reader that is known has had it.

        `run` is what people call it.
        """
        with self._lock:
            self._registry.reader_at(inlet, reader, upto, time.time(), run)

    def query(self, inlet: str, reader: str, load: QueryLoad, *, by_stream: bool = False) -> Expected | None:
        """A run says how it is; what it has to expect, with `by_stream` of each stream too."""
        with self._lock:
            return self._steering.query(inlet, reader, load, time.time(), by_stream=by_stream)

    def producer(self, stream: str) -> int:
        """The newest producer of a stream."""
        with self._lock:
            return self._registry.producer(stream)

    def readers(self) -> list[dict[str, Any]]:
        """All readers: inlet, name, run, seconds of silence, rows that they have had."""
        with self._lock:
            return list_readers(self._registry, time.time())

    def forget_reader(self, inlet: str, reader: str) -> None:
        """Forget a reader that does not come back; gates that are away hear of it when they register."""
        self.operator.forget_reader(inlet, reader)

    def forgotten_gates(self) -> list[str]:
        """The gates that were forgotten and have not come back."""
        with self._lock:
            return self._registry.forgotten()

    def redirect(self, streams: list[str], to: str) -> dict[str, list[str]]:
        """Move streams to a gate: those that were moved, and those whose gate did not answer."""
        return self.operator.redirect(streams, to)

    def gates(self) -> list[dict[str, Any]]:
        """All gates: state, load, forecast, capacity, and why admission last decided on them."""
        with self._lock:
            return list_gates(self._registry, self._steering, time.time())

    def streams(self, inlet: str | None = None) -> list[dict[str, Any]]:
        """All streams, or those of an inlet: gate, state, rate, forecast, frontier, metadata, what waits."""
        with self._lock:
            return list_streams(self._registry, self._steering, inlet, time.time())

    def forget(self, *, gate: str | None = None, streams: list[str] | None = None) -> None:
        """Forget a gate that will not come back, with whatever it held, or streams that have ended."""
        if gate is None and not streams:
            raise BadMessage("nothing to forget; give a gate or streams")
        with self._lock:
            if gate is not None:
                self._registry.forget_gate(gate)
            self._registry.forget_streams(streams or [])


def _checked(stream: str, metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    try:
        return None if metadata is None else Metadata.of(metadata).given()
    except BadMetadata as error:
        raise BadMetadata(f"stream {stream!r}: {error}") from None
