"""Nothing silent at the edge of files: headers, malformed records, and folders without any."""

import datetime as dt
import gzip
import logging

import pytest

import penstock as ps
from oracle import fetched
from penstock.errors import BadPath, BadSource

COLUMNS = "time timestamp, k string, v double"
WITH_HEADER = {"header": "true"}


@pytest.fixture(autouse=True)
def _session(spark):
    pass


def csv_stream(folder, **options):
    return ps.stream("t", COLUMNS, "time", source=ps.files(folder, "csv", options=WITH_HEADER, **options))


def collected(stream, tmp_path):
    sink = ps.memory()
    run = stream.start(sink, checkpoint=tmp_path / "state")
    run.wait()
    return sorted((row["k"], row["v"]) for row in sink.table().to_pylist()), run


def rejects(tmp_path):
    return fetched(f"SELECT reason, record, file FROM '{tmp_path}/state/rejects/*.parquet' ORDER BY reason")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def test_csv_columns_go_by_header_in_each_file(folder, tmp_path):
    """Newcomer 5: columns were read by position, whatever the header said."""
    (folder / "a.csv").write_text("v,time,k\n1.5,2024-01-01T00:00:01Z,a\n")
    (folder / "b.csv").write_text('K, V ,"more, or less",TIME\nb,2.5,x,2024-01-01T00:00:02Z\n')
    (folder / "empty.csv").write_text("")
    (folder / "ein %20 [1].csv").write_text("\ufefftime,k,v\n2024-01-01T00:00:03Z,c,3.5\n")
    with gzip.open(folder / "d.csv.gz", "wt") as file:
        file.write("k,v,time\nd,4.5,2024-01-01T00:00:04Z\n")
    rows, run = collected(csv_stream(folder), tmp_path)
    assert rows == [("a", 1.5), ("b", 2.5), ("c", 3.5), ("d", 4.5)]
    assert (run.counts.rows, run.counts.rejected) == (4, 0)


@pytest.mark.parametrize(("limit", "epochs"), [({}, 1), ({"bytes_per_epoch": 1}, 3)], ids=["default", "one"])
def test_an_epoch_takes_files_up_to_a_number_of_bytes(folder, tmp_path, limit, epochs):
    """Defect 12: a first epoch took everything that was there, whatever its size."""
    for number in range(3):
        (folder / f"{number}.csv").write_text(f"k,v,time\na,{number},2024-01-01T00:00:01Z\n")
    rows, run = collected(csv_stream(folder, **limit), tmp_path)
    assert len(rows) == 3
    assert len([each for each in run.progress if each.rows]) == epochs


def test_every_source_has_a_limit_for_an_epoch():
    """Defect 12: the defaults take a finite part of what waits."""
    assert ps.files("in").bytes_per_epoch == 2**30
    assert ps.gates("127.0.0.1:7400").rows_per_epoch == 1_000_000


def test_a_folder_in_the_path_gives_a_column(folder, tmp_path):
    for k in ("a", "b"):
        (folder / f"k={k}").mkdir()
        (folder / f"k={k}" / "x.csv").write_text("v,time\n1.5,2024-01-01T00:00:01Z\n")
    assert collected(csv_stream(folder), tmp_path)[0] == [("a", 1.5), ("b", 1.5)]


def test_two_csv_streams_of_one_query_go_by_header(folder, tmp_path):
    for number, header in enumerate(["v,time,k", "v,k,time"]):
        (folder / str(number)).mkdir()
        line = "1.5,2024-01-01T00:00:01Z,a" if number == 0 else "1.5,a,2024-01-01T00:00:01Z"
        (folder / str(number) / "x.csv").write_text(f"{header}\n{line}\n")
    one, two = (
        ps.stream(
            f"s{each}", COLUMNS, "time", source=ps.files(folder / str(each), "csv", options=WITH_HEADER)
        )
        for each in range(2)
    )
    assert collected(one.union(two), tmp_path)[0] == [("a", 1.5), ("a", 1.5)]


