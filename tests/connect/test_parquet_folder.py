"""A folder of Parquet files: whose it is, what a replaced driver can do to it, and which epochs are whole."""

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import penstock as ps
from connect.test_sinks_contract import Epochs, numbered
from oracle import fetched
from penstock.connect import EpochId
from penstock.errors import BadPath, BadSink, DamagedCheckpoint, LostCheckpoint, SinkError
from stalling import stalling


def begun(tmp_path, id_="a-0", **options):
    return Epochs(ps.parquet(tmp_path / "out", **options), tmp_path / id_, id_=id_)


def whole(tmp_path):
    files = ps.delivered(tmp_path / "out")
    return sorted(ds.dataset(files).to_table()["n"].to_pylist())


def test_the_folder_of_another_checkpoint_is_refused_in_words(tmp_path):
    """Defect 3: a new checkpoint on an old folder mixed its results with those of the old one."""
    begun(tmp_path).deliver(0, numbered(1))
    with pytest.raises(
        SinkError, match=r"holds results of 'run' \(id a-0\).*use another folder.*shared=True"
    ):
        begun(tmp_path, "b-0")
    with pytest.raises(SinkError, match="holds results of 'run'"):
        begun(tmp_path, "b-0", shared=True)
    assert whole(tmp_path) == [1]


def test_a_folder_of_other_files_is_refused_in_words(tmp_path):
    (tmp_path / "out").mkdir()
    pq.write_table(pa.table({"n": [9]}), tmp_path / "out" / "mine.parquet")
    with pytest.raises(SinkError, match=r"did not write, such as mine\.parquet; use a new or empty folder"):
        begun(tmp_path)
    begun(tmp_path, shared=True).deliver(0, numbered(1))
    assert whole(tmp_path) == [1]
    assert pq.read_table(tmp_path / "out" / "mine.parquet").num_rows == 1


def test_two_share_a_folder_and_delete_only_their_own(tmp_path):
    one, two = begun(tmp_path, shared=True), begun(tmp_path, "b-0", shared=True)
    one.deliver(0, numbered(1), committed=False)
    two.deliver(0, numbered(2))
    under_way = two.written(numbered(3))
    one.open()
    one.deliver(0, numbered(1))
    two.running.deliver(EpochId(1), under_way)
    assert whole(tmp_path) == [1, 2, 3]


def test_shared_is_a_flag():
    with pytest.raises(BadSink, match="shared='yes'; give True or False"):
        ps.parquet("out", shared="yes")
    assert repr(ps.parquet("out", shared=True)) == "parquet('out', compression='snappy', shared=True)"


def test_a_reader_that_asks_sees_whole_epochs_only(tmp_path, monkeypatch):
    """Defect 18: after a kill a reader saw half an epoch until the next start."""
    epochs = begun(tmp_path)
    epochs.deliver(0, numbered(1), numbered(2))
    files = epochs.written(numbered(3), numbered(4))
    move, seen = type(epochs.folder).move, []

    def watched(self, name, to, step):
        move(self, name, to, step)
        seen.append(whole(tmp_path))

    monkeypatch.setattr(type(epochs.folder), "move", watched)
    epochs.running.deliver(EpochId(1), files)
    assert seen == [[1, 2], [1, 2], [1, 2, 3, 4]]


def test_half_an_epoch_is_gone_with_the_next_start(tmp_path):
    epochs = begun(tmp_path)
    epochs.deliver(0, numbered(1))
    epochs.deliver(1, numbered(2), committed=False)
    epochs.open()
    assert whole(tmp_path) == [1]
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1


@pytest.mark.parametrize("stalls_after", [0, 1, 2])
def test_a_driver_that_was_replaced_cannot_deliver(tmp_path, monkeypatch, stalls_after):
    """Defect 1: stopped before any of its renames, it finds nothing to rename and overwrites nothing."""
    old, new = begun(tmp_path), []
    old.deliver(0, numbered(1))
    files = old.written(numbered(2), numbered(3))
    move, moves = type(old.folder).move, []

    def stalling(self, name, to, step):
        moves.append(name)
        if len(moves) == stalls_after + 1:
            new.append(begun_again(old, tmp_path))
        move(self, name, to, step)

    monkeypatch.setattr(type(old.folder), "move", stalling)
    with pytest.raises(FileNotFoundError):
        old.running.deliver(EpochId(1), files)
    new[0].deliver(1, numbered(2, 3))
    assert whole(tmp_path) == [1, 2, 3]
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 2


