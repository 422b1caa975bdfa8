"""`penstock state` on the checkpoints of two small runs: windows by two keys, and an outer join."""

import datetime as dt
import json
import sys

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.cli.app import app
from penstock.errors import DamagedCheckpoint, NoCheckpoint, UnknownEpoch, UnknownKey, UnknownStage

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def at(second):
    return START + dt.timedelta(seconds=second)


@pytest.fixture(scope="module")
def windows(tmp_path_factory, spark):
    """Epochs 0, 1, 2 of ten seconds; windows of a minute, so all panes are open until the drain."""
    folder = tmp_path_factory.mktemp("windows")
    rows = [
        [
            {"time": at(10 * epoch + s), "city": None if s == 9 else "ab"[s % 2], "line": s % 3, "v": s}
            for s in range(10)
        ]
        for epoch in range(3)
    ]
    stream = ps.stream("t", "time timestamp, city string, line int, v bigint", "time", source=ps.rows(rows))
    query = stream.group_by("city", "line").window("1 minute", slide="5 seconds").agg(top=ps.max("v"))
    query.start(ps.memory(), checkpoint=folder, channels=2).wait()
    return folder


@pytest.fixture(scope="module")
def join(tmp_path_factory, spark):
    folder = tmp_path_factory.mktemp("join")
    calls = [[{"time": at(10 * e + s), "user": s, "cost": s} for s in range(5)] for e in range(3)]
    users = [[{"time": at(10 * e), "user": 0, "name": "zoe"}] for e in range(3)]
    left = ps.stream("calls", "time timestamp, user bigint, cost bigint", "time", source=ps.rows(calls))
    right = ps.stream("users", "time timestamp, user bigint, name string", "time", source=ps.rows(users))
    query = left.join(right, on="user", within="15 seconds", how="left")
    query.start(ps.memory(), checkpoint=folder, channels=2).wait()
    return folder


def shown(*arguments):
    result = CliRunner().invoke(app, ["state", *map(str, arguments), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_stages_channels_keys_and_bytes_are_listed(windows):
    listed = shown(windows, "--epoch", 2)
    (stage,) = listed["stages"]
    assert (listed["epoch"], listed["kept"], listed["tuples"]) == (2, ["1", "2", "2-drain"], 30)
    assert stage["keys"] == ["city", "line"]
    assert sum(each["keys"] for each in stage["channels"]) == 7
    files = {each.name: each.stat().st_size for each in (windows / "segments").iterdir()}
    assert sum(each["bytes"] for each in stage["channels"]) <= sum(files.values())
    assert shown(windows)["drained"]


def test_the_state_of_a_key_is_its_partials(windows):
    rows = shown(windows, "--epoch", 2, "--key", "a", "--key", "0")["rows"]
    assert sum(row["rows"] for row in rows) == 3 * 2
    assert {(row["city"], row["line"], row["max(v)"]) for row in rows} == {("a", 0, 0), ("a", 0, 6)}
    assert {row["_pane"][:19] for row in rows} == {f"2024-01-01 00:00:{s:02}" for s in range(0, 30, 5)}
    (null,) = {row["max(v)"] for row in shown(windows, "--epoch", 2, "--key", "\\N", "--key", "0")["rows"]}
    assert null == 9


def test_a_join_shows_rows_that_can_still_match(join):
    rows = shown(join, "--epoch", 2, "--key", "0")["rows"]
    left = [row for row in rows if row["_part"] == "left"]
    assert [row["_time"][:19] for row in left] == ["2024-01-01 00:00:10", "2024-01-01 00:00:20"]
    assert all(row["_matched"] for row in left)
    (alone,) = shown(join, "--epoch", 2, "--key", "4", "--stage", 0)["rows"][-1:]
    assert (alone["_part"], alone["cost"], alone["_matched"]) == ("left", 4, False)


def test_two_epochs_are_compared(windows):
    (stage,) = shown(windows, "--compare", 1, 2)["stages"]
    assert sum(each["rows"] for each in stage["channels"]) > 0
    assert all(len(each["added"]) == 1 and not each["removed"] for each in stage["channels"])
    before, after = stage["frontiers"][0]
    assert after - before == 10_000_000


@pytest.mark.parametrize("which", ["windows", "join"])
def test_an_export_has_every_row(which, request, tmp_path):
    folder, file = request.getfixturevalue(which), tmp_path / "state.parquet"
    written = shown(folder, "--epoch", 2, "--export", file)["rows"]
    table = pq.read_table(file)
    listed = shown(folder, "--epoch", 2)["stages"][0]["channels"]
    assert table.num_rows == written == sum(each["rows"] for each in listed)
    assert table.column_names[0] == "_channel"


def test_tables_for_people(windows, join):
    for arguments in ([], ["--compare", "1", "2"], ["--epoch", "2", "--key", "0"]):
        result = CliRunner().invoke(app, ["state", str(join), *arguments], catch_exceptions=False)
        assert result.exit_code == 0
        assert "stage 0" in result.output


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (["--key", "x", "--key", "0"], UnknownKey, "no state of key x, 0"),
        (["--key", "a"], UnknownKey, "give one --key for each"),
        (["--key", "a", "--key", "z"], UnknownKey, "'z' does not fit the type int32"),
        (["--epoch", "7"], UnknownEpoch, "kept are 1, 2, 2-drain"),
        (["--stage", "4"], UnknownStage, "the stages are 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_there_is_named(windows, arguments, error, text):
    given = ["state", str(windows), *(arguments if "--epoch" in arguments else ["--epoch", "2", *arguments])]
    with pytest.raises(error, match=text):
        CliRunner().invoke(app, given, catch_exceptions=False)


def test_a_folder_that_is_no_checkpoint(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["penstock", "state", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "is not a checkpoint: it has no query.json" in capsys.readouterr().err
    (tmp_path / "query.json").write_text("{}")
    with pytest.raises(DamagedCheckpoint, match="query"):
        CliRunner().invoke(app, ["state", str(tmp_path)], catch_exceptions=False)
    for given in (str(tmp_path / "none"), "file://relative", "nowhere://folder"):
        with pytest.raises(NoCheckpoint):
            CliRunner().invoke(app, ["state", given], catch_exceptions=False)
