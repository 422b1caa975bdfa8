"""Views of segments: which rows of a file belong to a channel since the moves that brought it there.

A move writes one small file for each table, its rule, and gives every channel that may own rows of a segment
a reference to the whole file with a view: the rule, the channel that had the rows and the one that has them
now. Views follow each other: a later move chooses among the rows that the earlier ones left. They are
evaluated for the rows that somebody reads; where that is a whole file, the process remembers a bit for each.
"""

import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.sketches.wire import pack, unpack
from penstock.state.placing import Mask, Numbers, Placing, Read
from penstock.state.storage import Location

__all__ = ["Rule", "View", "forget", "living"]

_TAG = "move"
_DIGITS = 24  # of the digest in the name of a rule

# What this process has read and evaluated, oldest first.
_rules: dict[tuple[str, str], "Rule"] = {}
_bits: dict[tuple[str, tuple["View", ...]], bytes] = {}
_MOST_RULES = 256
_MOST_BYTES = 128 * 2**20
_held = 0  # bytes of `_bits`


@dataclass(frozen=True)
class View:
    """The rows that channel `target` got of those that channel `source` had; `rule` names the file."""

    rule: str
    source: int
    target: int


@dataclass(frozen=True, eq=False)
class Rule:
    """A placing for the rows of one table: the columns that the router hashes, and the port of its copies."""

    placing: Placing
    keys: tuple[str, ...]
    port: int

    def write(self, folder: Location, label: str) -> str:
        """Make the rule durable; its name has a digest of its content."""
        values, arrays = self.placing.packed()
        header = {"kind": self.placing.kind, "keys": self.keys, "port": self.port, "values": values}
        # A ring is thousands of small numbers, most of them like their neighbours.
        data = zlib.compress(pack(_TAG, header, arrays), level=1)
        name = f"{label}-{_digest(data)}.move"
        folder.write(name, data, Purpose.MOVE)
        return name

    @classmethod
    def read(cls, folder: Location, name: str) -> "Rule":
        """The rule with this name; an error names a file that is missing or altered."""
        data = folder.read(name) if folder.has(name) else b""
        if name != f"{name[: -_DIGITS - 6]}-{_digest(data)}.move":
            raise DamagedCheckpoint(
                f"rule {folder.uri}/{name} of a move is missing or altered ({len(data)} bytes); restore it "
                "from a backup, or start with a new checkpoint"
            )
        header, arrays = unpack(_TAG, zlib.decompress(data))
        placing = Placing.known[header["kind"]].unpacked(header["values"], arrays)
        return cls(placing, tuple(header["keys"]), header["port"])


def living(
    folder: Location, name: str, file: Any, views: tuple[View, ...], numbers: Numbers | None = None
) -> Mask | None:
    """Which rows of a file these views leave; None without views, since then all are left.

    `numbers` are those of the rows that are asked for, None for all. The answer for a row is the same either
    way, but only that for a whole file is remembered.
    """
    if not views:
        return None
    key = (f"{folder.uri}/{name}", views)
    if numbers is None and key in _bits:
        return np.unpackbits(np.frombuffer(_bits[key], np.uint8), count=file.num_rows).view(np.bool_)
    before = living(folder, name, file, views[:-1], numbers)
    view, rule = views[-1], _rule(folder, views[-1].rule)
    chosen = None if before is None else np.flatnonzero(before)
    asked = numbers
    if chosen is not None:
        asked = chosen if numbers is None else numbers[chosen]
    # The same for all who ask, another one for each file and each move of it.
    seed = xxhash.xxh3_64_intdigest(f"{name} {len(views)} {view.source}".encode())
    every = np.arange(file.num_rows) if asked is None else asked
    read = Read(file, every, rule.keys, rule.port, seed, asked)
    taken = rule.placing.takes(read, view.source, view.target)
    if chosen is None:
        found = taken
    else:
        assert before is not None
        found = np.zeros(len(before), np.bool_)
        found[chosen[taken]] = True
    if numbers is None:
        _remember(key, np.packbits(found).tobytes())
    return found


def forget() -> None:
    """Forget all that this process has read, as a new one would have."""
    global _held  # noqa: PLW0603 -- the size of what is forgotten
    _rules.clear()
    _bits.clear()
    _held = 0


def _remember(key: tuple[str, tuple[View, ...]], bits: bytes) -> None:
    global _held  # noqa: PLW0603 -- the size of what is remembered
    _bits[key] = bits
    _held += len(bits)
    while _held > _MOST_BYTES and len(_bits) > 1:
        _held -= len(_bits.pop(next(iter(_bits))))


def _rule(folder: Location, name: str) -> Rule:
    key = (folder.uri, name)
    if key not in _rules:
        _rules[key] = Rule.read(folder, name)
        while len(_rules) > _MOST_RULES:
            del _rules[next(iter(_rules))]
    return _rules[key]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]
