"""Readers of sources without a run: how far they go, and that the same lies between the same offsets."""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import penstock.query as ps
from connect.own_source import LogSource
from connect.reading import frame_rows, offsets, opened, split_rows
from penstock.connect import ARRIVED, CORRUPT, REASON
from penstock.connect.source import SourceNote
from penstock.connect.sources.listing import Listing
from penstock.errors import BadSource, DamagedCheckpoint, WrongType
from penstock.expressions.schema import Schema
from penstock.ingest import Client, Gate

PLAIN = "time timestamp, k string, n bigint"
ARROW = Schema.parse(PLAIN).arrow()


def table(*numbers):
    rows = [
        {"time": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n), "k": "ab"[n % 2], "n": n}
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, ARROW)


def put(folder, name, numbers, at=None, **options):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(*numbers), path, **options)
    if at is not None:
        os.utime(path, (at, at))
    return path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def numbers_of(reader, after, upto, tasks=2):
    return split_rows(reader, after, upto, ["n"], tasks)["n"].to_pylist() if upto else []


# ---- which files -----------------------------------------------------------------------------------------


def test_hidden_names_are_not_files_of_a_source(folder):
    for name in ("a", "_b", ".c", "_d/e", ".f/g", "h/i", "_j=1/k", "h/_l", "m._COPYING_"):
        put(folder, name, [1])
    assert {each.path.removeprefix(f"{folder}/") for each in Listing(str(folder)).look()} == {
        "a",
        "h/i",
        "_j=1/k",
    }


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.x", {"1.x", "2.x"}),
        ("[13].x", {"1.x"}),
        ("[^1].x", {"2.x"}),
        ("?.y", {"3.y"}),
        ("{1.x,sub/{4,5}.x}", {"1.x", "sub/4.x", "sub/5.x"}),
        ("s*", {"sub/4.x", "sub/5.x", "sub/deep/6.x"}),
        ("sub/d*/*", {"sub/deep/6.x"}),
    ],
)
def test_patterns(folder, pattern, names):
    for name in ("1.x", "2.x", "3.y", "_4.x", "sub/4.x", "sub/5.x", "sub/deep/6.x", "sub/_7.x"):
        put(folder, name, [1])
    assert {each.path.removeprefix(f"{folder}/") for each in Listing(f"{folder}/{pattern}").look()} == names


def test_files_come_by_modification_time_then_path(folder, spark, tmp_path):
    for name, at in (("c", 100), ("b", 200), ("a", 200)):
        put(folder, name, [ord(name)], at)
    reader = opened(ps.files(folder, files_per_epoch=1), spark, tmp_path / "own", PLAIN)
    assert [numbers_of(reader, *pair) for pair in pairs(offsets(reader))] == [[99], [97], [98]]


def pairs(aheads):
    places = [{}, *(each.offset for each in aheads)]
    return list(pairwise(places))