@pytest.mark.parametrize("act", ["begins", "delivers", "delivers nothing", "sweeps"])
def test_a_driver_that_was_replaced_anywhere_leaves_no_trace(tmp_path, act):
    """Defect 1: awake again, a driver deleted what the next one had delivered, and set its record back."""
    for at in range(1, 100):
        folder, owner, later = tmp_path / f"{act} {at}", [1], []
        folder.mkdir()

        def hold(number, owner=owner):
            if owner[0] > number:
                raise LostCheckpoint

        old = begun(folder)
        old.deliver(0, numbered(1))
        old.begins = replace(old.begins, hold=lambda hold=hold: hold(1), owner=0)
        old.open()

        def take_over(old=old, folder=folder, owner=owner, hold=hold, later=later):
            owner[0] = 2
            old.begins, before = replace(old.begins, hold=lambda: hold(2)), old.begins
            later.append(begun_again(old, folder))
            old.begins = before
            later[0].deliver(1, numbered(2))
            later[0].deliver(2, numbered(3))
            later.append(later[0].written(numbered(4)))

        # The last of these: a file that was wiped has no receipt.
        with stalling(at, take_over) as stall, suppress(LostCheckpoint, FileNotFoundError, AssertionError):
            if act == "begins":
                old.running.prepare(old.schema, old.begins)
            elif act == "sweeps":
                old.running._delivery.files._sweep()
            elif act == "delivers":
                old.running.deliver(EpochId(1), old.written(numbered(2)))
            else:
                old.running.deliver(EpochId(1), ())
        if stall.left > 0:
            break
        assert whole(folder) == [1, 2, 3], at
        later[0].running.deliver(EpochId(3), later[1])
        assert whole(folder) == [1, 2, 3, 4], at
    assert at > 1


def begun_again(old, tmp_path):
    new = Epochs.__new__(Epochs)
    new.__dict__.update(old.__dict__, begins=replace(old.begins))
    new.folder = type(old.folder).of(tmp_path / "again")
    new.open()
    return new


def test_files_of_failed_attempts_are_swept_while_a_run_goes_on(tmp_path):
    """Defect 29: what failed attempts left in staging stayed until the next start."""
    epochs = begun(tmp_path)
    epochs.written(numbered(1))
    for epoch in range(64):
        assert epoch == 0 or list((tmp_path / "out" / "_staging").iterdir())
        epochs.deliver(epoch, numbered(epoch))
    assert not list((tmp_path / "out" / "_staging").iterdir())


def test_a_record_that_was_altered_is_named_and_mended(tmp_path):
    epochs = begun(tmp_path)
    epochs.deliver(0, numbered(1))
    record = tmp_path / "out" / "_penstock" / "a-0.json"
    record.write_bytes(record.read_bytes().replace(b"000000000000", b"000000000001"))
    with pytest.raises(DamagedCheckpoint, match=r"a-0\.json is truncated or altered"):
        ps.delivered(tmp_path / "out")
    epochs.open()
    assert whole(tmp_path) == [1]


def test_a_folder_without_results_is_named(tmp_path):
    with pytest.raises(BadPath, match=r"is not a folder of ps\.parquet"):
        ps.delivered(tmp_path)
    begun(tmp_path)
    assert whole(tmp_path) == []


def test_readers_see_the_columns_before_the_first_result(tmp_path, spark):
    """Defect: the list was empty, which no reader takes."""
    epochs = begun(tmp_path)
    files = ps.delivered(tmp_path / "out")
    assert ds.dataset(files).to_table().schema.names == ["time", "n"]
    assert fetched(f"SELECT n FROM read_parquet({files})") == []
    assert spark.read.parquet(*files).columns == ["time", "n"]
    epochs.deliver(0, numbered(1))
    (file,) = ps.delivered(tmp_path / "out")
    assert "_penstock" not in file
