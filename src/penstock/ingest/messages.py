"""The small JSON messages between a client and a gate: what stands beside a batch, and what is answered."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from penstock.ingest.outbox import Parcel

__all__ = ["PUSH", "Answer", "beside", "inlet_of", "read_answers"]

PUSH: Final = json.dumps({"op": "push", "protocol": 1}).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate says about one stream; fields that it did not send are None."""

    stream: str
    acknowledged: int | None = None
    credit: int | None = None
    wait: float | None = None
    refused: str | None = None
    message: str | None = None
    expected: int | None = None
    redirect: str | None = None


def inlet_of(stream: str) -> str:
    """The inlet that a stream belongs to.

    >>> inlet_of("reports/vehicle-17"), inlet_of("reports")
    ('reports', 'reports')
    """
    return stream.partition("/")[0]


def beside(stream: str, parcel: Parcel, metadata: Mapping[str, Any] | None) -> pa.Buffer:
    """What goes with a batch; the stream's metadata only with the first one on a call."""
    said: dict[str, Any] = {"stream": stream, "sequence": parcel.sequence}
    if parcel.connect:
        said["connect"] = True
        if metadata is not None:
            said["declare"] = dict(metadata)
    if parcel.frontier is not None:
        said["frontier"] = parcel.frontier
    return pa.py_buffer(json.dumps(said).encode())


def read_answers(message: bytes) -> list[Answer]:
    """The answers of one message; fields not known here are passed over, for gates of later versions.

    >>> read_answers(b'{"answers": [{"stream": "a", "acknowledged": 7}, {"stream": "b"}]}')[0].acknowledged
    7
    """
    try:
        said = json.loads(message)
        parts = said.get("answers", [said])
        return [Answer(**{name: part[name] for name in _FIELDS if name in part}) for part in parts]
    except (ValueError, TypeError, AttributeError) as error:
        raise fl.FlightInternalError(f"the gate answered {message[:80]!r}, which is no answer") from error


_FIELDS: Final = tuple(Answer.__dataclass_fields__)
