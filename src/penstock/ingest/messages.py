"""The small JSON messages between a client and a gate: what stands beside a batch, and what is answered."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from penstock.ingest.outbox import Parcel
from penstock.ingest.wire import PROTOCOL, as_json

__all__ = ["PUSH", "Answer", "beside", "read_answers"]

PUSH: Final = as_json({"op": "push", "protocol": PROTOCOL})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate says about one stream; fields that it did not send are None.

    Without a stream it could not read what it was sent.
    """

    stream: str | None = None
    acknowledged: int | None = None
    credit: int | None = None
    wait: float | None = None
    refused: str | None = None
    message: str | None = None
    expected: int | None = None
    redirect: str | None = None


def beside(stream: str, parcel: Parcel, metadata: Mapping[str, Any] | None) -> pa.Buffer:
    """What goes with a batch; the stream's metadata only with the first one on a call."""
    said: dict[str, Any] = {"stream": stream, "sequence": parcel.sequence}
    if parcel.connect:
        said["connect"] = True
        if metadata is not None:
            said["declare"] = dict(metadata)
    if parcel.frontier is not None:
        said["frontier"] = parcel.frontier
    return pa.py_buffer(as_json(said))


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
