"""The owner of a checkpoint: one run at a time, known by a number that grows with every owner.

    owners/000000000003.json        who took it: host, process, user, when, the name of the run
    owners/000000000003.released    that run has ended

**Why a late owner cannot do harm.** A record of the checkpoint gets its name in this order: write it under a
hidden name, sync, check that no higher number exists, give it its name. A new owner works in this order:
create the next number, delete everything that has a hidden name, read. A driver that was stopped before its
check finds the higher number. One that was stopped after its check finds its hidden file gone. One that was
faster has a record that the new owner reads. Sinks of files do the same with a staging folder.

So the question whether an owner is alive only spares users a takeover by mistake. It is answered by the
process on the same host: a killed driver can be replaced at once, a live one cannot. A host name that is the
same after a reboot, or in another container, stands for one that is gone.
"""

from dataclasses import asdict, dataclass
from typing import Any

from penstock.durable import Purpose
from penstock.errors import CheckpointError, CheckpointInUse, LostCheckpoint
from penstock.state.owner import Owner
from penstock.state.sealed import load, seal
from penstock.state.storage import Location

__all__ = ["Owner", "Ownership", "holder"]

_RECORD, _RELEASED = ".json", ".released"


@dataclass(frozen=True)
class Ownership:
    """A number taken by this process; `folder` has the records of all owners."""

    folder: Location
    number: int

    @classmethod
    def take(cls, folder: Location, run: str, *, takeover: bool) -> "Ownership":
        """Become the owner, unless another run may be; with `takeover`, whoever has it."""
        folder.make(Purpose.OWNER)
        known = _numbers(folder)
        last = known[-1] if known else 0
        if not takeover:
            _refuse_if_held(folder, last)
        found = cls(folder, last + 1)
        try:
            folder.create(found._name(_RECORD), seal(asdict(Owner.here(last + 1, run))), Purpose.OWNER)
            found.check()
        except (FileExistsError, FileNotFoundError, LostCheckpoint) as error:
            raise CheckpointInUse(
                f"another run took checkpoint {_checkpoint(folder)} at this moment; wait until it has ended"
            ) from error
        for name in folder.names():
            if not name.startswith(f"{found.number:012d}."):
                folder.delete(name, Purpose.OWNER)
        return found

    def check(self) -> None:
        """Raise `LostCheckpoint` if another run has taken over."""
        known = _numbers(self.folder)
        if known and known[-1] == self.number:
            return
        by = f"was taken over by {_described(self.folder, known[-1])}" if known else "has lost its owners"
        raise LostCheckpoint(
            f"checkpoint {_checkpoint(self.folder)} {by}; this run ends, and its present epoch does not count"
        )

    def release(self) -> None:
        """Let the next run begin without a takeover."""
        if self.number in _numbers(self.folder):
            self.folder.write(self._name(_RELEASED), b"", Purpose.OWNER)

    def _name(self, suffix: str) -> str:
        return f"{self.number:012d}{suffix}"


def holder(folder: Location) -> Owner | None:
    """The run that holds a checkpoint now, as far as can be known from here; None if nobody does."""
    known = _numbers(folder)
    if not known or folder.has(f"{known[-1]:012d}{_RELEASED}"):
        return None
    owner = _read(folder, known[-1])
    return owner if owner.alive else None


def _refuse_if_held(folder: Location, number: int) -> None:
    try:
        owner = holder(folder)
    except CheckpointError as error:
        raise CheckpointInUse(
            f"checkpoint {_checkpoint(folder)} has an owner whose record {number} cannot be read ({error}); "
            "if no other run uses the checkpoint, start with takeover=True"
        ) from error
    if owner is not None:
        raise CheckpointInUse(
            f"checkpoint {_checkpoint(folder)} is in use by {owner}; stop that run, or start with "
            "takeover=True: that run then fails, and this one goes on where it was"
        )


def _numbers(folder: Location) -> list[int]:
    """The numbers of all owners that are on record, the present one last."""
    names = (name.removesuffix(_RECORD) for name in folder.names() if name.endswith(_RECORD))
    return sorted(int(name) for name in names if name.isdecimal())


def _read(folder: Location, number: int) -> Owner:
    value: dict[str, Any] = load(folder, f"{number:012d}{_RECORD}")
    return Owner(**value)


def _described(folder: Location, number: int) -> str:
    try:
        return str(_read(folder, number))
    except (CheckpointError, OSError):
        return f"owner {number}"


def _checkpoint(folder: Location) -> str:
    return folder.uri.removesuffix("/owners")