def test_a_missing_column_is_named_when_the_run_starts(folder, tmp_path):
    (folder / "a.csv").write_text("time,speed,k\n2024-01-01T00:00:01Z,1.5,a\n")
    with pytest.raises(BadSource, match=r"in/a.csv has no column 'v'; its header is 'time, speed, k'"):
        csv_stream(folder).start(ps.memory(), checkpoint=tmp_path / "state")


def test_a_missing_column_in_a_later_file_ends_the_run(folder, tmp_path):
    (folder / "a.csv").write_text("time,v,k\n2024-01-01T00:00:01Z,1.5,a\n")
    (folder / "b.csv").write_text("time,k,V,v\n2024-01-01T00:00:01Z,a,1,2\n")
    with pytest.raises(BadSource, match=r"in/b.csv has more than one column 'v'"):
        collected(csv_stream(folder), tmp_path)


def test_without_a_header_columns_go_by_position(folder, tmp_path):
    (folder / "a.csv").write_text("2024-01-01T00:00:01Z,a,1.5\n")
    stream = ps.stream("t", COLUMNS, "time", source=ps.files(folder, "csv"))
    assert collected(stream, tmp_path)[0] == [("a", 1.5)]


def test_a_reject_names_column_value_and_file(folder, tmp_path):
    """Newcomer, friction: rejects said only that the record is malformed."""
    long = "x" * 100
    lines = ["2024-01-01T00:00:01Z,a,oops", f"{long},b,1.5", "2024-01-01T00:00:02Z,c", ",d,2.5"]
    (folder / "a.csv").write_text("\n".join(["time,k,v", *lines, "2024-01-01T00:00:03Z,e,1.5\n"]))
    rows, run = collected(csv_stream(folder), tmp_path)
    assert rows == [("e", 1.5)]
    assert run.counts.rejected == 4
    assert rejects(tmp_path) == [
        (reason, record, (folder / "a.csv").as_uri())
        for reason, record in [
            ("column time is null; expected timestamp", '{"k":"d","v":2.5}'),
            (f"column time: '{long[:60]}…' is not timestamp", lines[1]),
            ("column v: 'oops' is not double", lines[0]),
            ("the record is malformed: expected 3 fields", lines[2]),
        ]
    ]


def test_a_reject_of_json_names_column_and_value(folder, tmp_path):
    lines = ['{"time":"2024-01-01T00:00:01Z","k":"a","v":"it\'s"}', "{oops"]
    (folder / "a.json").write_text("\n".join([*lines, '{"time":"2024-01-01T00:00:01Z","k":"b","v":1.5}']))
    rows, _ = collected(ps.stream("t", COLUMNS, "time", source=ps.files(folder, "json")), tmp_path)
    assert rows == [("b", 1.5)]
    assert [each[:2] for each in rejects(tmp_path)] == [
        ("column v: 'it's' is not double", lines[0]),
        ("the record is malformed: expected a JSON object on one line", lines[1]),
    ]


def test_some_rows_rejected_is_a_warning(folder, tmp_path):
    """Defect: only all of them were worth a warning."""
    (folder / "a.csv").write_text("2024-01-01T00:00:01Z,a,1.5\n02.01.2024,a,2.5\n")
    stream = ps.stream("t", COLUMNS, "time", source=ps.files(folder, "csv"))
    _, run = collected(stream.window("1 minute").agg(k=ps.min("k"), v=ps.sum("v")), tmp_path)
    (warning,) = run.warnings
    assert "epoch 0: 1 tuples of stream 't' were rejected, such as: column time: '02.01.2024'" in warning


