"""A recorded run replays to the same decisions, and `penstock replay` shows those of other policies."""

import json

import pytest
from typer.testing import CliRunner

from control.simulated import stage
from penstock.cli.app import app
from penstock.control.observation import Observation
from penstock.control.recording import Recording, controller_line, epoch_line, router_line
from penstock.control.rescale import Rescale
from penstock.control.ruling import Ruling
from penstock.control.scale import Scale
from penstock.control.setup import Setup
from penstock.distribution.distribution import Change
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.errors import BadRecording, NoCheckpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A run of two starts, of which the second goes on where the first ended."""
    root = tmp_path_factory.mktemp("checkpoint")
    (root / "control").mkdir()
    (root / "routers").mkdir()
    simulated, setup, state = stage(2, 1.0), Setup(), {}
    for start in range(2):
        control = setup.controller(simulated.find)
        lines = [controller_line(setup, state)]
        if state:
            control.resume(state)
        for epoch in range(10):
            if (start, epoch) == (1, 3):
                simulated.exchange()
            seen = simulated.next()
            name = seen.stages[0].router
            if start:  # the other file's routers are in the checkpoint
                lines.append(router_line(name, simulated.find(name)))
            else:
                (root / "routers" / name).write_bytes(simulated.find(name).to_bytes())
            control.observe(seen)
            rulings = control.decide(seen.committed)
            simulated.follow([each.decision for each in rulings if each.carried_out])
            lines.append(epoch_line(seen, rulings))
        state = json.loads(json.dumps(control.to_json()))
        (root / "control" / f"{start:06}.jsonl").write_text("\n".join(lines) + "\n")
    return root


def replayed(*given):
    return CliRunner().invoke(app, ["replay", *map(str, given)], catch_exceptions=False)


def test_the_recorded_policy_decides_the_same_byte_for_byte(checkpoint):
    found = replayed(checkpoint, "--check")
    assert (found.exit_code, found.output) == (0, "20 epochs agree\n")
    rows = json.loads(replayed(checkpoint, "--json").stdout)["decisions"]
    assert len(rows) >= 2
    assert all(row["recorded"] == row["replayed"] for row in rows)


def test_another_decision_than_the_recorded_one_is_found(checkpoint, tmp_path):
    (tmp_path / "control").mkdir()
    text = (checkpoint / "control" / "000000.jsonl").read_text()
    assert '"kind":"rescale"' in text
    altered = text.replace('"kind":"rescale","stage":0', '"kind":"rescale","stage":7')
    (tmp_path / "control" / "0.jsonl").write_text(altered)
    (tmp_path / "routers").symlink_to(checkpoint / "routers")
    found = replayed(tmp_path, "--check", "--json")
    assert found.exit_code == 1
    assert len(json.loads(found.stdout)["differences"]) == 1


def test_other_policies_stand_side_by_side(checkpoint):
    def count(*given):
        rows = json.loads(replayed(checkpoint, "--json", *given).stdout)["decisions"]
        return sum(len(row["recorded"]) for row in rows), sum(len(row["replayed"]) for row in rows)

    recorded, same = count("--policy", "recorded")
    assert recorded == same >= 2
    assert count("--policy", "off") == (recorded, 0)
    assert count("--policy", "layout", "--cpu-price", "2")[1] >= 1
    shown = replayed(checkpoint, "--policy", "layout")
    assert shown.exit_code == 0
    assert "under layout" in shown.output
    assert f"20 epochs; decisions: {recorded} recorded" in shown.output


def test_decisions_of_every_kind_are_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    decisions = [
        Rescale(0, 2, reason="r"),
        Scale("executors", 4, 2, "r"),
        Change(1, "grouping", "by cost", "r", shown="rows by cost"),
        Change(2, "batch", 3, "r", shown="batches of 3 windows"),
        Change(3, "sub-keys", SubKeyPlan((SplitKey(-5, 0.25, 9, "a"),)), "r", shown="sub-keys"),
        Change(4, "sub-keys", None, "r", shown="keys whole"),
    ]
    rulings = [Ruling(0, "mine", each) for each in decisions]
    (tmp_path / "control").mkdir()
    lines = [controller_line(Setup(), {}), epoch_line(Observation(0, ()), rulings)]
    (tmp_path / "control" / "0.jsonl").write_text("\n".join(lines) + "\n")
    found = replayed(tmp_path, "--policy", "off")
    assert found.exit_code == 0
    for each in rulings:
        assert each.words().removeprefix("epoch 0, mine: ") in found.output


def test_errors_say_what_to_do(checkpoint, tmp_path):
    with pytest.raises(NoCheckpoint, match="is no folder"):
        replayed(tmp_path / "none")
    with pytest.raises(BadRecording, match="no recording"):
        replayed(tmp_path)
    with pytest.raises(Exception, match="recorded, layout, off"):
        replayed(checkpoint, "--policy", "best")


def test_a_line_that_was_cut_off_is_left_out_and_nonsense_is_refused(checkpoint):
    lines = (checkpoint / "control" / "000000.jsonl").read_text().splitlines()
    assert len(Recording.parse([*lines[:-1], lines[-1][:50]]).epochs) == 9
    with pytest.raises(BadRecording, match="line 2: no JSON"):
        Recording.parse([lines[0], "{", lines[1]])
    with pytest.raises(BadRecording, match="not of this version"):
        Recording.parse(['{"a":1}'])
    with pytest.raises(BadRecording, match="empty"):
        Recording.parse([])
