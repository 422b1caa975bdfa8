"""The reader of `ps.gates`: an offset holds the next row of every stream and what was promised of it.

A row never changes once it has its sequence number, so an epoch has the same rows however often it runs, and
knows of the same promises. A new promise makes a new offset, so an epoch runs for it without any row. The
driver asks gates what they hold; tasks fetch rows from them directly.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from penstock.connect.source import ARRIVED, Ahead, Offset, Reader, SourceContext, SourceNote, Split
from penstock.connect.sources.gates import GatesSource
from penstock.control.expected import Expected, QueryLoad
from penstock.durable import Purpose
from penstock.ingest.reader import GateWatch, Gathering, InletReader, Offsets, Part
from penstock.ingest.security import Access
from penstock.state.storage import Location

__all__ = ["GatesReader", "GatesSplit"]

_NAME: Final = "reader"
_ROW_BYTES: Final = 64


class GatesReader(Reader):
    """The streams of an inlet; gates are asked what they hold only when the run needs it."""

    def __init__(self, source: GatesSource, context: SourceContext) -> None:
        assert source.inlet is not None, "a stream gives its source an inlet"
        self._source = source
        self._gathering = Gathering(
            inlet=source.inlet,
            access=Access(source.tls, source.token),
            schema=pa.schema(
                [*(each.with_nullable(True) for each in context.schema.arrow()), (ARRIVED, pa.int64())]
            ),
            stream_column=source.stream_column,
            patience=source.patience / 1e6,
            arrived=ARRIVED,
        )
        watch = GateWatch(source.addresses, self._gathering.access, source.inlet)
        name = _name_of_reader(context.folder)
        self._inlet = InletReader(
            watch, source.inlet, name, patience=self._gathering.patience, run=context.run or None
        )
        self._last: tuple[Offset, Offsets] = {}, Offsets()

    def ahead(self, after: Offset) -> Ahead | None:
        """How far every stream can be read, shared fairly if there is more than an epoch takes."""
        begin = self._offsets(after)
        end = self._inlet.latest(begin, self._source.rows_per_epoch)
        if end is begin:
            return None
        offset = end.packed()
        self._last = offset, end
        return Ahead(offset, whole=not self._inlet.left, left=self._inlet.left)

    def splits(self, after: Offset, upto: Offset, tasks: int) -> Sequence[Split]:
        """The rows between two offsets, by the gates that hold them."""
        begin, end = Offsets.unpacked(after), self._offsets(upto)
        return [GatesSplit(parts, self._gathering) for parts in self._inlet.tasks(begin, end, tasks)]

    def note(self, upto: Offset) -> SourceNote:
        """Streams that are expected, gates that are away, and what clients have promised."""
        offsets = self._offsets(upto)
        promised = offsets.promises()
        all_have = len(promised) == len(offsets.streams) and promised.keys() >= set(offsets.waiting)
        return SourceNote(
            waiting=offsets.waiting,
            away=offsets.away,
            promised=promised,
            least=min(promised.values()) if promised and all_have else None,
            column=self._source.stream_column if promised else None,
        )

    def outlook(self, load: QueryLoad) -> Expected | None:
        """What the controller of the gates expects, if there is one."""
        return self._inlet.outlook(load)

    @property
    def ended(self) -> bool:
        """Clients can always push more."""
        return False

    def commit(self, upto: Offset) -> None:
        """Let gates delete what no replay can ask for."""
        self._inlet.commit(self._offsets(upto))

    def close(self) -> None:
        """Close the connections to the gates."""
        self._inlet.close()

    def _offsets(self, offset: Offset) -> Offsets:
        """Unpack an offset; the last one, which is asked for several times, is held."""
        if self._last[0] != offset:
            self._last = offset, Offsets.unpacked(offset)
        return self._last[1]


@dataclass(frozen=True)
class GatesSplit(Split):
    """Rows that one task fetches."""

    parts: tuple[Part, ...]
    gathering: Gathering = field(repr=False)  # it holds a token

    @property
    def size(self) -> int:
        """About its bytes."""
        return _ROW_BYTES * sum(last - first for part in self.parts for _, first, last in part.wanted)

    def read(self, columns: Sequence[str]) -> Iterator[Any]:
        """Only these columns and the time of arrival are sent."""
        return self.gathering.rows(self.parts, columns)


def _name_of_reader(folder: Location) -> str:
    """A name that stays with the checkpoint: for each reader, gates keep what it has not committed."""
    folder.make()
    if not folder.has(_NAME):
        folder.write(_NAME, uuid.uuid4().hex.encode(), Purpose.SOURCE)
    return folder.read(_NAME).decode()
