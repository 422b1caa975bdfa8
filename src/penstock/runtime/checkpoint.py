"""The checkpoint of a run: its query, the plan of every epoch, and the manifest that the epoch happened.

    query.json        the query that the state belongs to
    plans/            what an epoch will do, written before it runs
    manifests/        what an epoch did, written after everything it names is durable
    segments/         the state that manifests name
    routers/          the routers that plans name
    between/          what one stage passes to the next, until the epoch is committed
    late/ rejects/    tuples set aside
    spark/            Structured Streaming's own offsets and commits

If a manifest exists, its epoch happened. Each file carries a checksum, so that a read detects a torn
file and the error names it.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connect import EpochId
from penstock.durable import Step
from penstock.errors import DamagedCheckpoint, ForeignCheckpoint
from penstock.runtime.records import EpochPlan, Manifest
from penstock.state.storage import Location

__all__ = ["KEPT_MANIFESTS", "Checkpoint"]

FORMAT = 4
KEPT_MANIFESTS = 3


@dataclass(frozen=True)
class Checkpoint:
    """A folder of plans, manifests and segments."""

    root: Location

    @property
    def segments(self) -> Location:
        """Where channels keep their state."""
        return self.root / "segments"

    @property
    def routers(self) -> Location:
        """Where the routers of plans are stored."""
        return self.root / "routers"

    @property
    def between(self) -> Location:
        """Where a stage leaves its results for the next."""
        return self.root / "between"

    @property
    def spark(self) -> str:
        """Where Structured Streaming keeps its own part."""
        return (self.root / "spark").for_spark

    def claim(self, fingerprint: str, description: str, stages: Sequence[Mapping[str, Any]] = ()) -> None:
        """Claim the folder for a query, or check that it already belongs to this query."""
        for part in ("plans", "manifests", "segments", "routers", "between", "late", "rejects"):
            (self.root / part).make()
        if not self.root.has("query.json"):
            self._store(
                self.root,
                "query.json",
                {
                    "format": FORMAT,
                    "fingerprint": fingerprint,
                    "query": description,
                    "stages": list(stages),
                },
                Step.CHECKPOINT,
            )
            return
        owner = self._load(self.root, "query.json")
        if owner["format"] != FORMAT:
            raise ForeignCheckpoint(
                f"checkpoint {self.root.uri} has format {owner['format']}, but this version reads {FORMAT}; "
                "use the version that wrote it, or a new checkpoint"
            )
        if owner["fingerprint"] != fingerprint:
            raise ForeignCheckpoint(
                f"checkpoint {self.root.uri} belongs to another query:\n  {owner['query']}\nthis one is\n  "
                f"{description}\nUse a new checkpoint, or the query it was made for"
            )

    def owner(self) -> dict[str, Any]:
        """The record of the query: its fingerprint, its text, notes on its stages."""
        found: dict[str, Any] = self._load(self.root, "query.json")
        return found

    def epochs(self) -> list[EpochId]:
        """The epochs that have manifests, oldest first."""
        parts = (name.removesuffix(".json").partition("-") for name in self._manifests())
        return [EpochId(int(epoch), drain=kind == "drain") for epoch, _, kind in parts]

    def latest(self) -> Manifest | None:
        """The newest manifest."""
        names = self._manifests()
        return Manifest.from_json(self._load(self.root / "manifests", names[-1])) if names else None

    def manifest(self, epoch_id: EpochId) -> Manifest | None:
        """The manifest of one epoch, None if it did not happen."""
        folder, name = self.root / "manifests", f"{epoch_id}.json"
        return Manifest.from_json(self._load(folder, name)) if folder.has(name) else None

    def commit(self, manifest: Manifest) -> None:
        """Record that an epoch happened; from now on a replay of it does nothing."""
        self._store(self.root / "manifests", f"{manifest.epoch_id}.json", manifest.to_json(), Step.MANIFEST)

    def plan(self, epoch_id: EpochId) -> EpochPlan | None:
        """The plan that an earlier attempt of an epoch wrote."""
        folder, name = self.root / "plans", f"{epoch_id}.json"
        return EpochPlan.from_json(self._load(folder, name)) if folder.has(name) else None

    def write_plan(self, epoch_id: EpochId, plan: EpochPlan) -> None:
        """Record what an epoch will do, so that a replay does the same."""
        self._store(self.root / "plans", f"{epoch_id}.json", plan.to_json(), Step.PLAN)

    def collect(self, *, orphans: bool) -> None:
        """Delete old plans and manifests, and the segments and routers that no remaining one names.

        Segments that no manifest ever named come from failed attempts. They are searched for only on
        request, since listing the folder is expensive on some storage.
        """
        names = self._manifests()
        old, kept = names[:-KEPT_MANIFESTS], names[-KEPT_MANIFESTS:]
        folder = self.root / "manifests"
        read = {name: self._read(name) for name in names} if old or orphans else {}
        alive = {file for name in kept if name in read for file in _state_files(read[name])}
        dead = {file for name in old for file in _state_files(read[name])} - alive
        if orphans:
            dead = set(self.segments.names()) - alive
            for name in self.between.names():
                self.between.delete(name, Step.COLLECT)
        for name in dead:
            self.segments.delete(name, Step.COLLECT)
        named = {router for name in old for router in read[name].plan.routers()}
        self._collect_routers(
            set(self.routers.names()) if orphans else named,
            {router for name in kept if name in read for router in read[name].plan.routers()},
        )
        for name in old:
            folder.delete(name, Step.COLLECT)
            (self.root / "plans").delete(name, Step.COLLECT)

    def _collect_routers(self, dead: set[str], alive: set[str]) -> None:
        """Routers are named by their content, so a router of an old plan may also be that of a later one."""
        dead -= alive
        if dead:
            plans = self.root / "plans"
            for name in [each for each in plans.names() if not each.startswith("_")][-KEPT_MANIFESTS:]:
                dead -= EpochPlan.from_json(self._load(plans, name)).routers()
        for name in dead:
            self.routers.delete(name, Step.COLLECT)

    def _read(self, name: str) -> Manifest:
        return Manifest.from_json(self._load(self.root / "manifests", name))

    def _manifests(self) -> list[str]:
        return [name for name in (self.root / "manifests").names() if not name.startswith("_")]

    def _store(self, folder: Location, name: str, value: Any, step: Step) -> None:
        body = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
        folder.write(name, body + b"\n" + f"{zlib.crc32(body):08x}\n".encode(), step)

    def _load(self, folder: Location, name: str) -> Any:
        data = folder.read(name)
        body, _, checksum = data.rstrip(b"\n").rpartition(b"\n")
        if not body or checksum != f"{zlib.crc32(body):08x}".encode():
            raise DamagedCheckpoint(
                f"{folder.uri}/{name} is truncated or altered ({len(data)} bytes); restore it from a backup, "
                "or start with a new checkpoint"
            )
        return json.loads(body)


def _state_files(manifest: Manifest) -> set[str]:
    return {file for segment in manifest.segments() for file in segment.files}
