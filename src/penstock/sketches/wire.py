"""How sketches and routers become bytes: a tag, a few named numbers, then arrays; foreign bytes are refused.

The form is little-endian and has no time, no padding and no order that could vary, so equal objects
have equal bytes on every machine.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting

__all__ = ["pack", "unpack"]

_SIZE = 4  # bytes of the header's length


def pack(tag: str, numbers: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """The bytes of an object that is these numbers and arrays."""
    little = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for array in arrays]
    header = {"tag": tag, "numbers": dict(numbers), "arrays": [[a.dtype.str, list(a.shape)] for a in little]}
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([len(text).to_bytes(_SIZE, "little"), text, *(array.tobytes() for array in little)])


def unpack(tag: str, data: bytes) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The numbers and arrays that `pack` was given under the same tag.

    >>> unpack("demo", pack("demo", {"seed": 7}, [np.arange(3)]))
    ({'seed': 7}, [array([0, 1, 2])])
    """
    header = _header(tag, data)
    at = _SIZE + int.from_bytes(data[:_SIZE], "little")
    arrays: list[NDArray[Any]] = []
    for name, shape in header["arrays"]:
        dtype, count = np.dtype(name), int(np.prod(shape, dtype=np.int64))
        end = at + count * dtype.itemsize
        if end > len(data):
            raise BadRouting(
                f"bytes of a {tag!r} end at {len(data)}, expected {end} or more: they were cut off"
            )
        array = np.frombuffer(data, dtype, count, at).reshape(shape)
        arrays.append(array.astype(dtype.newbyteorder("=")))
        at = end
    return header["numbers"], arrays


def _header(tag: str, data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data[_SIZE : _SIZE + int.from_bytes(data[:_SIZE], "little")])
        found = header["tag"]
    except (ValueError, KeyError, TypeError):
        raise BadRouting(
            f"these {len(data)} bytes are not a {tag!r}; give what its to_bytes() returned"
        ) from None
    if found != tag:
        raise BadRouting(
            f"these bytes are a {found!r}, expected a {tag!r}; read them with the class that wrote them"
        )
    return dict(header)
