"""The checkpoint of a run: its query, the plan of every epoch, and the manifest that the epoch happened.

    query.json        the id of the checkpoint, and the query that the state belongs to
    owners/           which run may write (`ownership.py`)
    plans/            what an epoch will do, written before it runs
    manifests/        what an epoch did, written after everything it names is durable
    segments/         the state that manifests name
    routers/          the routers that plans name
    between/          what stages pass to steps of Spark SQL, until the epoch is committed
    late/ rejects/    tuples set aside
    back.json aside/  that a run went back to an earlier epoch, and what it set aside (`going_back.py`)
    control/          what the run's control saw and decided (`recording.py`)
    rows/             what sources keep

If a manifest exists, its epoch happened. Each file carries a checksum, so that a read detects a torn
file and the error names it. Only the owner writes: its number is checked each time a plan or a manifest gets
its name, and neither ever replaces another.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from penstock.connect import EpochId
from penstock.durable import Purpose
from penstock.errors import CheckpointInUse, DamagedCheckpoint, ForeignCheckpoint, LostCheckpoint
from penstock.functions import DEFAULT, SqlSetting
from penstock.query import KEPT_EPOCHS
from penstock.runtime.ownership import Ownership
from penstock.runtime.records import EpochPlan, Manifest
from penstock.state.sealed import load, seal
from penstock.state.storage import Location

__all__ = ["Checkpoint", "epoch_of"]

FORMAT = 12

_QUERY = "query.json"
_MADE = ("plans", "manifests", "segments", "routers", "between", "late", "rejects")
_OTHERS = frozenset({"owners", "results", "rows", "aside", "back.json", "control"})
# What a mounted volume or a desktop leaves in an empty folder.
_IGNORED = frozenset({"lost+found"})

_log = logging.getLogger("penstock.run")


@dataclass(frozen=True)
class Checkpoint:
    """A folder of plans, manifests and segments.

    `id` is made once and never changes. `ownership` is that of this run, None for a reader. `kept` are the
    manifests that stay, and with them the epochs that a run can go back to.
    """

    root: Location
    id: str = ""
    ownership: Ownership | None = None
    kept: int = KEPT_EPOCHS
    _named: dict[str, "_Named | None"] = field(default_factory=dict, compare=False, repr=False)

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
    def plans(self) -> Location:
        """Where plans are."""
        return self.root / "plans"

    @property
    def manifests(self) -> Location:
        """Where manifests are."""
        return self.root / "manifests"

    @property
    def control(self) -> Location:
        """Where the recording of the run's control is."""
        return self.root / "control"

    def identified(self) -> "Checkpoint":
        """The same with its id, a new one if there is none yet; nothing is written."""
        known = self.owner()["id"] if self._compatible() else uuid4().hex[:16]
        return replace(self, id=known)

    def claim(  # noqa: PLR0913 -- the record of a query, and how it is taken
        self,
        fingerprint: str,
        description: str,
        stages: Sequence[Mapping[str, Any]] = (),
        *,
        streams: Mapping[str, str] = MappingProxyType({}),
        setting: SqlSetting = DEFAULT,
        run: str = "",
        takeover: bool = False,
    ) -> "Checkpoint":
        """Become the owner of the folder for a query; refused if it belongs to another query or run.

        `streams` are what the query declares of each of its streams, for people. `release` gives it back.
        What earlier owners left unfinished is deleted.
        """
        record = {"fingerprint": fingerprint, "query": description, "streams": dict(streams)}
        self._check_query(record)
        self._check_setting(setting)
        for part in _MADE:
            (self.root / part).make()
        mine = replace(
            self.identified() if not self.id else self,
            ownership=Ownership.take(self.root / "owners", run, takeover=takeover),
        )
        made = {"format": FORMAT, "id": mine.id, **record, "sql": asdict(setting)}
        try:
            mine.settle({**made, "stages": list(stages)})
        except BaseException:
            mine.release()
            raise
        return mine

    def settle(self, record: Mapping[str, Any]) -> None:
        """Delete what earlier owners left unfinished, and write the record of the query if there is none."""
        self._forget_unfinished()
        if not self.root.has(_QUERY):
            self._create(self.root, _QUERY, record, Purpose.CHECKPOINT)
        self._check_query(record)

    def hold(self) -> None:
        """Raise `LostCheckpoint` if another run has taken over."""
        if self.ownership is not None:
            self.ownership.check()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Raise what goes wrong; if another run has taken over, that is the reason for anything else."""
        try:
            yield
        except Exception as error:
            try:
                self.hold()
            except LostCheckpoint as lost:
                raise lost from error
            raise

    def release(self) -> None:
        """Let the next run begin without a takeover."""
        if self.ownership is not None:
            self.ownership.release()

    def owner(self) -> dict[str, Any]:
        """The record of the query: its fingerprint, its text, notes on its stages."""
        found: dict[str, Any] = load(self.root, _QUERY)
        return found

    def epochs(self) -> list[EpochId]:
        """The epochs that have manifests, oldest first."""
        return [epoch_of(name) for name in _records(self.manifests)]

    def latest(self) -> Manifest | None:
        """The newest manifest."""
        names = _records(self.manifests)
        if not names:
            return None
        older = ", ".join(str(epoch_of(each).epoch) for each in names[:-1])
        hint = f"go back with start(from_epoch=…) to one of {older}, " if older else ""
        return Manifest.from_json(load(self.manifests, names[-1], hint=hint))

    def manifest(self, epoch_id: EpochId) -> Manifest | None:
        """The manifest of one epoch, None if it did not happen."""
        name = f"{epoch_id}.json"
        return Manifest.from_json(load(self.manifests, name)) if self.manifests.has(name) else None

    def commit(self, manifest: Manifest) -> None:
        """Record that an epoch happened; from now on a replay of it does nothing."""
        # Workers synced the bytes of what the manifest names; the names in the folder are synced here.
        self.segments.sync_names(Purpose.SEGMENT)
        name = f"{manifest.epoch_id}.json"
        self._create(self.manifests, name, manifest.to_json(), Purpose.MANIFEST)
        self._named[name] = _Named.by(manifest)

    def plan(self, epoch_id: EpochId) -> EpochPlan | None:
        """The plan that an earlier attempt of an epoch wrote."""
        name = f"{epoch_id}.json"
        return EpochPlan.from_json(load(self.plans, name)) if self.plans.has(name) else None

    def write_plan(self, epoch_id: EpochId, plan: EpochPlan) -> None:
        """Record what an epoch will do, so that a replay does the same."""
        self._create(self.plans, f"{epoch_id}.json", plan.to_json(), Purpose.PLAN)

    def collect(self, *, orphans: bool) -> None:
        """Delete old plans and manifests, and the segments and routers that no remaining one names.

        Segments that no manifest ever named come from failed attempts. They are searched for only on
        request, since listing the folder is expensive on some storage, and only between two epochs.
        """
        found, passing = _Named(), []
        if orphans:
            found = _Named(frozenset(self.segments.names()), frozenset(self.routers.names()))
            passing = self.between.names()
        # After these lists: what is in them, no later owner has written.
        self.hold()
        names = _records(self.manifests)
        old, kept = names[: -self.kept], names[-self.kept :]
        if not old and not orphans:
            return
        alive = [self._names_of(name) for name in kept]
        if None in alive:
            # Nobody knows what a damaged manifest names. It goes when it is old, like any other.
            orphans = False
        living = _Named.all([*alive, *(self._set_aside() if orphans else [])])
        dead = _Named.all([self._names_of(name) for name in old])
        if orphans:
            dead = found
            for name in passing:
                self.between.delete(name, Purpose.COLLECT)
        for name in dead.files - living.files:
            self.segments.delete(name, Purpose.COLLECT)
        self._collect_routers(set(dead.routers - living.routers))
        for name in old:
            self.manifests.delete(name, Purpose.COLLECT)
            self.plans.delete(name, Purpose.COLLECT)
            self._named.pop(name, None)

    def _collect_routers(self, dead: set[str]) -> None:
        """Routers are named by their content, so a router of an old plan may also be that of a later one."""
        if dead:
            for name in _records(self.plans)[-self.kept :]:
                dead -= EpochPlan.from_json(load(self.plans, name)).files()
        for name in dead:
            self.routers.delete(name, Purpose.COLLECT)

    def _names_of(self, name: str) -> "_Named | None":
        """What a manifest names, None if it is damaged; only the owner writes, so each is read once."""
        if name not in self._named:
            try:
                self._named[name] = _Named.by(Manifest.from_json(load(self.manifests, name)))
            except DamagedCheckpoint as damage:
                _log.warning("%s; it is not the newest, so the run goes on without it", damage)
                self._named[name] = None
        return self._named[name]

    def _set_aside(self) -> list["_Named | None"]:
        """What the manifests name that runs set aside when they went back."""
        found: list[_Named | None] = []
        for folder in [self.root / "aside" / name for name in (self.root / "aside").names()]:
            for name in _records(folder / "manifests"):
                try:
                    found.append(_Named.by(Manifest.from_json(load(folder / "manifests", name))))
                except DamagedCheckpoint as damage:
                    _log.warning("%s", damage)
        return found

    def _check_query(self, given: Mapping[str, Any]) -> None:
        if not self._compatible():
            return
        owner = self.owner()
        if self.id and owner["id"] != self.id:
            raise CheckpointInUse(f"another run began checkpoint {self.root.uri} at this moment; start again")
        if owner["fingerprint"] != given["fingerprint"]:
            raise ForeignCheckpoint(
                f"checkpoint {self.root.uri} belongs to another query:\n  {owner['query']}\n"
                f"this one is\n  {given['query']}\n{_difference(owner, given)}"
                "Use a new checkpoint, or the query it was made for"
            )

    def _check_setting(self, setting: SqlSetting) -> None:
        """An expression means the same from the first epoch to the last."""
        given = asdict(setting)
        made = self.owner().get("sql", given) if self.root.has(_QUERY) else given
        names = {"ansi": "spark.sql.ansi.enabled", "zone": "spark.sql.session.timeZone"}
        for key, name in names.items():
            if made[key] != given[key]:
                raise ForeignCheckpoint(
                    f"checkpoint {self.root.uri} was made with {name}={made[key]}, this session has "
                    f"{given[key]}: expressions would change their meaning; set {name} to {made[key]}, "
                    "or use a new checkpoint"
                )

    def _compatible(self) -> bool:
        """Whether there is a checkpoint; one of another version, or a folder of other files, is refused."""
        if self.root.has(_QUERY):
            found = self.owner()["format"]
            if found == FORMAT:
                return True
            raise ForeignCheckpoint(
                f"checkpoint {self.root.uri} has format {found}, but this version reads {FORMAT}; "
                "use the version that wrote it, or a new checkpoint"
            )
        ours = {*_MADE, *_OTHERS, *_IGNORED}
        foreign = [name for name in self.root.names() if name not in ours and name[0] not in "_."]
        if foreign:
            shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
            raise ForeignCheckpoint(
                f"{self.root.uri} is not a checkpoint: it has no {_QUERY}, but it holds {shown}; give a "
                "folder for the checkpoint alone, which may be new or empty"
            )
        return False

    def _forget_unfinished(self) -> None:
        """Delete what has a hidden name: after this, no record of an earlier owner can get its name."""
        for folder in (self.root, self.plans, self.manifests, self.routers):
            for name in folder.names():
                if name.startswith("_"):
                    folder.delete(name, Purpose.OWNER)

    def _create(self, folder: Location, name: str, value: Any, step: Purpose) -> None:
        try:
            folder.create(name, seal(value), step, sure=self.hold)
        except (FileExistsError, FileNotFoundError):
            self.hold()  # another owner deleted the unfinished file, or wrote its own
            raise


@dataclass(frozen=True)
class _Named:
    """What a manifest names: files of state, and routers."""

    files: frozenset[str] = frozenset()
    routers: frozenset[str] = frozenset()

    @classmethod
    def by(cls, manifest: Manifest) -> "_Named":
        files = frozenset(file for segment in manifest.segments() for file in segment.files)
        return cls(files, frozenset(manifest.plan.files()))

    @classmethod
    def all(cls, parts: Sequence["_Named | None"]) -> "_Named":
        known = [each for each in parts if each is not None]
        return cls(
            frozenset().union(*(each.files for each in known)),
            frozenset().union(*(each.routers for each in known)),
        )


def epoch_of(name: str) -> EpochId:
    """The epoch of a plan or manifest, from the name of its file."""
    epoch, _, kind = name.removesuffix(".json").partition("-")
    return EpochId(int(epoch), drain=kind == "drain")


def _records(folder: Location) -> list[str]:
    """The names of plans or manifests, oldest first."""
    return [name for name in folder.names() if name[0] not in "_."]


def _difference(owner: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """How the streams of two queries differ, or what may differ where nothing that is shown does."""
    before, now = owner.get("streams", {}), given["streams"]
    changed = [name for name in now if name in before and before[name] != now[name]]
    lines = [
        f"Stream {name} was declared as\n  {before[name]}\nand now is\n  {now[name]}\n" for name in changed
    ]
    if not lines and owner["query"] == given["query"]:
        return "They read alike; the code or the settings of a function or an aggregate class differ.\n"
    return "".join(lines)
