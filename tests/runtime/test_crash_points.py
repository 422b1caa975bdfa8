"""The driver dies at any point between two durable steps, stalls there, or loses power: exactly once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import deltalake
import pytest

import penstock as ps
from connect.reading import opened, split_rows
from oracle import fetched
from penstock import durable
from penstock.connect import EpochId
from penstock.connect.sources.file_index import FileIndex
from penstock.connect.sources.spark_offsets import SparkOffsets
from penstock.durable import Purpose
from penstock.runtime.checkpoint import Checkpoint, epoch_of
from penstock.runtime.going_back import go_back
from penstock.state import segments
from penstock.state.storage import Location
from power_loss import PowerLoss, losses
from runtime.crash_victim import SCHEMA, write_files
from runtime.test_ownership import claimed, happen

VICTIM = Path(__file__).with_name("crash_victim.py")
# Done by workers, which count for themselves; a worker that dies fails the run.
OF_WORKERS = {Purpose.SEGMENT, Purpose.RESULT}
OF_DRIVERS = list(Purpose)[: list(Purpose).index(Purpose.GATE_GROUP)]
SOURCES = ("rows", "files", "dataframe")
PARTS = ("out", "state/late", "state/rejects", "state/rejects/stage-0")
# Between the begin of an epoch and the end of its commit.
STALLS = (
    "plan/link",
    "delivery/rename:2",
    "delivery/rename:4",
    "set aside/rename:3",
    "manifest/link",
    "manifest/sync folder",
)


@dataclass(frozen=True)
class Home:
    """The folders of one run, and the arguments of its driver."""

    path: Path
    given: tuple[str, ...] = ()

    def beside(self, path, *more):
        """Other folders for a driver that reads the same."""
        return Home(path, (*self.given, *more))

    def begin(self, *arguments, **environment):
        self.path.mkdir(exist_ok=True)
        command = [sys.executable, str(VICTIM), str(self.path / "out"), str(self.path / "state")]
        command += [*self.given, *arguments]
        with (self.path / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **environment}
            )

    def run(self, *arguments, **environment):
        process = self.begin(*arguments, **environment)
        code = process.wait()
        end(process)
        return code

    def rows(self, *, swept=True):
        found = {}
        for part in PARTS:
            if part == "out" and "delta" in self.given:
                files = deltalake.DeltaTable(str(self.path / part)).file_uris()
            else:
                assert not swept or not list((self.path / part / "_staging").iterdir()), part
                files = ps.delivered(self.path / part)
                assert len(files) == len(list((self.path / part).glob("*.parquet")))
            found[part] = fetched(f"SELECT * FROM read_parquet({files}) ORDER BY ALL") if files else []
        return found

    def log(self):
        return (self.path / "log").read_text()[-4000:]


def end(process):
    """The driver is dead; its JVM and the workers follow."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def seeded():
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201
    return random.Random(seed)


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    """Runs that nothing disturbs, recorded, by their sources."""
    folder = tmp_path_factory.mktemp("crash")
    write_files(folder / "in")
    found = {}
    for kind in SOURCES:
        home = Home(folder / kind, () if kind == "rows" else (f"{kind}={folder / 'in'}",))
        assert home.run(PENSTOCK_RECORD=str(home.path / "record")) == 0, home.log()
        assert all(home.rows().values()), {name: len(rows) for name, rows in home.rows().items()}
        found[kind] = home
    return found


@pytest.fixture(scope="module")
def whole(wholes):
    return wholes["rows"]


def points(home):
    """Every crash point of the run, with the number of times that it came."""
    lines = (home.path / "record" / "operations").read_text().splitlines()
    operations = [json.loads(line) for line in lines]
    return Counter(f"{each['step']}/{each['operation']}" for each in operations)


def test_every_source_gives_the_same(wholes):
    def shown(home):
        # Rejects of files name them.
        rows = home.rows()
        return rows | {"state/rejects": [row[:2] for row in rows["state/rejects"]]}

    for each in ("files", "dataframe"):
        assert shown(wholes[each]) == shown(wholes["rows"])


def test_every_step_of_a_driver_is_reached(wholes, tmp_path, monkeypatch):
    reached = {point.partition("/")[0] for each in wholes.values() for point in points(each)}
    monkeypatch.setattr(durable, "_record", durable._Recorder(tmp_path / "record"))
    checkpoint = claimed(tmp_path / "state")
    happen(checkpoint, 0)
    happen(checkpoint, 1)
    go_back(checkpoint, 0)
    reached |= {point.partition("/")[0] for point in points(Home(tmp_path))}
    missing = {str(each) for each in OF_DRIVERS} - reached
    assert not missing, f"no scenario reaches {missing}; let the crash victim do it"


