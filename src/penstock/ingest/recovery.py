"""Opening a log after any end: everything acknowledged is found, a torn tail is cut off, damage is told."""

from dataclasses import dataclass, field

from penstock.ingest.scan import Damage, scan
from penstock.ingest.segment_files import SegmentFiles
from penstock.ingest.segment_index import Line, line_of, read_index, write_index

__all__ = ["Recovered", "recover"]


@dataclass(slots=True)
class Recovered:
    """What a folder of segments holds."""

    segments: list[tuple[int, int, list[Line]]] = field(default_factory=list)
    """Number, size and index of every segment, oldest first."""
    damage: list[Damage] = field(default_factory=list)
    torn_bytes: int = 0


def recover(files: SegmentFiles) -> Recovered:
    """Read every segment: closed ones by their index, others record by record.

    A segment that is found without its index gets one, unless it is the last, which may still grow.
    """
    found = Recovered()
    numbers = files.numbers()
    for number in numbers:
        size = files.size(number)
        lines = read_index(files.index_path(number), size)
        if lines is None:
            size, lines = _scanned(files, number, size, found)
            if number != numbers[-1] and not any(each.segment == number for each in found.damage):
                write_index(files.index_path(number), size, lines)
        found.segments.append((number, size, lines))
    return found


def _scanned(files: SegmentFiles, number: int, size: int, found: Recovered) -> tuple[int, list[Line]]:
    if not size:
        return 0, []
    result = scan(number, files.mapped(number))
    found.damage += result.damage
    found.torn_bytes += result.torn
    if result.end != size:
        files.cut(number, result.end)
    return result.end, [line_of(offset, header) for offset, header in result.records]
