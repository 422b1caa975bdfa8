"""Where a run reads and writes: checked before anything starts, since one folder can hold one thing."""

import os
from collections.abc import Iterator, Sequence

from penstock.connect import Sink
from penstock.errors import BadPath
from penstock.query import Stream
from penstock.state.storage import Location

__all__ = ["check_places"]


def check_places(streams: Sequence[Stream], sinks: Sequence[Sink], at: str | os.PathLike[str] | None) -> None:
    """Refuse a file in place of a folder, and a run that would read, or delete, what it writes itself.

    A store on the network is not asked before Spark has said that it can use it.
    """
    checkpoint = None if at is None or not _is_local(at) else Location.of(at)
    written = list(_written(sinks, checkpoint))
    for _, place in written:
        place.check_folder()
    for stream in streams:
        folder = None if stream.source is None else stream.source.whole_folder
        for name, place in written:
            if folder is not None and _is_local(folder) and _reads(Location.of(folder), place):
                raise BadPath(
                    f"{name} {place.uri} is in the folder {folder!r} that stream {stream.name!r} reads; give "
                    "one outside of it, since the run would read its own files"
                )
    for name, place in written:
        if checkpoint is not None and place is not checkpoint and _within(checkpoint, place) is not None:
            raise BadPath(
                f"{name} {place.uri} is in the checkpoint {checkpoint.uri}, whose files come and go; give a "
                "folder outside of it"
            )


def _written(sinks: Sequence[Sink], checkpoint: Location | None) -> Iterator[tuple[str, Location]]:
    if checkpoint is not None:
        yield "checkpoint", checkpoint
    for sink in sinks:
        if sink.exclusive is not None and _is_local(sink.exclusive):
            yield f"the results of {sink!r} in", Location.of(sink.exclusive)


def _is_local(path: str | os.PathLike[str]) -> bool:
    text = os.fspath(path)
    return "://" not in text or text.startswith("file:")


def _reads(folder: Location, place: Location) -> bool:
    """Whether a reader of the folder finds files of the place: it skips names with a dot or underscore."""
    below = _within(folder, place)
    return below is not None and not any(part[0] in "._" for part in below.split("/") if part)


def _within(folder: Location, place: Location) -> str | None:
    """The path of a place below a folder, None if it is elsewhere."""
    outer, inner = f"{folder.uri.rstrip('/')}/", f"{place.uri.rstrip('/')}/"
    return inner.removeprefix(outer) if inner.startswith(outer) else None
