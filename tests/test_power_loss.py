"""The rebuilder of disks after a loss of power: it loses what was not synced, and nothing that was."""

import random

from penstock import durable
from penstock.durable import Purpose
from power_loss import PowerLoss, losses


def recorded(tmp_path, monkeypatch, act):
    """What `act` does under a folder, as a record."""
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.setattr(durable, "_record", durable._Recorder(tmp_path / "record"))
    act(root)
    return PowerLoss(tmp_path / "record", root)


def disks(power, tmp_path, at, count=60):
    """The files of many disks after a loss at one position."""
    found = set()
    for number in range(count):
        to = tmp_path / f"disk-{number}"
        to.mkdir()
        power.disk(at, random.Random(number), to)
        found.add(tuple(sorted((path.name, path.read_bytes()) for path in to.iterdir())))
    return found


def write(path, content):
    with durable.writing(path, Purpose.PLAN):
        path.write_bytes(content)


def test_bytes_and_names_that_were_not_synced_may_be_lost(tmp_path, monkeypatch):
    power = recorded(tmp_path, monkeypatch, lambda root: write(root / "a", b"xyz"))
    found = disks(power, tmp_path, 1)
    assert {(), (("a", b""),), (("a", b"xyz"),)} <= found


def test_what_was_synced_with_its_folder_is_never_lost(tmp_path, monkeypatch):
    def act(root):
        write(root / "a", b"xyz")
        durable.sync(root / "a", Purpose.PLAN)
        durable.rename(root / "a", root / "b", Purpose.PLAN)
        durable.sync_folder(root, Purpose.PLAN)

    power = recorded(tmp_path, monkeypatch, act)
    assert disks(power, tmp_path, 4) == {(("b", b"xyz"),)}


def test_a_rename_happens_whole_or_not_at_all(tmp_path, monkeypatch):
    def act(root):
        write(root / "b", b"old")
        durable.sync(root / "b", Purpose.PLAN)
        durable.sync_folder(root, Purpose.PLAN)
        write(root / "a", b"new")
        durable.sync(root / "a", Purpose.PLAN)
        durable.rename(root / "a", root / "b", Purpose.PLAN)

    power = recorded(tmp_path, monkeypatch, act)
    old, new = ("b", b"old"), ("b", b"new")
    assert disks(power, tmp_path, 6) == {(old,), (("a", b"new"), old), (new,)}


def test_a_deleted_file_may_come_back(tmp_path, monkeypatch):
    def act(root):
        write(root / "a", b"x")
        durable.sync(root / "a", Purpose.PLAN)
        durable.sync_folder(root, Purpose.PLAN)
        durable.delete(root / "a", Purpose.COLLECT)

    power = recorded(tmp_path, monkeypatch, act)
    assert disks(power, tmp_path, 4) == {(), (("a", b"x"),)}


def test_every_position_has_its_turn(tmp_path, monkeypatch):
    power = recorded(tmp_path, monkeypatch, lambda root: write(root / "a", b"x"))
    assert [at for at, _ in losses(power, 1, 5)] == [0, 1, 0, 1, 0]


def test_a_name_that_was_there_before_its_folder_was_synced_is_not_lost(tmp_path, monkeypatch):
    """Spark writes its offsets before the syncs of them, which run at the same time, in any order."""

    def act(root):
        (root / "a").write_bytes(b"xyz")
        durable.sync_folder(root, Purpose.OFFSETS)
        durable.sync(root / "a", Purpose.OFFSETS)
        (root / "b").write_bytes(b"uvw")
        write(root / "plan", b"")
        durable.sync(root / "b", Purpose.OFFSETS)

    power = recorded(tmp_path, monkeypatch, act)
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    assert disks(power, tmp_path / "before", 2) == {(("a", b"xyz"),)}
    # What came after the plan is of another epoch, and no sync of the folder has followed it.
    found = disks(power, tmp_path / "after", 4)
    after = {tuple(name for name, _ in disk if name != "plan") for disk in found}
    assert after == {("a",), ("a", "b")}
