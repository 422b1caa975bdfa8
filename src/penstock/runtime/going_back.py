"""Going back to an earlier epoch: what came after it is set aside. Sources follow the offsets of that epoch.

`start(from_epoch=12)` goes back to one of the epochs that are kept. `penstock state DIR --abandon` goes back
to the last one, which gives up an epoch that was planned and can never finish.

    back.json                 the epoch that the run went back to, and whether everything later is aside
    aside/000000000007/       manifests and plans

`back.json` is written first and again at the end: a start that finds it unfinished completes it. Nothing is
deleted, and segments stay as long as a manifest in `aside` names them; delete the folder when nobody wants to
go forward again.
"""

from typing import Any

from penstock.connect import EpochId
from penstock.durable import Purpose
from penstock.errors import CheckpointInUse, NoCheckpoint, UnknownEpoch
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.ownership import holder
from penstock.state.sealed import load, seal
from penstock.state.storage import Location

__all__ = ["abandon", "go_back", "resume_going_back", "went_back"]

_RECORD = "back.json"


def go_back(checkpoint: Checkpoint, epoch: int) -> None:
    """Set aside everything after an epoch that is kept."""
    kept = [each.epoch for each in checkpoint.epochs() if not each.drain]
    if epoch not in kept:
        known = ", ".join(map(str, kept)) or "none"
        raise UnknownEpoch(
            f"from_epoch={epoch}: the checkpoint does not keep that epoch; kept are {known}, see "
            "start(keep_epochs=…)"
        )
    checkpoint.manifest(EpochId(epoch))  # raises if it is damaged
    _begin(checkpoint, EpochId(epoch))


def resume_going_back(checkpoint: Checkpoint) -> None:
    """Complete what an earlier run began."""
    record = _load(checkpoint)
    if record is None or record["done"]:
        return
    checkpoint.hold()
    last, aside = record["last"], checkpoint.root / "aside" / f"{record['owner']:012d}"
    for part in ("manifests", "plans"):
        _move(checkpoint, part, _after(checkpoint.root / part, last), aside)
    _store(checkpoint, {**record, "done": True})


def went_back(checkpoint: Checkpoint, last: EpochId | None) -> bool:
    """Whether a run begins at an epoch that was gone back to, and nothing was planned since."""
    record, name = _load(checkpoint), _name(last)
    return record is not None and record["last"] == name and not _after(checkpoint.plans, name)


def abandon(root: Location) -> int | None:
    """Give up the epoch that was planned after the last manifest; its number, None if there is none."""
    checkpoint = Checkpoint(root)
    if not root.has("query.json"):
        raise NoCheckpoint(f"{root.uri} is not a checkpoint: it has no query.json")
    owner = holder(root / "owners")
    if owner is not None:
        raise CheckpointInUse(f"checkpoint {root.uri} is in use by {owner}; stop that run first")
    record = checkpoint.owner()
    mine = checkpoint.claim(record["fingerprint"], record["query"], run="penstock state --abandon")
    try:
        resume_going_back(mine)
        latest = mine.latest()
        last = None if latest is None else latest.epoch_id
        epoch = -1 if last is None else last.epoch
        if not _after(mine.plans, _name(last)):
            return None
        with mine.owned():
            _begin(mine, last)
        return epoch + 1
    finally:
        mine.release()


def _begin(checkpoint: Checkpoint, last: EpochId | None) -> None:
    assert checkpoint.ownership is not None
    checkpoint.hold()
    _store(checkpoint, {"last": _name(last), "owner": checkpoint.ownership.number, "done": False})
    resume_going_back(checkpoint)


def _name(last: EpochId | None) -> str:
    return "" if last is None else str(last)


def _after(folder: Location, last: str) -> list[str]:
    """The plans or manifests after an epoch, newest first: names sort in the order of epochs."""
    return [
        name for name in folder.names()[::-1] if name[0] not in "_." and name.removesuffix(".json") > last
    ]


def _move(checkpoint: Checkpoint, part: str, names: list[str], aside: Location) -> None:
    if not names:
        return
    root, target = checkpoint.root, aside / part
    target.make(Purpose.GO_BACK)
    inner = target.uri.removeprefix(root.uri).lstrip("/")
    for name in names:
        if (root / part).has(name):
            # The next owner may have completed this, and have records of the same names by now.
            checkpoint.hold()
            root.move(f"{part}/{name}", f"{inner}/{name}", Purpose.GO_BACK)
    target.sync_names(Purpose.GO_BACK)
    (root / part).sync_names(Purpose.GO_BACK)


def _load(checkpoint: Checkpoint) -> dict[str, Any] | None:
    found: dict[str, Any] | None = load(checkpoint.root, _RECORD) if checkpoint.root.has(_RECORD) else None
    return found


def _store(checkpoint: Checkpoint, record: dict[str, Any]) -> None:
    checkpoint.root.write(_RECORD, seal(record), Purpose.GO_BACK, sure=checkpoint.hold)