@pytest.mark.parametrize(
    ("limit", "taken"),
    [
        ({"files_per_epoch": 2}, [2, 2, 1]),
        ({"bytes_per_epoch": None}, [5]),
        ({"bytes_per_epoch": 1}, [1, 1, 1, 1, 1]),
        ({"bytes_per_epoch": 2.5}, [2, 2, 1]),
    ],
)
def test_limits_of_an_epoch(folder, spark, tmp_path, limit, taken):
    """No file is taken that would exceed the bytes, but always one; `whole` says that none is left."""
    for number in range(5):
        size = put(folder, f"{number}", [number], 100 + number).stat().st_size
    if limit.get("bytes_per_epoch") == 2.5:
        limit = {"bytes_per_epoch": size * 5 // 2}
    reader = opened(ps.files(folder, **limit), spark, tmp_path / "own", PLAIN)
    found = offsets(reader)
    assert [len(numbers_of(reader, *pair)) for pair in pairs(found)] == taken
    assert [each.whole for each in found] == [False] * (len(found) - 1) + [True]


def test_a_bounded_source_lists_when_it_starts_and_a_live_one_always(folder, spark, tmp_path):
    put(folder, "a", [1], 100)
    bounded = opened(ps.files(folder), spark, tmp_path / "bounded", PLAIN)
    live = opened(ps.files(folder, live=True), spark, tmp_path / "live", PLAIN)
    (end,) = offsets(bounded)
    (first,) = offsets(live)
    put(folder, "b", [2], 50)
    assert numbers_of(bounded, {}, end.offset) == numbers_of(live, {}, first.offset) == [1]
    assert bounded.ahead(end.offset) is None
    second = live.ahead(first.offset)
    assert numbers_of(live, first.offset, second.offset) == [2]
    assert live.ahead(second.offset) is None


def test_a_bounded_source_takes_new_files_when_it_is_started_again(folder, spark, tmp_path):
    put(folder, "a", [1], 100)
    (first,) = offsets(opened(ps.files(folder), spark, tmp_path / "own", PLAIN))
    put(folder, "b", [2], 50)
    again = opened(ps.files(folder), spark, tmp_path / "own", PLAIN)
    second = again.ahead(first.offset)
    assert numbers_of(again, first.offset, second.offset) == [2]
    assert numbers_of(again, {}, first.offset) == [1]


def test_another_process_reads_the_same_between_the_same_offsets(folder, spark, tmp_path):
    for number in range(6):
        put(folder, f"{number}", [number, number + 10], 100 + number)
    reader = opened(ps.files(folder, files_per_epoch=2), spark, tmp_path / "own", PLAIN)
    found = pairs(offsets(reader))
    here = [numbers_of(reader, *pair) for pair in found]
    program = """
        import json, sys
        from penstock.connect.sources.file_index import FileIndex
        from penstock.state.storage import Location
        index = FileIndex(Location.of(sys.argv[1]))
        found = [index.between(*pair) for pair in json.loads(sys.argv[2])[::-1]]
        print(json.dumps([[each.path for each in files] for files in found[::-1]]))
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "own"), json.dumps(found)]
    there = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    assert there == [[str(folder / f"{2 * pair + each}") for each in range(2)] for pair in range(3)]
    again = opened(ps.files(folder, files_per_epoch=2), spark, tmp_path / "own", PLAIN)
    assert [numbers_of(again, *pair) for pair in found] == here


def test_an_epoch_that_is_given_up_is_planned_anew(folder, spark, tmp_path):
    for number in range(4):
        put(folder, f"{number}", [number], 100 + number)
    source = ps.files(folder, files_per_epoch=2)
    first, second = offsets(opened(source, spark, tmp_path / "own", PLAIN))
    (folder / "2").unlink()
    again = opened(source, spark, tmp_path / "own", PLAIN)
    with pytest.raises(BadSource, match=r"/in/2 of stream 't' is gone; restore it, or give the epoch up"):
        again.splits(first.offset, second.offset, 2)
    other = again.ahead(first.offset)
    assert numbers_of(again, first.offset, other.offset) == [3]
    assert other.offset != second.offset
    # What was planned before still means the same.
    assert numbers_of(opened(source, spark, tmp_path / "own", PLAIN), {}, first.offset) == [0, 1]


def test_two_drivers_do_not_change_what_the_offsets_of_the_other_mean(folder, spark, tmp_path):
    """A driver that has lost its checkpoint may go on for a while."""
    for number in range(3):
        put(folder, f"{number}", [number], 100 + number)
    source = ps.files(folder, files_per_epoch=1, live=True)
    one = opened(source, spark, tmp_path / "own", PLAIN)
    first = one.ahead({})
    two = opened(source, spark, tmp_path / "own", PLAIN)
    second = two.ahead(first.offset)
    put(folder, "early", [7], 50)
    strange = one.ahead(first.offset)
    third = two.ahead(second.offset)
    three = opened(source, spark, tmp_path / "own", PLAIN)
    assert numbers_of(three, first.offset, second.offset) == [1]
    assert numbers_of(three, first.offset, strange.offset) == [7]
    assert numbers_of(three, second.offset, third.offset) == [7]


@pytest.mark.parametrize("how", ["rewritten", "touched", "gone"])
def test_a_file_that_is_not_the_one_that_was_listed_is_refused(folder, spark, tmp_path, how):
    path = put(folder, "a", [1], 100)
    for kind in ("parquet", "json"):
        reader = opened(ps.files(folder, kind), spark, tmp_path / kind, PLAIN)
        upto = reader.ahead({}).offset
        if how == "gone":
            path.unlink()
        else:
            put(folder, "a", [1, 2] if how == "rewritten" else [1], 100 if how == "rewritten" else 101)
        expected = (
            "is gone; restore it" if how == "gone" else "was written again: it has .*restore it as it was"
        )
        with pytest.raises(BadSource, match=expected):
            reader.splits({}, upto, 2)
        with pytest.raises(BadSource, match="penstock state DIR --abandon"):
            reader.frames(spark, {}, upto)
        put(folder, "a", [1], 100)
        assert reader.splits({}, upto, 2) or reader.frames(spark, {}, upto)


def test_a_torn_line_of_the_index_is_in_no_offset(folder, spark, tmp_path):
    for number in range(2):
        put(folder, f"{number}", [number], 100 + number)
    source = ps.files(folder, files_per_epoch=1)
    first, second = offsets(opened(source, spark, tmp_path / "own", PLAIN))
    (lines,) = (tmp_path / "own").glob("*.jsonl")
    lines.write_bytes(lines.read_bytes()[:-9])
    again = opened(source, spark, tmp_path / "own", PLAIN)
    assert numbers_of(again, {}, first.offset) == [0]
    with pytest.raises(DamagedCheckpoint, match="has 1 of 2 files; restore the whole checkpoint"):
        again.splits(first.offset, second.offset, 2)
    assert numbers_of(again, first.offset, again.ahead(first.offset).offset) == [1]


def test_a_large_index_is_not_written_again(folder, tmp_path):
    """100,000 files take some MB once; an epoch adds a line."""
    from penstock.connect.sources.file_index import FileIndex
    from penstock.connect.sources.listing import File
    from penstock.state.storage import Location

    index, offset = FileIndex(Location.of(tmp_path / "own")), {}
    names = [File(f"{folder}/{number:06d}.parquet", number, number) for number in range(100_000)]
    for first in range(0, len(names), 5000):
        offset = index.add(offset, names[first : first + 5000])
    (path,) = (tmp_path / "own").glob("*.jsonl")
    before = path.stat().st_size
    offset = index.add(offset, [File("new", 1, 2)])
    assert path.stat().st_size - before < 100
    again = FileIndex(Location.of(tmp_path / "own"))
    assert len(json.dumps(offset)) < 60
    assert again.between({"files": 99_999}, offset) == [names[-1], File("new", 1, 2)]
    assert again.unread(offset, [names[7], File("newer", 1, 2)]) == [File("newer", 1, 2)]


# ---- who reads a file, and how it is cut -------------------------------------------------------------------


def test_row_groups_are_shared_out_and_large_ones_cut(folder, spark, tmp_path):
    numbers = range(400_000)
    rows = pa.table(
        {"time": pa.array(numbers, pa.timestamp("us", "UTC")), "k": ["a"] * 400_000, "n": numbers}
    )
    pq.write_table(rows, folder / "one", row_group_size=400_000)
    pq.write_table(rows, folder / "many", row_group_size=50_000)
    for name, tasks, splits in (("one", 2, 2), ("one", 8, 3), ("many", 2, 2), ("many", 4, 4), ("one", 1, 1)):
        reader = opened(ps.files(f"{folder}/{name}*"), spark, tmp_path / f"{name}{tasks}", PLAIN)
        upto = reader.ahead({}).offset
        found = reader.splits({}, upto, tasks)
        assert len(found) == splits
        sizes = [each.size for each in found]
        assert max(sizes) < 1.1 * min(sizes)
        assert numbers_of(reader, {}, upto, tasks) == list(numbers)
        assert max(batch.num_rows for each in found for batch in each.read(["n"])) <= 131_072


def test_live_files_have_their_modification_time(folder, spark, tmp_path):
    put(folder, "a", [1], 100)
    (folder / "b.json").write_text("{}")
    reader = opened(ps.files(f"{folder}/a*", live=True), spark, tmp_path / "one", PLAIN)
    (split,) = reader.splits({}, reader.ahead({}).offset, 2)
    assert split.file == str(folder / "a")
    (batch,) = split.read(["n"])
    assert batch.to_pydict() == {"n": [1], ARRIVED: [100_000_000]}


def test_arrow_files_are_read_by_batches(folder, spark, tmp_path):
    given = table(*range(10))
    turned = given.select([2, 0, 1]).rename_columns(["N", "time", "k"])
    turned = turned.set_column(2, "k", turned["k"].dictionary_encode())
    for name, each in (("a", given), ("b", turned)):
        with pa.ipc.new_file(folder / name, each.schema) as file:
            file.write_table(each.unify_dictionaries(), max_chunksize=3)
        os.utime(folder / name, (100, 100))
    reader = opened(ps.files(folder, "arrow"), spark, tmp_path / "own", PLAIN)
    upto = reader.ahead({}).offset
    assert len(reader.splits({}, upto, 4)) >= 4
    read = split_rows(reader, {}, upto, ["k", "n", "time"], 4)
    assert read.equals(pa.concat_tables([given, given]).select(["k", "n", "time"]))
    assert not frame_rows(reader, spark, {}, upto)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.drop_columns("n"), "has no column 'n'; it has time, k"),
        (lambda rows: rows.append_column("N", rows["n"]), "has more than one column 'n'"),
        (
            lambda rows: rows.set_column(2, "n", rows["k"]),
            "column 'n' of file .* is string, declared is bigint",
        ),
    ],
)
def test_an_arrow_file_with_other_columns_is_refused(folder, spark, tmp_path, change, reason):
    rows = change(table(1))
    with pa.ipc.new_file(folder / "a", rows.schema) as file:
        file.write_table(rows)
    reader = opened(ps.files(folder, "arrow"), spark, tmp_path / "own", PLAIN)
    with pytest.raises(BadSource, match=reason):
        reader.splits({}, reader.ahead({}).offset, 1)


def test_what_is_no_arrow_file_is_refused(folder, spark, tmp_path):
    put(folder, "a", [1])
    reader = opened(ps.files(folder, "arrow"), spark, tmp_path / "own", PLAIN)
    with pytest.raises(BadSource, match="in/a is no Arrow IPC file"):
        reader.splits({}, reader.ahead({}).offset, 1)


def test_spark_reads_text_with_what_is_wrong_in_it(folder, spark, tmp_path):
    files = {
        "a.csv": "n,time,k\n1,2024-01-01T00:00:01Z,a\n",
        "ein %20 [1].csv": "n,time,k\n2,2024-01-01T00:00:01Z,a\n",
        "b.csv": "K, N ,more,TIME\nb,3,x,2024-01-01T00:00:02Z\nb,oops,x,2024-01-01T00:00:02Z\n",
        "empty.csv": "",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
        os.utime(folder / name, (100, 100))
    source = ps.files(folder, "csv", options={"header": "true"}, live=True)
    reader = opened(source, spark, tmp_path / "own", PLAIN)
    upto = reader.ahead({}).offset
    assert not reader.splits({}, upto, 2)
    rows = frame_rows(reader, spark, {}, upto)
    assert sorted(row["n"] for row in rows if row[CORRUPT] is None) == [1, 2, 3]
    assert {row[ARRIVED] for row in rows} == {100_000_000}
    (wrong,) = [row for row in rows if row[CORRUPT] is not None]
    assert (wrong[CORRUPT], wrong[REASON]) == (
        "b,oops,x,2024-01-01T00:00:02Z",
        "column n: 'oops' is not bigint",
    )


@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("in", {}, "has no file; correct it, or give live=True"),
        ("in/*.x", {}, "matches no file"),
        ("in/a", {"live": True}, "does not exist"),
        ("x.parquet", {}, r"is a file; give its folder, or a pattern such as '.*/\*.parquet'"),
    ],
)
def test_nothing_to_read_is_said_at_once(folder, spark, tmp_path, path, options, reason):
    put(tmp_path, "x.parquet", [1])
    put(folder, "_b", [1])
    with pytest.raises(BadSource, match=reason):
        opened(ps.files(f"{tmp_path}/{path}", **options), spark, tmp_path / "own", PLAIN)


def test_a_live_source_may_wait_for_its_first_file(folder, spark, tmp_path):
    said = []
    reader = opened(ps.files(folder, live=True), spark, tmp_path / "own", PLAIN, said.append)
    assert "has no file yet" in said[0]
    assert reader.ahead({}) is None
    put(folder, "a", [1])
    assert numbers_of(reader, {}, reader.ahead({}).offset) == [1]


def test_a_live_source_finds_every_file_though_it_rarely_reads_an_old_folder(folder, spark, tmp_path):
    """A folder is only taken as it was if its modification time is older than a clock may be coarse."""
    reader = opened(ps.files(folder, live=True), spark, tmp_path / "own", PLAIN)
    after = {}
    for number in range(20):
        if number % 5 == 4:
            os.utime(folder, (100, 100))  # an old folder, which a look takes for settled
            assert reader.ahead(after) is None
        put(folder, f"{number % 3}/{number}", [number])
        upto = reader.ahead(after).offset
        assert numbers_of(reader, after, upto) == [number]
        after = upto


# ---- other sources -----------------------------------------------------------------------------------------


def test_rows_are_kept_one_batch_an_epoch(spark, tmp_path):
    source = ps.rows([table(1, 2), [], table(3)])
    reader = opened(source, spark, tmp_path / "own", PLAIN)
    found = offsets(reader)
    assert [(each.whole, each.left) for each in found] == [(False, 1), (False, 1), (True, 0)]
    again = opened(ps.rows([table(9)]), spark, tmp_path / "own", PLAIN)
    for each in (reader, again):
        assert [numbers_of(each, *pair) for pair in pairs(found) if each.splits(*pair, 2)] == [[1, 2], [3]]
    assert reader.ended


def test_many_rows_are_several_splits(spark, tmp_path):
    numbers = range(300_000)
    rows = pa.table(
        {"time": pa.array(numbers, pa.timestamp("us", "UTC")), "k": ["a"] * 300_000, "n": numbers}
    )
    reader = opened(ps.rows([rows]), spark, tmp_path / "own", PLAIN)
    upto = reader.ahead({}).offset
    one, other = reader.splits({}, upto, 8)
    assert one.size == other.size > 150_000
    assert numbers_of(reader, {}, upto, 8) == list(numbers)


def test_the_own_source(folder, spark, tmp_path):
    (folder / "0.log").write_text("2024-01-01T00:00:01Z a 1\noops\n")
    (folder / "1.log").write_text("2024-01-01T00:00:02Z b 2\n")
    reader = opened(LogSource(str(folder)), spark, tmp_path / "own", PLAIN)
    first, second = offsets(reader)
    assert (first.whole, second.whole) == (False, True)
    columns = ["time", "k", "n", CORRUPT]
    rows = split_rows(reader, {}, first.offset, columns).to_pylist()
    assert rows[0] == table(1).set_column(1, "k", [["a"]]).to_pylist()[0] | {CORRUPT: None}
    assert rows[1] == dict.fromkeys(columns) | {CORRUPT: "oops"}
    assert numbers_of(reader, first.offset, second.offset) == [2]


@pytest.fixture
def gate(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "gate") as running:
        yield running


def pushed(gate, stream, rows, promise=None):
    with Client(gate.address, stream, rows.schema) as client:
        for batch in rows.to_batches():
            client.push(batch)
        if promise is not None:
            client.promise(promise)


def waited(reader, after):
    end = time.monotonic() + 120
    while (ahead := reader.ahead(after)) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    return ahead


def test_gates_share_an_epoch_out_and_say_what_is_left(gate, spark, tmp_path):
    for stream in ("t/a", "t/b"):
        pushed(gate, stream, table(*range(10)).drop_columns("k"))
    source = ps.gates(gate.address, stream_column="k", rows_per_epoch=12)
    reader = opened(source, spark, tmp_path / "own", PLAIN)
    first = waited(reader, {})
    assert (first.whole, first.left) == (False, 8)
    second = reader.ahead(first.offset)
    assert (second.whole, second.left) == (True, 0)
    assert reader.ahead(second.offset) is None
    rows = split_rows(reader, {}, first.offset, ["k", "n"])
    assert rows.sort_by("k").to_pydict() == {"k": ["t/a"] * 6 + ["t/b"] * 6, "n": [*range(6), *range(6)]}
    again = opened(source, spark, tmp_path / "own", PLAIN)
    assert split_rows(again, {}, first.offset, ["k", "n"]).equals(rows)
    (split,) = again.splits(first.offset, second.offset, 2)
    assert split.size >= 8
    (batch,) = split.read(["n"])
    assert batch.schema.names == ["n", ARRIVED]
    assert "sesame" not in repr(split)
    for each in (reader, again):
        each.close()


def test_a_promise_moves_the_offset_of_gates(gate, spark, tmp_path):
    pushed(gate, "t/a", table(1))
    reader = opened(ps.gates(gate.address), spark, tmp_path / "own", PLAIN)
    first = waited(reader, {}).offset
    assert reader.note(first) == SourceNote()
    micros = int(dt.datetime(2024, 1, 2, tzinfo=dt.UTC).timestamp()) * 10**6
    pushed(gate, "t/a", table(), micros)
    second = waited(reader, first).offset
    assert not reader.splits(first, second, 2)
    assert reader.note(second) == SourceNote(promised={"t/a": micros}, least=micros)
    reader.commit(second)
    reader.close()


class TestDataFrames:
    """Every batch of Spark's streaming query is one epoch, and waits until it is committed."""

    def source(self, spark, folder, *, bounded=True):
        for number in range(3):
            put(folder, f"{number}", [number], 100 + number)
        reader = spark.readStream.schema(PLAIN).option("maxFilesPerTrigger", 1)
        return ps.dataframe(reader.parquet(str(folder)), bounded=bounded)

    def numbers(self, reader, spark, after, upto):
        return [row["n"] for row in frame_rows(reader, spark, after, upto)]

    def test_batch_after_batch(self, folder, spark, tmp_path):
        reader = opened(self.source(spark, folder), spark, tmp_path / "own", PLAIN)
        after = {}
        for number in range(3):
            upto = waited(reader, after).offset
            assert upto["batch"] == number
            assert not reader.splits(after, upto, 2)
            assert self.numbers(reader, spark, after, upto) == [number]
            assert reader.ahead(after).offset == upto
            assert not reader.ended
            reader.commit(upto)
            after = upto
        while not reader.ended:
            assert reader.ahead(after) is None
            time.sleep(0.01)
        assert reader.ahead(after) is None
        reader.close()

    def test_a_replay_waits_for_the_same_batch(self, folder, spark, tmp_path):
        source = self.source(spark, folder)
        reader = opened(source, spark, tmp_path / "own", PLAIN)
        first = waited(reader, {}).offset
        reader.commit(first)
        second = waited(reader, first).offset
        reader.close()
        again = opened(source, spark, tmp_path / "own", PLAIN)
        assert self.numbers(again, spark, first, second) == [1]
        again.commit(second)
        third = waited(again, second).offset
        assert self.numbers(again, spark, second, third) == [2]
        again.close()
        # The epoch of the first batch is gone back to: later ones are planned anew.
        back = opened(source, spark, tmp_path / "own", PLAIN)
        assert waited(back, first).offset["batch"] == 1
        back.close()

    def test_other_offsets_than_those_of_the_epoch_are_refused(self, folder, spark, tmp_path):
        source = self.source(spark, folder)
        reader = opened(source, spark, tmp_path / "own", PLAIN)
        upto = waited(reader, {}).offset
        reader.close()
        again = opened(source, spark, tmp_path / "own", PLAIN)
        with pytest.raises(DamagedCheckpoint, match="other offsets of batch 0"):
            again.frames(spark, {}, {**upto, "digest": "0"})
        again.close()
        for each in (tmp_path / "own" / "spark").glob("*/*"):
            if each.is_file():
                each.unlink()
        with pytest.raises(DamagedCheckpoint, match="offsets/0, Spark's offsets of batch 0, is missing"):
            opened(source, spark, tmp_path / "own", PLAIN).ahead(upto)

    def test_an_error_of_spark_is_raised(self, folder, spark, tmp_path):
        frame = self.source(spark, folder).frame.selectExpr(
            "time", "k", "assert_true(n < 0) IS NULL AS x", "n"
        )
        broken = frame.where("x").selectExpr("time", "k", "raise_error(k) AS e", "n").where("e IS NULL")
        reader = opened(ps.dataframe(broken.drop("e"), bounded=True), spark, tmp_path / "own", PLAIN)
        upto = waited(reader, {}).offset
        with pytest.raises(Exception, match=r"assert_true|is not true"):
            self.numbers(reader, spark, {}, upto)
        reader.close()

    def test_an_error_of_the_streaming_query_is_raised_by_the_next_look(self, folder, spark, tmp_path):
        reader = opened(self.source(spark, folder), spark, tmp_path / "own", PLAIN)
        upto = waited(reader, {}).offset
        commits = tmp_path / "own" / "spark" / "commits"
        shutil.rmtree(commits)
        commits.write_text("a file where Spark wants a folder")
        reader.commit(upto)
        with pytest.raises(StreamingQueryException, match="commits"):
            waited(reader, upto)
        assert not reader.ended
        reader.close()

    def test_a_stopped_query_is_an_error_of_a_live_run(self, folder, spark, tmp_path):
        reader = opened(self.source(spark, folder, bounded=False), spark, tmp_path / "own", PLAIN)
        waited(reader, {})
        stop = threading.Thread(target=lambda: [each.stop() for each in spark.streams.active])
        stop.start()
        stop.join()
        reader.commit({"batch": 0})
        with pytest.raises(BadSource, match="the streaming query of stream 't' was stopped"):
            waited(reader, {"batch": 0})
        reader.close()

    @pytest.mark.parametrize(
        ("change", "error", "reason"),
        [
            (lambda frame: frame.drop("n"), BadSource, "has no column 'n'; it has time, k"),
            (
                lambda frame: frame.selectExpr("time", "k", "k AS n"),
                WrongType,
                r"declared bigint, but .* string",
            ),
        ],
    )
    def test_columns_are_checked_when_it_is_opened(self, folder, spark, tmp_path, change, error, reason):
        frame = change(self.source(spark, folder).frame)
        with pytest.raises(error, match=reason):
            opened(ps.dataframe(frame), spark, tmp_path / "own", PLAIN)