def dying(point, times, chance):
    """A point in the life of a driver: any of its times; in workers the first."""
    step = point.partition("/")[0]
    return point if step in OF_WORKERS else f"{point}:{chance.randint(1, times)}"


def test_a_death_at_a_point(wholes, tmp_path):
    chance = seeded()
    kind = chance.choice(SOURCES)
    whole = wholes[kind]
    home = whole.beside(tmp_path / "home")
    # From the first epoch on: what begins a checkpoint comes only once.
    early = ("checkpoint", "source") if kind == "rows" else ("checkpoint",)
    point = chance.choice(sorted(each for each in points(whole) if not each.startswith(early)))
    code = home.run(PENSTOCK_DIE_AT=point)
    print(f"{kind}, {point}: {code}")  # noqa: T201
    assert code != 0, home.log()
    assert home.run() == 0, home.log()
    assert home.rows() == whole.rows()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *(("rows", each) for each in OF_DRIVERS if each not in {Purpose.GO_BACK, Purpose.OFFSETS}),
        ("files", Purpose.SOURCE),
        ("dataframe", Purpose.OFFSETS),
    ],
)
def test_a_death_at_every_point(wholes, tmp_path, kind, step):
    """Step by step, so that a run that is cut short keeps what it found; test_ownership.py goes back."""
    chance, wrong, whole = seeded(), [], wholes[kind]
    known = {point: times for point, times in sorted(points(whole).items()) if point.startswith(f"{step}/")}
    assert known
    for number, (point, times) in enumerate(known.items()):
        at, home = dying(point, times, chance), whole.beside(tmp_path / str(number))
        verdict = death(whole, home, at)
        print(f"{at}: {verdict or 'exactly once'}", flush=True)  # noqa: T201
        wrong += [f"{at}: {verdict}"] if verdict else []
    assert not wrong, "\n".join(wrong)


def death(whole, home, at):
    """What is wrong after a death at a point and a second start; nothing if all is exactly once."""
    if home.run(PENSTOCK_DIE_AT=at) == 0:
        return f"was not reached: {home.log()}"
    if home.run() != 0:
        return f"does not start again: {home.log()}"
    return "" if home.rows() == whole.rows() else "other rows than a run that nothing disturbed"


