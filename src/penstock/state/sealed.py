"""Small records as JSON with a checksum: a read detects a torn or altered file, and the error names it."""

import json
import zlib
from typing import Any

from penstock.errors import DamagedCheckpoint
from penstock.state.storage import Location

__all__ = ["load", "seal"]


def seal(value: Any) -> bytes:
    """The bytes of a record: one line of JSON, one line with its checksum.

    >>> seal({"n": 1}).split()[0]
    b'{"n":1}'
    """
    body = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return body + b"\n" + f"{zlib.crc32(body):08x}\n".encode()


def load(folder: Location, name: str, *, hint: str = "") -> Any:
    """The value of a record; `hint` is one more thing to do if it is damaged."""
    data = folder.read(name)
    body, _, checksum = data.rstrip(b"\n").rpartition(b"\n")
    if not body or checksum != f"{zlib.crc32(body):08x}".encode():
        raise DamagedCheckpoint(
            f"{folder.uri}/{name} is truncated or altered ({len(data)} bytes); restore it from a backup, "
            f"{hint}or start with a new checkpoint"
        )
    return json.loads(body)
