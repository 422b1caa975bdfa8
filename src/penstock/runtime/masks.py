"""Masks: one bit for each row of a segment that says whether it still lives there, with a checksum."""

import zlib
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DamagedCheckpoint
from penstock.runtime.storage import Location

__all__ = ["read_mask", "write_mask"]

_CHECKSUM = 4  # bytes


def write_mask(folder: Location, segment: str, stays: NDArray[np.bool_]) -> str:
    """Write a mask for the segment of that name, under a name that no other attempt can have."""
    name = f"{segment.removesuffix('.arrow')}-{uuid4().hex[:12]}.mask"
    bits = np.packbits(stays).tobytes()
    with folder.output(name) as stream:
        stream.write(zlib.crc32(bits).to_bytes(_CHECKSUM, "little") + bits)
    folder.sync(name)
    return name


def read_mask(folder: Location, name: str, rows: int) -> NDArray[np.bool_]:
    """Which of so many rows live."""
    data = folder.read(name) if folder.has(name) else b""
    checksum, bits = data[:_CHECKSUM], data[_CHECKSUM:]
    if zlib.crc32(bits).to_bytes(_CHECKSUM, "little") != checksum or len(bits) != -(-rows // 8):
        raise DamagedCheckpoint(
            f"mask {folder.uri}/{name} of {rows} rows is missing or altered ({len(data)} bytes); restore it "
            "from a backup, or start with a new checkpoint"
        )
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=rows).astype(np.bool_)