def test_all_rows_rejected_is_a_warning(folder, tmp_path, caplog):
    """Newcomer, friction: 100 % rejected ended quietly."""
    (folder / "a.csv").write_text("01.01.2024,a,1.5\n02.01.2024,a,2.5\n")
    stream = ps.stream("t", COLUMNS, "time", source=ps.files(folder, "csv"))
    with caplog.at_level(logging.WARNING, "penstock.run"):
        _, run = collected(stream.window("1 minute").agg(k=ps.min("k"), v=ps.sum("v")), tmp_path)
    (warning,) = run.warnings
    assert "all 2 tuples of stream 't' were rejected, such as: column time: '01.01.2024' is not" in warning
    assert warning in repr(run)
    assert "all 2 tuples" in repr(run.progress[0])
    assert warning in caplog.text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("in", "has no file; correct it, or give live=True"),
        ("in/*.csv", "matches no file"),
        ("in/b.csv", "does not exist"),
        ("x.csv", r"is a file; give its folder, or a pattern such as '.*/\*.csv'"),
    ],
)
def test_no_file_is_said_at_once(path, reason, folder, tmp_path):
    """Newcomer, friction: an empty folder ended quietly, and a single file failed after 30 s."""
    (tmp_path / "x.csv").write_text("2024-01-01T00:00:01Z,a,1.5\n")
    (folder / "_SUCCESS").write_text("")
    with pytest.raises(BadSource, match=reason):
        csv_stream(f"{tmp_path}/{path}").start(ps.memory(), checkpoint=tmp_path / "state")


def test_a_checkpoint_where_spark_cannot_write_is_refused_with_what_is_missing(folder):
    """Defect 28: the run failed with a trace of Hadoop."""
    (folder / "a.csv").write_text("v,time,k\n1.5,2024-01-01T00:00:01Z,a\n")
    with pytest.raises(BadPath, match=r"no file system for s3a://b/state: .*hadoop-aws:3\."):
        csv_stream(folder).start(ps.memory(), checkpoint="s3://b/state")


def test_a_live_folder_may_be_empty_at_first(folder, tmp_path, caplog):
    sink = ps.memory()
    with (
        caplog.at_level(logging.WARNING, "penstock.run"),
        csv_stream(folder, live=True).start(sink, checkpoint=tmp_path / "state", name="speeds") as run,
    ):
        assert "has no file yet" in repr(run)
        assert "speeds: path" in caplog.text
        (folder / "_a.csv").write_text("v,time,k\n1.5,2024-01-01T00:00:01Z,a\n")
        (folder / "_a.csv").rename(folder / "a.csv")
        while run.running and not run.counts.rows:
            run.wait(0.1)
        # Defect: it stayed for ever.
        assert "warning" not in repr(run)
        assert "has no file yet" in run.warnings[0]
    assert sink.table().to_pylist() == [
        {"time": dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=dt.UTC), "k": "a", "v": 1.5}
    ]


@pytest.mark.parametrize("options", [WITH_HEADER, {}], ids=["header", "plain"])
def test_a_file_that_goes_before_its_epoch_ends_the_run(folder, tmp_path, options):
    """The files of later epochs are listed when the run starts; none is skipped in silence."""
    header = ["time,k,v"] if options else []
    for number in range(4):
        (folder / f"{number}.csv").write_text("\n".join([*header, f"2024-01-01T00:00:01Z,a,{number}", ""]))
    source = ps.files(folder, "csv", files_per_epoch=2, options=options)
    stream, found = ps.stream("t", COLUMNS, "time", source=source), []
    kept = tmp_path / "kept"

    def deliver(table, _):
        if not found:
            waiting = next(each for each in folder.iterdir() if int(each.stem) not in table["v"].to_pylist())
            waiting.rename(kept)
            gone.append(waiting)
        found.extend(table["v"].to_pylist())

    gone = []
    with pytest.raises(BadSource, match=r"/in/\d.csv of stream 't' is gone; restore it"):
        stream.start(ps.each(deliver), checkpoint=tmp_path / "state").wait()
    assert len(found) == 2
    kept.rename(gone[0])
    stream.start(ps.each(deliver), checkpoint=tmp_path / "state").wait()
    assert sorted(found) == [0, 1, 2, 3]
