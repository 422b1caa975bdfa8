"""What can be asked of a directory over Arrow Flight, and who may ask it."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import flight

from penstock.errors import BadMessage, NoGate
from penstock.ingest.address import Address
from penstock.ingest.rights import Rights
from penstock.ingest.security import Security
from penstock.ingest.serving import Asked, need, text, told
from penstock.ingest.wire import as_json, from_json, parse_push

if TYPE_CHECKING:
    from penstock.ingest.directory import Directory

__all__ = ["ABOUT", "DirectoryServer"]

WAIT_S: Final = 0.5
MAX_BYTES: Final = 16 * 2**20

ABOUT: Final = {
    "register": "a gate is there: {gate, ...}; to be said again every second or two",
    "where": "the gate of a stream: {stream, metadata} or of many: {streams: [{stream, metadata}, ...]}",
    "next": "the next sequence of streams: {streams}",
    "gates": "all gates, with their streams and rates",
    "streams": "all streams, or those of an inlet: {inlet}",
    "redirect": "move streams to another gate: {streams, to}",
    "forget": "forget a gate or streams: {gate, streams}",
    "status": "the directory, its gates and the number of its streams",
}


class DirectoryServer(flight.FlightServerBase):  # type: ignore[misc] # Flight is untyped
    """Flight's calls, translated; every error of ours becomes one of Flight's with the same words."""

    def __init__(self, directory: "Directory", address: Address, security: Security) -> None:
        super().__init__((address.host, address.port), **security.server_options())
        self._directory = directory
        self._security = security

    def do_put(self, context: Any, _: Any, reader: Any, writer: Any) -> None:
        """Send every stream that comes here to its gate: who is told this address in place of a gate's."""
        with told():
            rights = self._security.rights(context)
            for chunk in _chunks(reader):
                push = parse_push(chunk.app_metadata)
                need(rights.may_push(push.stream), f"push to stream {push.stream!r}")
                try:
                    answer: Asked = {
                        "redirect": self._directory.where({push.stream: push.declare})[push.stream]
                    }
                except NoGate as error:
                    answer = {"wait": WAIT_S, "message": str(error)}
                writer.write(as_json({"stream": push.stream, **answer}))

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """Answer with one JSON object."""
        with told():
            if action.body is not None and action.body.size > MAX_BYTES:
                raise BadMessage(f"a body of {action.body.size:,} bytes; send at most {MAX_BYTES:,}")
            asked = from_json(action.body and action.body.to_pybytes(), f"the body of {action.type!r}")
            if action.type not in _ACTIONS:
                raise BadMessage(f"no action {action.type[:40]!r}; the actions are: {', '.join(ABOUT)}")
            return [as_json(_ACTIONS[action.type](self._directory, asked, self._security.rights(context)))]

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """By `where` a client tells a controller from a gate."""
        with told():
            self._security.rights(context)
            return list(ABOUT.items())


def _chunks(reader: Any) -> Iterator[Any]:
    """What a client sends, until it has ended or gone."""
    while True:
        try:
            yield reader.read_chunk()
        except (StopIteration, flight.FlightError, pa.ArrowException):
            return


def _register(directory: "Directory", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "register a gate")
    directory.register(text(asked, "gate"), {name: said for name, said in asked.items() if name != "gate"})
    return {}


def _where(directory: "Directory", asked: Asked, rights: Rights) -> Asked:
    several = "streams" in asked
    wanted = asked["streams"] if several else [asked]
    if not isinstance(wanted, list) or not all(isinstance(each, dict) for each in wanted):
        raise BadMessage(f"streams is {str(wanted)[:80]!r}; give a list of objects with stream and metadata")
    streams = {text(each, "stream"): each.get("metadata") for each in wanted}
    for stream, metadata in streams.items():
        need(rights.may_push(stream), f"push to stream {stream!r}")
        if not isinstance(metadata, dict | None):
            raise BadMessage(f"stream {stream!r}: metadata is {str(metadata)[:80]}; give an object or none")
    gates = directory.where(streams)
    return {"gates": gates} if several else {"gate": gates[text(asked, "stream")]}


def _next(directory: "Directory", asked: Asked, rights: Rights) -> Asked:
    streams = _texts(asked, "streams")
    for stream in streams:
        need(rights.may_push(stream) or rights.may_read(stream), f"ask for stream {stream!r}")
    return {"next": directory.next_sequences(streams)}


def _gates(directory: "Directory", _: Asked, rights: Rights) -> Asked:
    need(rights.administer or bool(rights.read), "look at the gates")
    return {"gates": directory.gates()}


def _streams(directory: "Directory", asked: Asked, rights: Rights) -> Asked:
    inlet = text(asked, "inlet") if asked.get("inlet") else None
    streams = directory.streams(inlet)
    if not rights.administer:
        streams = [each for each in streams if rights.may_read(each["stream"])]
    return {"streams": streams}


def _redirect(directory: "Directory", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "redirect streams")
    return directory.redirect(_texts(asked, "streams"), text(asked, "to"))


def _forget(directory: "Directory", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "forget gates or streams")
    gate = text(asked, "gate") if asked.get("gate") else None
    directory.forget(gate=gate, streams=_texts(asked, "streams") if asked.get("streams") else None)
    return {}


def _status(directory: "Directory", _: Asked, rights: Rights) -> Asked:
    need(rights.administer or bool(rights.read), "look at the directory")
    return {
        "controller": directory.address,
        "started_ms": int(directory.started * 1000),
        "gates": directory.gates(),
        "streams": len(directory.streams()),
    }


def _texts(asked: Asked, name: str) -> list[str]:
    value = asked.get(name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadMessage(f"{name} is {str(value)[:80]!r}; give a list of texts")
    return value


_ACTIONS: Final[dict[str, Callable[["Directory", Asked, Rights], Asked]]] = {
    "register": _register,
    "where": _where,
    "next": _next,
    "gates": _gates,
    "streams": _streams,
    "redirect": _redirect,
    "forget": _forget,
    "status": _status,
}
