"""Arrow Flight as this room uses it: addresses, calls to gates and controllers, and errors on both sides."""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self, TypeVar, cast

import pyarrow as pa
import pyarrow.flight as fl

from penstock.errors import (
    BadMessage,
    DamagedLog,
    DamagedRows,
    GateAway,
    IngestError,
    LogEnded,
    NoGate,
    NotAllowed,
    PenstockError,
    Refused,
    Superseded,
    TooMany,
)
from penstock.ingest.security.access import Access
from penstock.ingest.wire.codec import Message
from penstock.ingest.wire.protocol import IndexTicket, Request

__all__ = [
    "CALL_SECONDS",
    "CONTROLLER_PORT",
    "GATE_PORT",
    "Address",
    "Endpoint",
    "flight_errors",
    "ingest_error",
    "parse_each",
    "require",
]

_LOGGER = logging.getLogger("penstock.gate")
GATE_PORT: Final = 7400
CONTROLLER_PORT: Final = 7300
CALL_SECONDS: Final = 10.0
# Each endpoint has its own channel: in a shared one gRPC would wait out the back-off of an earlier failure.
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
# What a server says on purpose; everything else is how a broken call looks, in more ways than are documented.
_REFUSING: Final = (
    fl.FlightUnauthenticatedError,
    fl.FlightUnauthorizedError,
    fl.FlightServerError,
    NotImplementedError,
)
AnswerT = TypeVar("AnswerT", bound=Message)
_T = TypeVar("_T")
_HOST: Final = re.compile(r"[A-Za-z0-9_.:%-]+")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a gate or a controller listens.

    >>> str(Address.parse("[::1]")), Address.parse("gate-3:7401").location(tls=True)
    ('[::1]:7400', 'grpc+tls://gate-3:7401')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int = GATE_PORT) -> "Address":
        """Read host, host:port or [IPv6]:port; `port` is used where none is given."""
        text = text.strip()
        host, colon, number = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            host, number = text, str(port)
        host = host.strip("[]")
        if not _HOST.fullmatch(host) or not number.isascii() or not number.isdigit() or int(number) > 65535:
            raise BadMessage(f"no address {text!r}; give host:port, such as 127.0.0.1:{port}")
        return cls(host, int(number))

    def location(self, *, tls: bool) -> str:
        """The address as Flight takes it."""
        return f"{'grpc+tls' if tls else 'grpc'}://{self}"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint:
    """An open channel to one gate or controller; close it after use.

    `address` may name several controllers, of which one decides and the others stand by, as `a:7300/b:7300`.
    What one does not answer, the next one is asked; the one that answers is the first to be asked then.
    """

    def __init__(
        self, address: str | Address, access: Access | None = None, *, port: int = GATE_PORT
    ) -> None:
        self.others = parse_each(address, port) if isinstance(address, str) else (address,)
        self.address = self.others[0]
        self.access = access or Access()
        self._opening = threading.Lock()
        self._channels: dict[Address, fl.FlightClient] = {}
        self.flight = self._channel(self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the channel."""
        for each in self._channels.values():
            each.close()

    def ask(self, request: Request[AnswerT], timeout: float = CALL_SECONDS) -> AnswerT:
        """Send a request and return its answer."""
        body = self.act(request.action, request.encode(), timeout)
        try:
            return cast("AnswerT", request.reply.decode(body))
        except BadMessage as error:
            raise Refused(f"{self.address} gave an answer that cannot be read: {error}") from None

    def act(self, action: str, body: bytes, timeout: float = CALL_SECONDS) -> bytes:
        """Call an action; the body of its first result, or nothing."""

        def call(server: fl.FlightClient) -> bytes:
            for result in server.do_action(fl.Action(action, body), self.access.options(timeout)):
                return bytes(result.body.to_pybytes())
            return b""

        return self._any(call)

    def offers(self, request: type[Request[AnswerT]], timeout: float = CALL_SECONDS) -> bool:
        """Whether the server knows a request."""

        def call(server: fl.FlightClient) -> bool:
            try:
                listed = list(server.list_actions(self.access.options(timeout)))
            except NotImplementedError:
                return False
            return any(each.type == request.action for each in listed)

        return self._any(call)

    def index(self, ticket: IndexTicket, timeout: float = CALL_SECONDS) -> pa.Table:
        """The ranges that a gate holds."""
        return self._any(
            lambda server: server.do_get(fl.Ticket(ticket.encode()), self.access.options(timeout)).read_all()
        )

    def _any(self, call: Callable[[fl.FlightClient], _T]) -> _T:
        """What the first server answers that does, beginning with the one that answered last."""
        first: GateAway | None = None
        at = self.others.index(self.address)
        for address in (*self.others[at:], *self.others[:at]):
            server = self._channel(address)
            try:
                found = call(server)
            except (fl.FlightError, pa.ArrowException, OSError) as error:
                ours = ingest_error(error, address)
                if not isinstance(ours, GateAway):
                    raise ours from None
                first = first or ours
            else:
                self.address, self.flight = address, server
                return found
        assert first is not None, "there is an address"
        raise first

    def _channel(self, address: Address) -> fl.FlightClient:
        with self._opening:
            if address not in self._channels:
                self._channels[address] = self._opened(address)
            return self._channels[address]

    def _opened(self, address: Address) -> fl.FlightClient:
        return fl.FlightClient(
            address.location(tls=self.access.tls is not None),
            generic_options=list(_OPTIONS),
            **self.access.arguments,
        )


def parse_each(text: str, port: int = GATE_PORT) -> tuple[Address, ...]:
    """The addresses of controllers of which one decides, separated by slashes.

    >>> [str(each) for each in parse_each("10.0.0.1:7300/10.0.0.2", 7300)]
    ['10.0.0.1:7300', '10.0.0.2:7300']
    """
    return tuple(dict.fromkeys(Address.parse(each, port) for each in text.split("/")))


def ingest_error(error: Exception, address: Address) -> IngestError:
    """An error of Flight as one of ours: GateAway if another try may succeed, otherwise Refused."""
    # gRPC adds its own context below the message, and Flight a frame above it.
    text = re.split(r"\.? ?(?:gRPC client debug context|Client context|Detail):", str(error))[0]
    text = re.sub(r"^Flight \w+(?: \w+)* error, with message: ", "", text).strip() or type(error).__name__
    if isinstance(error, _REFUSING):
        if text.startswith(f"{DamagedLog.__name__}: "):
            return DamagedRows(f"{address} refused: {text}")
        return Refused(f"{address} refused: {text}")
    return GateAway(f"no answer from {address}: {text}; see that it runs and that the address is right")


@contextmanager
def flight_errors() -> Iterator[None]:
    """Errors of ours as Flight sends them to a client, with the same words; a passing one as unavailable."""
    try:
        yield
    except NotAllowed as error:
        raise fl.FlightUnauthorizedError(str(error)) from None
    except (NoGate, TooMany, LogEnded, Superseded) as error:
        raise fl.FlightUnavailableError(str(error)) from None
    except PenstockError as error:
        raise fl.FlightServerError(f"{type(error).__name__}: {error}") from None
    except fl.FlightError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise fl.FlightServerError(f"the call could not be served: {error}") from None
    except Exception:
        _LOGGER.exception("a call was ended by an unexpected error")
        raise


def require(allowed: bool, what: str) -> None:  # noqa: FBT001 -- reads as a sentence
    """Raise NotAllowed unless the caller has the right to do something."""
    if not allowed:
        raise NotAllowed(f"this token may not {what}; use one with that right")