def stopped(process):
    stat = Path(f"/proc/{process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def stall(whole, home, point):
    """A driver stops at a point, another takes over and finishes, then the first wakes up."""
    first = home.begin(PENSTOCK_STOP_AT=point)
    try:
        while first.poll() is None and not stopped(first):
            time.sleep(0.05)
        assert first.poll() is None, home.log()
        assert home.run() != 0
        assert "CheckpointInUse" in home.log()
        assert home.run("takeover") == 0, home.log()
        before = home.rows()
        assert before == whole.rows()
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait(timeout=120) != 0
        assert "LostCheckpoint" in home.log(), home.log()
    finally:
        end(first)
    # Its workers may have gone on writing to staging, where nobody reads and the next start sweeps.
    assert home.rows(swept=False) == before
    assert Checkpoint(Location(str(home.path / "state"))).latest().epoch_id.drain


@pytest.mark.soak  # test_ownership.py stalls a driver without Spark at the same steps, in seconds
def test_a_driver_that_stalls_and_wakes_after_a_takeover_fails_and_leaves_no_trace(whole, tmp_path):
    """Defect 1: a stalled first driver that wakes up must fail, not commit."""
    chance = seeded()
    point = chance.choice(STALLS)
    print(point)  # noqa: T201
    stall(whole, whole.beside(tmp_path / "home"), point)


@pytest.mark.soak
@pytest.mark.parametrize("point", [*STALLS, "plan/link:3", "manifest/link:3"])
def test_a_driver_that_stalls_anywhere(whole, tmp_path, point):
    stall(whole, whole.beside(tmp_path / "home"), point)


@pytest.mark.soak  # tests/connect/test_delta_stall.py stalls the delivery alone, in seconds
@pytest.mark.parametrize("point", ["plan/link", "delivery/reach", "delivery/sync:2", "manifest/link"])
def test_a_driver_with_a_delta_table_that_stalls_anywhere(whole, tmp_path, point):
    """Defect 1: a driver frozen before its transaction adds nothing to the table after a takeover."""
    stall(whole, whole.beside(tmp_path / "home", "delta"), point)


def committed(power, at):
    """The newest epoch whose manifest was durable after the first operations of a record."""
    linked = newest = ""
    for each in power.operations[:at]:
        if each["step"] == Purpose.MANIFEST and each["operation"] == "link":
            linked = Path(each["to"]).name
        elif each["step"] == Purpose.MANIFEST and each["operation"] == "sync folder":
            newest = linked
    return newest


def readable(folder, kind, manifest, planned):
    """Check that the source has what was read, and what an epoch under way reads again."""
    for plan in (manifest.plan, *([] if planned is None else [planned])):
        upto = plan.reads["t"].upto
        if kind == "dataframe":
            SparkOffsets(folder / "spark").check(upto["batch"], upto["digest"])
        elif kind == "files":
            found = [Path(each.path).name for each in FileIndex(folder).between({}, upto)]
            assert found == [f"{each}.parquet" for each in range(upto["files"])]
        else:
            reader = opened(ps.rows([]), None, folder.path, SCHEMA)
            assert split_rows(reader, {}, upto, ["n"]).num_rows == 60 * upto["batches"]


def recovers(disk, kind, expected, newest):
    """Check one disk: the last epoch is whole in state and sinks, and nothing durable is lost.

    The result is the newest epoch that it has, if any.
    """
    checkpoint = Checkpoint(Location(str(disk / "state")))
    names = [each for each in checkpoint.manifests.names() if each[0] != "_"]
    assert (names[-1] if names else "") >= newest
    if not names:
        return ""
    segments._verified.clear()
    manifest = checkpoint.latest()
    assert checkpoint.owner()["id"]
    for each in manifest.segments():
        segments.read(checkpoint.segments, each)
    planned = checkpoint.plan(EpochId(manifest.epoch_id.epoch + 1))
    readable(checkpoint.root / "rows", kind, manifest, planned)
    last, following = manifest.epoch_id, (EpochId(manifest.epoch_id.epoch + 1), manifest.epoch_id)
    for part, files in expected.items():
        found = {path.name: path.read_bytes() for path in (disk / part).glob("*.parquet")}
        owed = {name: data for name, data in files.items() if epoch_of(name.partition(".")[0]) <= last}
        assert owed.items() <= found.items(), f"{part} has lost {owed.keys() - found.keys()}"
        ahead = {epoch_of(name.partition(".")[0]) for name in found.keys() - owed.keys()}
        assert all(each in {*following, EpochId(last.epoch, drain=True)} for each in ahead)
    return names[-1]


def lose_power(kind, whole, tmp_path, count):
    chance = seeded()
    power = PowerLoss(whole.path / "record", whole.path)
    expected = {
        part: {path.name: path.read_bytes() for path in (whole.path / part).glob("*.parquet")}
        for part in PARTS
    }
    epochs = set()
    for number, (at, luck) in enumerate(losses(power, chance.randrange(10**6), count)):
        disk = tmp_path / str(number)
        disk.mkdir()
        power.disk(at, luck, disk)
        epochs.add(recovers(disk, kind, expected, committed(power, at)))
    # Before the first epoch, after each, and after the drain.
    assert len(epochs) == 5


@pytest.mark.parametrize("kind", SOURCES)
def test_a_loss_of_power_loses_nothing_that_was_delivered(wholes, tmp_path, kind):
    """Defects 13 and 17: names in folders, and what sources keep, were not durable before the manifest."""
    lose_power(kind, wholes[kind], tmp_path, 400)


@pytest.mark.soak
@pytest.mark.parametrize("kind", SOURCES)
def test_many_losses_of_power_lose_nothing_that_was_delivered(wholes, tmp_path, kind):
    lose_power(kind, wholes[kind], tmp_path, 1000)


@pytest.mark.soak
@pytest.mark.parametrize("kind", SOURCES * 2)
def test_a_run_goes_on_after_a_loss_of_power(wholes, tmp_path, kind):
    """Whole restarts: Spark's own files that nobody synced are lost as well."""
    whole = wholes[kind]
    chance, expected = seeded(), whole.rows()
    power = PowerLoss(whole.path / "record", whole.path)
    disk, aside = tmp_path / "disk", tmp_path / "whole"
    disk.mkdir()
    power.disk(chance.randint(0, len(power.operations)), chance, disk)
    # The disk takes the place of the one that was recorded, since the driver is given the same paths.
    whole.path.rename(aside)
    disk.rename(whole.path)
    try:
        assert whole.run() == 0, whole.log()
        assert whole.rows() == expected
    finally:
        whole.path.rename(disk)
        aside.rename(whole.path)
