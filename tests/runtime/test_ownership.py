"""One owner of a checkpoint: who may begin, and what a driver can do that another one has replaced."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.connect import EpochId
from penstock.errors import (
    CheckpointInUse,
    DamagedCheckpoint,
    ForeignCheckpoint,
    LostCheckpoint,
    UnknownEpoch,
)
from penstock.query import KEPT_EPOCHS
from penstock.runtime import ownership
from penstock.runtime.checkpoint import Checkpoint
from penstock.runtime.going_back import abandon, go_back, resume_going_back, went_back
from penstock.runtime.ownership import holder
from penstock.runtime.records import EpochPlan, Manifest, StagePlan, StageRecord, StreamRead
from penstock.state import owner
from penstock.state.owner import Owner
from penstock.state.sealed import seal
from penstock.state.segments import Segment
from penstock.state.storage import Location
from stalling import stalling


def claimed(folder, **options):
    return Checkpoint(Location(str(folder))).claim("digest", "a query", **options)


def plan(epoch):
    return EpochPlan((StagePlan(1),), now=epoch, reads={"t": StreamRead({"n": epoch})})


def happen(checkpoint, epoch, *files):
    segments = tuple(Segment(name, "t", 0, 1, 1, 1) for name in files)
    for name in files:
        Path(checkpoint.segments.path, name).write_bytes(b"x")
    checkpoint.write_plan(EpochId(epoch), plan(epoch))
    checkpoint.commit(Manifest(EpochId(epoch), plan(epoch), stages=(StageRecord((segments,)),)))


def records(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for part in ("plans", "manifests", "segments", "routers")
        for path in (folder / part).iterdir()
    }


def test_a_second_start_is_refused_and_says_who_has_the_checkpoint(tmp_path):
    """Defect 1: a second start deleted what the first one was working on."""
    claimed(tmp_path, run="speeds")
    before = records(tmp_path)
    with pytest.raises(CheckpointInUse, match=rf"run 'speeds' of .*process {os.getpid()} on .*takeover=True"):
        claimed(tmp_path)
    assert records(tmp_path) == before


def test_an_id_is_made_once(tmp_path):
    first = claimed(tmp_path)
    first.release()
    assert claimed(tmp_path).id == first.id
    assert len(first.id) == 16
    assert claimed(tmp_path / "other").id != first.id


def test_a_checkpoint_that_was_given_back_is_free(tmp_path):
    claimed(tmp_path).release()
    assert holder(Location(str(tmp_path / "owners"))) is None
    assert claimed(tmp_path).ownership.number == 2


def test_a_killed_driver_is_replaced_without_a_takeover(tmp_path):
    script = f"""
        import os, signal
        from penstock.runtime.checkpoint import Checkpoint
        from penstock.state.storage import Location
        Checkpoint(Location({str(tmp_path)!r})).claim("digest", "a query")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert claimed(tmp_path).ownership.number == 2


HERE = Owner.here(1, "")
OTHERS = {
    "another process": (replace(HERE, begun="0"), True),
    "no process": (replace(HERE, pid=2**22 + 1), True),
    "another boot": (replace(HERE, machine="before"), True),
    "this process": (HERE, False),
    "another host": (replace(HERE, host="elsewhere"), False),
}


@pytest.mark.parametrize(("owner", "free"), OTHERS.values(), ids=OTHERS)
def test_who_counts_as_alive(tmp_path, owner, free):
    (tmp_path / "owners").mkdir()
    (tmp_path / "owners" / "000000000001.json").write_bytes(seal(owner.__dict__))
    if free:
        assert claimed(tmp_path).ownership.number == 2
    else:
        with pytest.raises(CheckpointInUse, match=r"is in use by .* since 20"):
            claimed(tmp_path)
        assert claimed(tmp_path, takeover=True).ownership.number == 2


def test_a_pid_says_nothing_without_a_proc_file_system(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "_PROC", tmp_path / "none")
    assert Owner.here(1, "").alive
    assert not replace(Owner.here(1, ""), pid=2**22 + 1).alive


def test_an_owner_that_cannot_be_read_is_not_taken_for_dead(tmp_path):
    claimed(tmp_path)
    path = tmp_path / "owners" / "000000000001.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CheckpointInUse, match="cannot be read"):
        claimed(tmp_path)
    claimed(tmp_path, takeover=True)


def test_a_replaced_driver_writes_nothing(tmp_path):
    """Defect 1: a driver that wakes up after a takeover fails and leaves no trace."""
    old = claimed(tmp_path)
    happen(old, 0, "s0")
    new = claimed(tmp_path, takeover=True)
    before = records(tmp_path)
    manifest = Manifest(EpochId(1), plan(1))
    for act in (
        lambda: old.write_plan(EpochId(1), plan(1)),
        lambda: old.commit(manifest),
        lambda: old.collect(orphans=True),
        old.hold,
    ):
        with pytest.raises(LostCheckpoint, match="was taken over by"):
            act()
    assert records(tmp_path) == before
    old.release()
    new.hold()
    happen(new, 1)


