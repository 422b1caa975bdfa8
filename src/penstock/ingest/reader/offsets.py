"""How far a reader has come: the next sequence of every stream of an inlet, and its compact text.

Spark keeps the last hundred offsets of a run, in files and in memory. As JSON numbers by name 10,000
streams take about 230 kB, packed about 80: names and sequences are compressed apart, the sequences byte
by byte of the same weight.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

    `began` says where the reader began with each stream of which it did not get the first rows. `skipped` are
    the streams that the epoch up to here continued after rows that were given up, and where. `logs` has the
    log of each gate that was read. `waiting` are streams of which no row has come yet though some are
    expected, and `away` the gates that did not answer: what was known when the epoch was planned, so that a
    replay knows the same.

    >>> start = Offsets.of({"reports/b": 7, "reports/a": 2})
    >>> start.asdict()
    {'reports/a': 2, 'reports/b': 7}
    >>> Offsets.unpacked(start.packed()).asdict() == start.asdict()
    True
    """

    streams: Any = field(default_factory=_nothing)
    following: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    began: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    away: tuple[str, ...] = ()

    @classmethod
    def of(cls, following: Mapping[str, int], began: Mapping[str, int] | None = None) -> Self:
        """From sequences by name."""
        names = sorted(following)
        sequences = np.array([following[name] for name in names], np.int64)
        return cls(pa.array(names, pa.string()), sequences, dict(began or {}))

    @classmethod
    def unpacked(cls, text: Mapping[str, Any]) -> Self:
        """From what `packed` gave; nothing at all is the offset before every row."""
        if not text:
            return cls()
        try:
            names = json.loads(zlib.decompress(base64.b64decode(text["names"])))
            planes = np.frombuffer(zlib.decompress(base64.b64decode(text["following"])), np.uint8)
            following = planes.reshape(8, -1).T.copy().view("<i8").reshape(-1).astype(np.int64)
            return cls(
                pa.array(names, pa.string()),
                following,
                text["began"],
                text.get("skipped", {}),
                text.get("logs", {}),
                tuple(text.get("waiting", ())),
                tuple(text.get("away", ())),
            )
        except (KeyError, ValueError, zlib.error) as error:
            raise DamagedCheckpoint(
                f"the offset of an inlet cannot be read ({error!r}); the checkpoint is damaged or of another "
                "version: restore it or start with a new checkpoint"
            ) from error

    def packed(self) -> dict[str, Any]:
        """A small JSON object; the first two entries are for people."""
        planes = self.following.astype("<i8").reshape(-1, 1).view(np.uint8).T.tobytes()
        return {
            "streams": len(self.following),
            "rows": int(self.following.sum()),
            "names": _text(json.dumps(self.streams.to_pylist()).encode()),
            "following": _text(planes),
            "began": dict(sorted(self.began.items())),
            **({"skipped": dict(sorted(self.skipped.items()))} if self.skipped else {}),
            **({"logs": dict(sorted(self.logs.items()))} if self.logs else {}),
            **({"waiting": list(self.waiting)} if self.waiting else {}),
            **({"away": list(self.away)} if self.away else {}),
        }

    def asdict(self) -> dict[str, int]:
        """Sequences by name."""
        return dict(zip(self.streams.to_pylist(), self.following.tolist(), strict=True))

    def joined(self, streams: Any, began: Mapping[str, int] | None = None) -> "Offsets":
        """The same with new streams: at sequence 0, or where `began` says."""
        new = pc.unique(streams.filter(pc.invert(pc.is_in(streams, value_set=self.streams))))
        if not len(new):
            return self
        later = {} if not began else {name: began[name] for name in new.to_pylist() if name in began}
        names = pa.concat_arrays([self.streams, new])
        following = np.zeros(len(names), np.int64)
        following[: len(self.following)] = self.following
        order = pc.sort_indices(names)
        joined = replace(
            self,
            streams=names.take(order),
            following=following[order.to_numpy()],
            began={**self.began, **later},
        )
        if later:
            joined.following[joined.numbers(pa.array(list(later), pa.string()))] = list(later.values())
        return joined

    def moved(self, to: Mapping[str, int]) -> "Offsets":
        """The same with some streams at other sequences."""
        if not to:
            return self
        following = self.following.copy()
        following[self.numbers(pa.array(list(to), pa.string()))] = list(to.values())
        return replace(self, following=following)

    def given(self) -> set[str]:
        """The streams of which a row was given."""
        began = np.zeros(len(self.following), np.int64)
        if self.began:
            began[self.numbers(pa.array(list(self.began), pa.string()))] = list(self.began.values())
        return set(self.streams.filter(pa.array(self.following > began)).to_pylist())

    def numbers(self, streams: Any) -> NDArray[np.int64]:
        """The place of each stream in these offsets, -1 for one that is not there."""
        found = pc.index_in(streams, value_set=self.streams)
        numbers: NDArray[np.int64] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode()
