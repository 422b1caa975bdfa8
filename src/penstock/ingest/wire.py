"""The messages between clients, gates and readers: small UTF-8 JSON objects, checked when they come in."""

import json
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import BadMessage

__all__ = ["GATE_PORT", "PROTOCOL", "Push", "as_json", "from_json", "inlet_of", "parse_address", "parse_push"]

PROTOCOL: Final = 1
GATE_PORT: Final = 7400
MAX_ID_BYTES: Final = 255
MAX_SEQUENCE: Final = 2**62
"""Far above any count of rows, and far below where sums of 64-bit numbers wrap."""


@dataclass(frozen=True, slots=True)
class Push:
    """What a client says about one record batch: its rows have the numbers from `sequence` on."""

    stream: str
    sequence: int
    connect: bool = False
    frontier: int | None = None
    declare: dict[str, Any] | None = None


def inlet_of(stream: str) -> str:
    """The inlet of a stream's id: all streams of one schema that one query reads together.

    >>> inlet_of("reports/vehicle-17"), inlet_of("reports")
    ('reports', 'reports')
    """
    return stream.split("/", 1)[0]


def parse_address(text: str, default_port: int = GATE_PORT) -> tuple[str, int]:
    """Host and port of an address such as ``127.0.0.1:7400`` or ``[::1]:7400``.

    >>> parse_address("gate-1"), parse_address("[::1]:7401")
    (('gate-1', 7400), ('::1', 7401))
    """
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host, port = text, str(default_port)
    if not host.strip("[]") or not port.isdigit() or int(port) > 65535:
        raise BadMessage(f"no address {text!r}; give host:port, such as 127.0.0.1:{default_port}")
    return host.strip("[]"), int(port)


def as_json(message: Any) -> bytes:
    """A message as it goes over the wire.

    >>> as_json({"stream": "reports", "acknowledged": 10})
    b'{"stream":"reports","acknowledged":10}'
    """
    return json.dumps(message, separators=(",", ":")).encode()


def from_json(body: Any, what: str) -> dict[str, Any]:
    """The JSON object in these bytes; an empty body is an empty object."""
    try:
        message = json.loads(bytes(body).decode()) if body else {}
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"{what} is not UTF-8 JSON ({_short(error)}); send one JSON object") from None
    if not isinstance(message, dict):
        raise BadMessage(f"{what} is a JSON {type(message).__name__}; send one JSON object")
    return message


def parse_push(body: Any) -> Push:
    """The metadata of one pushed record batch, checked.

    >>> parse_push(b'{"stream": "reports/vehicle-17", "sequence": 100, "connect": true}')
    Push(stream='reports/vehicle-17', sequence=100, connect=True, frontier=None, declare=None)
    """
    message = from_json(body, "the metadata of a batch")
    stream: Any = message.get("stream")
    sequence: Any = message.get("sequence")
    frontier, declare = message.get("frontier"), message.get("declare")
    check_stream(stream)
    if not _is_whole(sequence) or not 0 <= sequence < MAX_SEQUENCE:
        raise BadMessage(
            f"stream {stream!r}: sequence {_short(sequence)}; give the number of the first row, from 0"
        )
    if frontier is not None and (not _is_whole(frontier) or abs(frontier) >= 2**63):
        raise BadMessage(f"stream {stream!r}: frontier {_short(frontier)}; give whole microseconds or none")
    if declare is not None and not isinstance(declare, dict):
        raise BadMessage(
            f"stream {stream!r}: declare is {_short(declare)}; give an object of metadata or none"
        )
    return Push(stream, sequence, message.get("connect") is True, frontier, declare)


def check_stream(stream: Any) -> None:
    """Refuse what cannot be a stream's id."""
    if not isinstance(stream, str) or not stream or stream.startswith("/") or not stream.isprintable():
        raise BadMessage(f"no stream id: {_short(stream)}; give printable text such as 'reports/vehicle-17'")
    if len(stream.encode()) > MAX_ID_BYTES:
        raise BadMessage(f"the stream id {_short(stream)} has over {MAX_ID_BYTES} bytes; give a shorter one")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