@pytest.mark.parametrize("when", ["before the check", "after the check"])
@pytest.mark.parametrize("kind", ["plan", "manifest"])
def test_a_driver_that_stalls_while_it_writes_a_record(tmp_path, monkeypatch, when, kind):
    """Defect 1: frozen on either side of its check, a driver cannot finish its record after a takeover."""
    old = claimed(tmp_path)
    check = ownership.Ownership.check

    def stalls(self):
        monkeypatch.setattr(ownership.Ownership, "check", check)
        if when == "after the check":
            check(self)
        claimed(tmp_path, takeover=True)
        if when == "before the check":
            check(self)

    monkeypatch.setattr(ownership.Ownership, "check", stalls)
    written = {
        "plan": lambda: old.write_plan(EpochId(0), plan(0)),
        "manifest": lambda: old.commit(Manifest(EpochId(0), plan(0))),
    }
    with pytest.raises(LostCheckpoint):
        written[kind]()
    assert records(tmp_path) == {}


@pytest.mark.parametrize("orphans", [True, False])
def test_a_driver_that_stalls_while_it_collects_deletes_nothing_of_the_next(tmp_path, orphans):
    """Defect 1: frozen between its lists, it took the next owner's segments for those of failed attempts."""
    for at in range(1, 100):
        folder = tmp_path / str(at)
        old = replace(claimed(folder), kept=1)
        happen(old, 0, "s0")
        happen(old, 1, "s1")

        def take_over(folder=folder):
            happen(claimed(folder, takeover=True), 2, "s2")

        with stalling(at, take_over) as stall, suppress(LostCheckpoint):
            old.collect(orphans=orphans)
        if stall.left > 0:
            break
        latest = Checkpoint(Location(str(folder))).latest()
        assert latest.epoch_id == EpochId(2)
        assert {"s2"} <= {path.name for path in (folder / "segments").iterdir()}, at
    assert at > 1


def test_no_manifest_replaces_another(tmp_path):
    """Defect 1: two drivers that committed one epoch overwrote each other's manifest."""
    checkpoint = claimed(tmp_path)
    happen(checkpoint, 0, "s0")
    before = records(tmp_path)
    with pytest.raises(FileExistsError):
        checkpoint.commit(Manifest(EpochId(0), plan(0)))
    assert records(tmp_path) == before


def test_what_an_earlier_owner_had_not_finished_writing_is_gone_after_a_claim(tmp_path):
    happen(claimed(tmp_path), 0)
    before = records(tmp_path)
    for part in ("plans", "manifests", "routers"):
        (tmp_path / part / "_000000000001-data.json.5b3c").write_text("torn")
    claimed(tmp_path, takeover=True)
    assert records(tmp_path) == before


