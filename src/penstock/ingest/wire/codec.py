"""How a message is written and read: one JSON object, every field of it checked.

The class of a message declares its fields with `checked(check)`. A check takes the name and the value of a
field, and returns the value to keep or raises `BadMessage`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from math import isfinite
from typing import Any, ClassVar, Final, Self, TypeAlias

from penstock.errors import BadMessage

__all__ = ["Message", "as_json", "check_stream", "checked", "from_json", "short"]

MAX_ID_BYTES: Final = 255
MAX_READER: Final = 200
MAX_SEQUENCE: Final = 2**62
"""Far above any number of rows, and far below where sums of 64-bit numbers overflow."""

Check: TypeAlias = Callable[[str, Any], Any]


def check_stream(stream: Any) -> str:
    """Return a valid stream id; raise BadMessage for anything else."""
    if not isinstance(stream, str) or not stream or stream.startswith("/") or not stream.isprintable():
        raise BadMessage(f"no stream id: {short(stream)}; give printable text such as 'reports/vehicle-17'")
    if len(stream.encode()) > MAX_ID_BYTES:
        raise BadMessage(f"the stream id {short(stream)} has over {MAX_ID_BYTES} bytes; give a shorter one")
    return stream


def as_stream(_: str, value: Any) -> str:
    return check_stream(value)


def as_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise BadMessage(f"{name} is {short(str(value))}; give text")
    return value


def as_reader(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > MAX_READER:
        raise BadMessage(f"{name} is {short(value)}; give printable text of at most {MAX_READER} characters")
    return value


def as_readers(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or not all(isinstance(each, list) and len(each) == 2 for each in value):
        raise BadMessage(f"{name} is {short(value)}; give a list of [inlet, reader]")
    return tuple((as_text("inlet", inlet), as_reader("reader", reader)) for inlet, reader in value)


def as_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadMessage(f"{name} is {short(value)}; give true or false")
    return value


def as_whole(name: str, value: Any) -> int:
    if not _is_whole(value) or abs(value) >= 2**63:
        raise BadMessage(f"{name} is {short(value)}; give a whole number of at most 64 bits")
    return int(value)


def as_count(name: str, value: Any) -> int:
    if as_whole(name, value) < 0:
        raise BadMessage(f"{name} is {value}; give a whole number, 0 or more")
    return int(value)


def as_sequence(name: str, value: Any) -> int:
    if not _is_whole(value) or not 0 <= value < MAX_SEQUENCE:
        raise BadMessage(f"{name} is {short(value)}; give the number of a row, from 0")
    return int(value)


def as_seconds(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value) or value < 0:
        raise BadMessage(f"{name} is {short(value)}; give seconds, 0 or more")
    return float(value)


def as_rates(name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise BadMessage(f"{name} is {short(value)}; give a list of rows per second")
    return tuple(as_seconds(name, each) for each in value)


def as_object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadMessage(f"{name} is {short(value)}; give an object")
    return value


def as_streams(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadMessage(f"{name} is {short(value)}; give a list of stream ids")
    return tuple(check_stream(each) for each in value)


def as_texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadMessage(f"{name} is {short(value)}; give a list of texts")
    return tuple(value)


def as_objects(name: str, value: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadMessage(f"{name} is {short(value)}; give a list of objects")
    return tuple(value)


def as_sequences(name: str, value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or not all(_is_whole(each) for each in value.values()):
        raise BadMessage(f"{name} is {short(value)}; give an object of streams with their next sequences")
    return {check_stream(stream): as_sequence(name, next_) for stream, next_ in value.items()}


def as_gates(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise BadMessage(f"{name} is {short(value)}; give an object of streams with their gates")
    return {check_stream(stream): gate for stream, gate in value.items()}


def as_ranges(name: str, value: Any) -> tuple[tuple[str, int, int], ...]:
    if not isinstance(value, list):
        raise BadMessage(f"{name} is {short(value)}; give a list of [stream, from, to]")
    ranges = []
    for each in value:
        if not isinstance(each, list) or len(each) != 3 or not all(map(_is_whole, each[1:])):
            raise BadMessage(f"no range: {short(each)}; give [stream, from, to] with 0 <= from <= to")
        stream, low, high = each
        if not 0 <= low <= high < 2**63:
            raise BadMessage(f"no range: {short(each)}; give [stream, from, to] with 0 <= from <= to")
        ranges.append((check_stream(stream), low, high))
    return tuple(ranges)


def as_runs(name: str, value: Any) -> tuple[tuple[str, int, int], ...]:
    if not isinstance(value, list):
        raise BadMessage(f"{name} is {short(value)}; give a list of [stream, sequence, rows]")
    runs = []
    for each in value:
        if not isinstance(each, list) or len(each) != 3:
            raise BadMessage(f"no run: {short(each)}; give [stream, sequence, rows]")
        runs.append((check_stream(each[0]), as_sequence("sequence", each[1]), as_count("rows", each[2])))
    return tuple(runs)


def as_metadata(name: str, value: Any) -> dict[str, dict[str, Any] | None]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadMessage(f"{name} is {short(value)}; give a list of objects with stream and metadata")
    wanted = {}
    for each in value:
        stream, metadata = check_stream(each.get("stream")), each.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise BadMessage(f"stream {stream!r}: metadata is {short(metadata)}; give an object or none")
        wanted[stream] = metadata
    return wanted


def nullable(check: Check) -> Check:
    """A check that also takes null; for a field that is always said."""
    return lambda name, value: None if value is None else check(name, value)


def checked(check: Check, default: Any = MISSING) -> Any:
    """A field of a message; one with a default may be missing or null."""
    return field(default=default, metadata={"check": check})


class Message:
    """A message: a frozen data class whose fields carry their checks."""

    __slots__ = ()
    called: ClassVar[str] = "the message"
    """What an error calls a message that cannot be read."""

    def encode(self) -> bytes:
        """The message as it goes over the wire."""
        return as_json(self.to_object())

    @classmethod
    def decode(cls, body: Any) -> Self:
        """Read and check a message; an empty body is an empty object."""
        return cls.from_object(from_json(body, cls.called))

    def to_object(self) -> dict[str, Any]:
        """The message as a JSON object."""
        said = {}
        for name, default, _ in _parts(type(self)):  # type: ignore[arg-type] # mypy does not see that classes can be hashed
            value = getattr(self, name)
            if default is MISSING or value != default:
                said[name] = value
        return said

    @classmethod
    def from_object(cls, said: Mapping[str, Any]) -> Self:
        """Check the fields of a JSON object."""
        values = {}
        for name, default, check in _parts(cls):  # type: ignore[arg-type] # as above
            value = said.get(name)
            if value is not None or default is MISSING:
                values[name] = check(name, value)
        return cls(**values)


@cache
def _parts(kind: type[Message]) -> tuple[tuple[str, Any, Check], ...]:
    """Name, default and check of every field; kept, since every batch of rows comes with a message."""
    return tuple(
        (each.name, each.default, each.metadata["check"])
        for each in fields(kind)  # type: ignore[arg-type] # every subclass is a data class
    )


def as_json(message: Any) -> bytes:
    """An object as compact JSON."""
    return json.dumps(message, separators=(",", ":")).encode()


def from_json(body: Any, what: str) -> dict[str, Any]:
    """The JSON object in a body; an empty body is an empty object."""
    try:
        message = json.loads(bytes(body).decode()) if body else {}
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"{what} is not UTF-8 JSON ({short(error)}); send one JSON object") from None
    if not isinstance(message, dict):
        raise BadMessage(f"{what} is a JSON {type(message).__name__}; send one JSON object")
    return message


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def short(value: Any) -> str:
    """A value as an error shows it, in at most 80 characters."""
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
