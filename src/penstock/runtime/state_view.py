"""Opens a checkpoint to show its state without running the query; `penstock state` uses it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.connect import EpochId
from penstock.errors import BadPath, NoCheckpoint, UnknownEpoch, UnknownKey, UnknownStage
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.records import Manifest
from penstock.state.storage import Location
from penstock.state.view import NULL, ChannelSummary, StageChange, StageNote, StageView, compare_stages

__all__ = ["NULL", "KeyState", "StateView", "changes"]


@dataclass(frozen=True)
class KeyState:
    """The rows of a key in one channel of a stage."""

    stage: int
    channel: int
    rows: Any


class StateView:
    """A checkpoint opened for reading; nothing is written to it, so a run may use it at the same time.

    A run deletes what its kept manifests do not name, so look at the newest epoch of a live run.
    """

    def __init__(self, path: str | Path) -> None:
        self.checkpoint = Checkpoint(Location.of(path))
        try:
            there = self.checkpoint.root.has("query.json")
        except BadPath as error:
            raise NoCheckpoint(f"{path} is not a path or URI that can be read: {error}") from error
        if not there:
            raise NoCheckpoint(
                f"{self.checkpoint.root.uri} is not a checkpoint: it has no query.json; give the folder "
                "that you gave to start(checkpoint=...)"
            )
        self.query = self.checkpoint.owner()

    @cached_property
    def epochs(self) -> list[EpochId]:
        """The epochs whose manifests still exist, oldest first."""
        return self.checkpoint.epochs()

    def manifest(self, epoch: str | None = None) -> Manifest:
        """The manifest of an epoch (12, or 12-drain for the drain after it), by default the newest."""
        chosen = [each for each in self.epochs if epoch is None or epoch in {_short(each), str(each)}]
        if not chosen:
            kept = ", ".join(map(_short, self.epochs)) or "none: no epoch has happened yet"
            raise UnknownEpoch(f"no epoch {epoch or 'at all'} in the checkpoint; kept are {kept}")
        found = self.checkpoint.manifest(chosen[-1])
        if found is None:
            raise UnknownEpoch(f"epoch {epoch} was deleted meanwhile by the run; ask for a newer one")
        return found

    def note(self, stage: int) -> StageNote:
        """The notes that the checkpoint has on a stage."""
        notes = self.query.get("stages", [])
        return StageNote.from_json(notes[stage]) if stage < len(notes) else StageNote()

    def stage(self, manifest: Manifest, stage: int) -> StageView:
        """The state of a stage."""
        if not 0 <= stage < len(manifest.stages):
            known = ", ".join(map(str, range(len(manifest.stages)))) or "none"
            raise UnknownStage(f"no stage {stage}; the stages are {known}")
        record = manifest.stages[stage]
        return StageView(
            self.checkpoint.segments, self.note(stage), record.channels, record.position.frontiers
        )

    def channels(self, manifest: Manifest, stage: int) -> list[ChannelSummary]:
        """What each channel of a stage keeps; to count keys, it reads the key columns."""
        view = self.stage(manifest, stage)
        return [view.summary(channel) for channel in range(len(view.channels))]

    def of_key(self, manifest: Manifest, key: Sequence[str], stage: int | None = None) -> list[KeyState]:
        """The rows of a key in one stage or in all; each key column is given as text."""
        stages = range(len(manifest.stages)) if stage is None else [stage]
        found, failures = [], []
        for number in stages:
            view = self.stage(manifest, number)
            try:
                found += [KeyState(number, *each) for each in view.of_key(key)]
            except UnknownKey as failure:
                failures.append(failure)
        if not found and failures:
            raise failures[0]
        if not found:
            shown = ", ".join(key)
            where = f"stage {stage}" if stage is not None else "any stage"
            raise UnknownKey(
                f"no state of key {shown} in {where} at epoch {_short(manifest.epoch_id)}; its last window "
                f"may have closed; write null as {NULL}"
            )
        return found

    def export(self, manifest: Manifest, stage: int, file: str | Path) -> int:
        """Write the live state of a stage as one Parquet file and return the number of rows."""
        return self.stage(manifest, stage).export(file)


def changes(before: Manifest, after: Manifest) -> list[StageChange]:
    """What changed between two epochs, for every stage."""
    return [
        compare_stages(number, old.channels, new.channels, (old.position.frontiers, new.position.frontiers))
        for number, (old, new) in enumerate(zip(before.stages, after.stages, strict=True))
    ]


def _short(epoch_id: EpochId) -> str:
    return f"{epoch_id.epoch}-drain" if epoch_id.drain else str(epoch_id.epoch)
