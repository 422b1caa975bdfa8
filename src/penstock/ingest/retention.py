"""Which log files may go: those that every reader has committed, oldest first, others only if told so."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from penstock.ingest.limits import Limits
from penstock.ingest.wire import inlet_of

__all__ = ["deletable"]


class _Closed(Protocol):
    size: int
    highs: dict[str, int]


def deletable(
    closed: Mapping[int, _Closed],
    upto: Mapping[tuple[str, str], Mapping[str, int]],
    total: int,
    limits: Limits,
) -> Iterator[tuple[int, bool]]:
    """Numbers of closed files to delete now, and whether one was not committed.

    An inlet that nobody reads is not committed. The cost is the streams of committed files; of any other
    file only those up to the first that is not committed.
    """
    done = [number for number in sorted(closed) if _committed(closed[number].highs, upto)]
    kept = sum(closed[number].size for number in done)
    for number in done:
        if kept <= limits.keep_bytes and total <= limits.store_bytes:
            break
        kept -= closed[number].size
        total -= closed[number].size
        yield number, False
    if limits.discard_uncommitted:
        for number in sorted(set(closed) - set(done)):
            if total <= limits.store_bytes:
                break
            total -= closed[number].size
            yield number, True


def _committed(highs: Mapping[str, int], upto: Mapping[tuple[str, str], Mapping[str, int]]) -> bool:
    readers: dict[str, list[Mapping[str, int]]] = {}
    for (inlet, _), known in upto.items():
        readers.setdefault(inlet, []).append(known)
    return all(
        inlet_of(stream) in readers
        and all(known.get(stream, 0) >= high for known in readers[inlet_of(stream)])
        for stream, high in highs.items()
    )
