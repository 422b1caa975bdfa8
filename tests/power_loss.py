"""Disks that a loss of power could have left, rebuilt from a record of durable operations (penstock.durable).

What may be lost follows POSIX, not one file system:

- Bytes written after the last sync of a file may be there, be missing, or be there in some blocks only.
- A name that was created, changed or deleted since its folder was last synced may have its old or its new
  meaning. A rename happens whole or not at all. Changes of one name happen in their order.
- Folders themselves are not recorded: they are taken to exist.
- Spark's own writes are not recorded. Its offsets are there, unsynced, before the first sync of them; those
  syncs run at the same time, so that of a folder may be recorded before those of its files.
"""

import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = 4096
_LONG_AGO = 1_700_000_000
OFFSETS, PLAN = "offsets", "plan"


@dataclass
class Content:
    """The bytes of a file: as they were last synced, and every state since; `made` is when it came to be."""

    made: int = 0
    synced: bytes = b""
    later: list = field(default_factory=list)

    def after_loss(self, chance):
        """One of the contents that the file may have."""
        if not self.later or chance.random() < 0.2:
            return self.synced
        upto = chance.randint(1, len(self.later))
        newest = self.later[upto - 1]
        if chance.random() < 0.4:
            return newest
        # A block has the bytes of one of the states since the sync; beyond the synced end it may have none.
        states = [self.synced, *self.later[:upto]]
        sizes = [len(each) for each in states]
        size = chance.choice([len(newest), chance.randint(min(sizes), max(sizes)), len(self.synced)])
        whole = bytearray(size)
        for start in range(0, size, BLOCK):
            source = chance.choice([newest, newest, chance.choice(states)])
            part = source[start : min(start + BLOCK, size)]
            whole[start : start + len(part)] = part
        return bytes(whole)


@dataclass(frozen=True)
class NameChange:
    """A name that a file got, and the one that it lost."""

    content: Content | None
    gets: str = ""
    loses: str = ""

    @property
    def folder(self):
        """The folder whose sync makes it last."""
        return str(Path(self.gets or self.loses).parent)

    @property
    def names(self):
        return {each for each in (self.gets, self.loses) if each}

    def apply(self, names):
        names.pop(self.loses, None)
        if self.gets:
            names[self.gets] = self.content


class PowerLoss:
    """A recorded run under `root`; `disk` rebuilds one of the disks that a loss of power could have left."""

    def __init__(self, record, root):
        lines = (Path(record) / "operations").read_text().splitlines()
        self.operations = [{**json.loads(line), "number": number} for number, line in enumerate(lines)]
        self._bytes, self._root = Path(record) / "bytes", Path(root)

    def disk(self, at, chance, to):
        """Write under `to` what may be left if power is lost after the first `at` operations."""
        for name, content in self._names(at, chance).items():
            if self._root in Path(name).parents:
                path = Path(to) / Path(name).relative_to(self._root)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.after_loss(chance))
                # Spark reads files in the order of their times.
                os.utime(path, (_LONG_AGO + content.made,) * 2)

    def notes(self, at, step):
        """The notes of a step that was reached among the first `at` operations."""
        done = self.operations[:at]
        return [each["path"] for each in done if each["step"] == step and each["operation"] == "reach"]

    def _names(self, at, chance):
        """The names after a loss, with the content of each."""
        seen, lasting, pending, together = {}, {}, [], set()
        for each in self.operations[:at]:
            if each["step"] == OFFSETS and each["operation"] == "sync folder":
                together.add(str(Path(each["path"])))
            elif each["step"] == PLAN:
                together.clear()
            self._follow(each, seen, lasting, pending)
            if each["step"] == OFFSETS and each["operation"] == "sync":
                _there_before(each["path"], together, lasting, pending)
        if chance.random() < 0.5:
            kept = pending[: chance.randint(0, len(pending))]
        else:
            kept, lost = [], set()
            for change in pending:
                if chance.random() < 0.5 or change.names & lost:
                    lost |= change.names
                else:
                    kept.append(change)
        for change in kept:
            change.apply(lasting)
        return lasting

    def _follow(self, each, seen, lasting, pending):
        """Take in one operation: `seen` is what processes saw, `lasting` what is on disk for certain."""
        operation, path, to = each["operation"], each["path"], each.get("to", "")
        if operation in {"write", "sync", "cut"}:
            if path not in seen:
                seen[path] = Content(each["number"])
                pending.append(NameChange(seen[path], gets=path))
            content = (self._bytes / each["bytes"]).read_bytes()
            if operation == "sync":
                seen[path].synced = content
                seen[path].later.clear()
            else:
                seen[path].later.append(content)
        elif operation in {"rename", "link"}:
            moved = seen.pop(path) if operation == "rename" else seen[path]
            seen[to] = moved
            pending.append(NameChange(moved, gets=to, loses=path if operation == "rename" else ""))
        elif operation == "delete" and path in seen:
            del seen[path]
            pending.append(NameChange(None, loses=path))
        elif operation == "sync folder":
            folder = str(Path(path))
            done = [change for change in pending if change.folder == folder]
            for change in done:
                change.apply(lasting)
            gone = {change.loses for change in done if change.gets}
            pending[:] = [change for change in pending if change.folder != folder and change.gets not in gone]


def _there_before(path, together, lasting, pending):
    """A file of Spark's whose folder was synced a moment ago was there by then, so its name lasts."""
    if str(Path(path).parent) in together:
        for change in [each for each in pending if each.gets == path]:
            change.apply(lasting)
            pending.remove(change)


def losses(power, seed, count):
    """Positions in a record and the randomness of each loss: all positions in turn, `count` in all."""
    positions = len(power.operations) + 1
    for number in range(count):
        yield number % positions, random.Random(seed * 1_000_003 + number)
