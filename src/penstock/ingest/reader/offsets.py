"""How far a reader has come: next sequence and promise of every stream of an inlet, and their compact text.

Spark keeps the last hundred offsets of a run, in files and in memory. As JSON numbers by name 10,000
streams take about 230 kB, packed about 80: names and sequences are compressed apart, the sequences byte
by byte of the same weight.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import DamagedCheckpoint

__all__ = ["NO_PROMISE", "Offsets"]

NO_PROMISE: Final = -(2**63)
"""In place of the promise of a stream that has made none."""


def _nothing() -> Any:
    return pa.array([], pa.string())


@dataclass(frozen=True)
class Offsets:
    """The next sequence of every stream; names ascend, so that equal offsets have equal texts.

    `promised` has the frontier of every stream that its client promised before the next sequence: no row from
    there on is below it. The array is empty as long as no stream has made a promise.
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
    promised: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

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
            return cls(
                pa.array(names, pa.string()),
                _numbers(text["following"]),
                text["began"],
                text.get("skipped", {}),
                text.get("logs", {}),
                tuple(text.get("waiting", ())),
                tuple(text.get("away", ())),
                _numbers(text["promised"]) if "promised" in text else np.empty(0, np.int64),
            )
        except (KeyError, ValueError, zlib.error) as error:
            raise DamagedCheckpoint(
                f"the offset of an inlet cannot be read ({error!r}); the checkpoint is damaged or of another "
                "version: restore it or start with a new checkpoint"
            ) from error

    def packed(self) -> dict[str, Any]:
        """A small JSON object; the first two entries are for people."""
        return {
            "streams": len(self.following),
            "rows": int(self.following.sum()),
            "names": _text(json.dumps(self.streams.to_pylist()).encode()),
            "following": _planes(self.following),
            "began": dict(sorted(self.began.items())),
            **({"skipped": dict(sorted(self.skipped.items()))} if self.skipped else {}),
            **({"logs": dict(sorted(self.logs.items()))} if self.logs else {}),
            **({"waiting": list(self.waiting)} if self.waiting else {}),
            **({"away": list(self.away)} if self.away else {}),
            **({"promised": _planes(self.promised)} if len(self.promised) else {}),
        }

    def asdict(self) -> dict[str, int]:
        """Sequences by name."""
        return dict(zip(self.streams.to_pylist(), self.following.tolist(), strict=True))

    def promises(self) -> dict[str, int]:
        """The promises by name, of the streams that have made one."""
        made = np.flatnonzero(self.promised != NO_PROMISE)
        names = self.streams.take(pa.array(made)).to_pylist()
        return dict(zip(names, self.promised[made].tolist(), strict=True))

    def hearing(self, streams: Any, frontier: NDArray[np.int64], at: NDArray[np.int64]) -> "Offsets":
        """The same with promises about rows from `at` on, as far as all rows before that were taken.

        A promise never goes back. If none says anything new, these offsets themselves are returned.

        >>> offsets, three = Offsets.of({"a": 5}), pa.array(["a", "a", "b"])
        >>> offsets.hearing(three, np.array([70, 90, 80]), np.array([5, 6, 0])).promises()
        {'a': 70}
        """
        number = self.numbers(streams)
        holds = number >= 0
        holds[holds] = at[holds] <= self.following[number[holds]]
        before = self._promised()
        promised = before.copy()
        np.maximum.at(promised, number[holds], frontier[holds])
        return replace(self, promised=promised) if (promised > before).any() else self

    def _promised(self) -> NDArray[np.int64]:
        return self.promised if len(self.promised) else np.full(len(self.following), NO_PROMISE)

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
        promised = self.promised
        if len(promised):
            promised = np.concatenate((promised, np.full(len(new), NO_PROMISE)))[order.to_numpy()]
        joined = replace(
            self,
            streams=names.take(order),
            following=following[order.to_numpy()],
            promised=promised,
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


def _planes(numbers: NDArray[np.int64]) -> str:
    """Numbers as text; bytes of the same weight stand together, which compresses best."""
    return _text(numbers.astype("<i8").reshape(-1, 1).view(np.uint8).T.tobytes())


def _numbers(text: str) -> NDArray[np.int64]:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return planes.reshape(8, -1).T.copy().view("<i8").reshape(-1).astype(np.int64)


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode()