def test_a_folder_of_data_is_no_checkpoint(tmp_path):
    """Newcomer 8: a folder of other files was taken for a checkpoint."""
    (tmp_path / "rides.csv").write_text("a,b")
    with pytest.raises(ForeignCheckpoint, match=r"is not a checkpoint.*holds rides\.csv; give a folder"):
        claimed(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rides.csv"]


def test_a_volume_and_a_claim_that_died_are_no_data(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "plans").mkdir()
    (tmp_path / "_query.json.12345678").write_text("torn")
    claimed(tmp_path)
    assert not (tmp_path / "_query.json.12345678").exists()


def test_a_damaged_old_manifest_does_not_prevent_a_start(tmp_path):
    """Defect 26: one damaged old manifest prevented a start although the newest is sound."""
    checkpoint = claimed(tmp_path)
    for epoch in range(KEPT_EPOCHS):
        happen(checkpoint, epoch, f"s{epoch}")
    checkpoint.release()
    oldest = min((tmp_path / "manifests").iterdir())
    oldest.write_bytes(oldest.read_bytes()[:-20])
    again = claimed(tmp_path)
    again.collect(orphans=True)
    assert again.latest().epoch_id == EpochId(KEPT_EPOCHS - 1)
    # Nobody knows what the damaged one names, so nothing is deleted before it is old itself.
    assert "s0" in again.segments.names()
    happen(again, KEPT_EPOCHS, f"s{KEPT_EPOCHS}")
    again.collect(orphans=True)
    assert "s0" not in again.segments.names()
    assert again.epochs()[0] == EpochId(1)


def test_the_newest_manifest_must_be_sound_and_the_error_says_how_to_go_on(tmp_path):
    checkpoint = claimed(tmp_path)
    happen(checkpoint, 0)
    happen(checkpoint, 1)
    newest = max((tmp_path / "manifests").iterdir())
    newest.write_bytes(b"torn")
    with pytest.raises(DamagedCheckpoint, match=r"from_epoch=…\) to one of 0"):
        checkpoint.latest()


def test_files_of_failed_attempts_are_collected_between_epochs(tmp_path):
    """Defect 29: files of failed attempts were collected only at a start."""
    checkpoint = claimed(tmp_path)
    happen(checkpoint, 0, "s0")
    (tmp_path / "segments" / "orphan").write_text("x")
    (tmp_path / "between" / "orphan").write_text("x")
    checkpoint.collect(orphans=False)
    assert checkpoint.segments.names() == ["orphan", "s0"]
    checkpoint.collect(orphans=True)
    assert checkpoint.segments.names() == ["s0"]
    assert checkpoint.between.names() == []


ASIDE = ("manifests", "plans")


def test_going_back_sets_later_epochs_aside(tmp_path):
    checkpoint = replace(claimed(tmp_path), kept=10)
    for epoch in range(4):
        happen(checkpoint, epoch, f"s{epoch}")
    checkpoint.write_plan(EpochId(4), plan(4))
    with pytest.raises(UnknownEpoch, match="kept are 0, 1, 2, 3"):
        go_back(checkpoint, 9)
    go_back(checkpoint, 1)
    checkpoint.collect(orphans=True)
    assert checkpoint.latest().epoch_id == EpochId(1)
    assert went_back(checkpoint, EpochId(1))
    assert [name[:12] for name in checkpoint.plans.names()] == ["000000000000", "000000000001"]
    # Sources go on from there.
    assert checkpoint.latest().plan.reads == {"t": StreamRead({"n": 1})}
    aside = tmp_path / "aside" / "000000000001"
    found = {part: sorted(int(path.name[:12]) for path in (aside / part).iterdir()) for part in ASIDE}
    assert found == {"manifests": [2, 3], "plans": [2, 3, 4]}
    # What is aside can be put back, so its segments stay.
    assert checkpoint.segments.names() == ["s0", "s1", "s2", "s3"]
    happen(checkpoint, 2)
    assert not went_back(checkpoint, EpochId(2))


def test_a_driver_that_stalls_while_it_goes_back_sets_nothing_of_the_next_aside(tmp_path):
    """Defect 1: awake again, it moved epochs aside that the next owner had committed under the same names."""
    # Every second place: after one operation is before the next.
    for at in range(1, 200, 2):
        folder = tmp_path / str(at)
        old = replace(claimed(folder), kept=10)
        for epoch in range(2):
            happen(old, epoch, f"s{epoch}")

        def take_over(folder=folder):
            new = replace(claimed(folder, takeover=True), kept=10)
            resume_going_back(new)
            for epoch in range(new.latest().epoch_id.epoch + 1, 3):
                happen(new, epoch, f"n{epoch}")

        # Between a check and the rename after it, it can still move one record.
        besides = ("owners", "rename")
        with stalling(at, take_over, besides=besides) as stall, suppress(LostCheckpoint), old.owned():
            go_back(old, 0)
        if stall.left > 0:
            break
        found = claimed(folder, takeover=True)
        resume_going_back(found)
        assert found.latest().epoch_id == EpochId(2), at
        assert len(found.manifests.names()) == len(found.plans.names()) == 3, at
    assert at > 10


def test_going_back_is_completed_by_the_next_start(tmp_path):
    checkpoint = replace(claimed(tmp_path), kept=10)
    for epoch in range(4):
        happen(checkpoint, epoch)
    record = {"last": str(EpochId(1)), "owner": 1, "done": False}
    (tmp_path / "back.json").write_bytes(seal(record))
    resume_going_back(checkpoint)
    assert checkpoint.latest().epoch_id == EpochId(1)
    assert [name[:12] for name in checkpoint.plans.names()] == ["000000000000", "000000000001"]
    assert json.loads((tmp_path / "back.json").read_text().splitlines()[0])["done"]


def test_a_planned_epoch_is_abandoned(tmp_path):
    """Defect 12: an epoch that is too large was planned again and again with the same offsets."""
    checkpoint = claimed(tmp_path)
    happen(checkpoint, 0)
    checkpoint.write_plan(EpochId(1), plan(1))
    with pytest.raises(CheckpointInUse, match="stop that run first"):
        abandon(checkpoint.root)
    checkpoint.release()
    assert abandon(checkpoint.root) == 1
    again = claimed(tmp_path)
    assert again.plan(EpochId(1)) is None
    assert went_back(again, EpochId(0))
    # The next start plans it anew, with its own limits, after the last epoch that happened.
    assert again.latest().plan.reads == {"t": StreamRead({"n": 0})}
    again.release()
    assert abandon(checkpoint.root) is None


def test_a_drain_is_not_undone_by_abandoning(tmp_path):
    checkpoint = claimed(tmp_path)
    happen(checkpoint, 0)
    checkpoint.commit(Manifest(EpochId(0, drain=True), plan(0)))
    checkpoint.write_plan(EpochId(1), plan(1))
    checkpoint.release()
    assert abandon(checkpoint.root) == 1
    assert checkpoint.latest().epoch_id == EpochId(0, drain=True)
