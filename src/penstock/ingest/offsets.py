"""How far a reader has come: the next sequence of every stream of an inlet, and its compact text.

Spark keeps the last hundred offsets of a run, in files and in memory. As JSON numbers by name 10,000
streams take about 230 kB, packed about 80: names and sequences are compressed apart, the sequences byte
by byte of the same weight.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import DamagedCheckpoint

__all__ = ["Offsets"]


def _nothing() -> Any:
    return pa.array([], pa.string())


@dataclass(frozen=True)
class Offsets:
    """The next sequence of every stream; names ascend, so that equal offsets have equal texts.

    >>> start = Offsets.of({"reports/b": 7, "reports/a": 2})
    >>> start.asdict()
    {'reports/a': 2, 'reports/b': 7}
    >>> Offsets.unpacked(start.packed()).asdict() == start.asdict()
    True
    """

    streams: Any = field(default_factory=_nothing)
    following: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, following: Mapping[str, int]) -> Self:
        """From sequences by name."""
        names = sorted(following)
        return cls(pa.array(names, pa.string()), np.array([following[name] for name in names], np.int64))

    @classmethod
    def unpacked(cls, text: Mapping[str, Any]) -> Self:
        """From what `packed` gave."""
        try:
            names = json.loads(zlib.decompress(base64.b64decode(text["names"])))
            planes = np.frombuffer(zlib.decompress(base64.b64decode(text["following"])), np.uint8)
            following = planes.reshape(8, -1).T.copy().view("<i8").reshape(-1).astype(np.int64)
            streams = pa.array(names, pa.string())
        except (KeyError, ValueError, zlib.error) as error:
            raise DamagedCheckpoint(
                f"the offset of an inlet cannot be read ({error!r}); the checkpoint's spark folder is damaged "
                "or of another version: restore it or start with a new checkpoint"
            ) from error
        return cls(streams, following)

    def packed(self) -> dict[str, Any]:
        """A small JSON object; the first two entries are for people."""
        planes = self.following.astype("<i8").reshape(-1, 1).view(np.uint8).T.tobytes()
        return {
            "streams": len(self.following),
            "rows": int(self.following.sum()),
            "names": _text(json.dumps(self.streams.to_pylist()).encode()),
            "following": _text(planes),
        }

    def asdict(self) -> dict[str, int]:
        """Sequences by name."""
        return dict(zip(self.streams.to_pylist(), self.following.tolist(), strict=True))

    def joined(self, streams: Any) -> "Offsets":
        """With streams that are new to it, at sequence 0."""
        new = pc.unique(streams.filter(pc.invert(pc.is_in(streams, value_set=self.streams))))
        if not len(new):
            return self
        names = pa.concat_arrays([self.streams, new])
        order = pc.sort_indices(names)
        following = np.concatenate((self.following, np.zeros(len(new), np.int64)))
        return Offsets(names.take(order), following[order.to_numpy()])

    def numbers(self, streams: Any) -> NDArray[np.int64]:
        """The place of each stream in these offsets, -1 for one that is not there."""
        found = pc.index_in(streams, value_set=self.streams)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)

    def at(self, streams: Any) -> NDArray[np.int64]:
        """The next sequence of each of the streams; 0 for one that is new."""
        number = self.numbers(streams)
        if not len(self.following):
            return np.zeros(len(number), np.int64)
        return np.where(number < 0, 0, self.following[number])


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode()
