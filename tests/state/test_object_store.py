"""Defect 28: object stores were claimed and untested. Locations on a real S3 server on this machine."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import penstock as ps
from penstock.connect import EpochId, ResultFile, ResultFormat, Results, SinkContext
from penstock.distribution.by_key import KeyPlacing
from penstock.durable import Purpose
from penstock.routing import first_router
from penstock.state import MovingStage, TimeTable, segments, views
from penstock.state.storage import Location

STEP = Purpose.MANIFEST


@pytest.fixture(scope="module")
def bucket():
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py"))]
    keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        before = dict(os.environ)
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(server.stdout.readline())}", **keys}
        try:
            store, _ = fs.FileSystem.from_uri("s3://penstock?allow_bucket_creation=true")
            store.create_dir("penstock")
            yield "s3://penstock"
        finally:
            os.environ.clear()
            os.environ.update(before)
            server.terminate()


@pytest.fixture(params=["local", "s3", "s3a"])
def folder(request, tmp_path, bucket):
    name = tmp_path.name
    place = tmp_path / "files" if request.param == "local" else f"{request.param}://penstock/{name}"
    folder = Location.of(place)
    folder.make()
    return folder


def test_a_file_is_written_read_moved_and_deleted(folder):
    folder.write("a", b"one", STEP)
    folder.write("a", b"two", STEP)
    assert (folder.read("a"), folder.names(), folder.size("a")) == (b"two", ["a"], 3)
    folder.write("b", b"old", STEP)
    folder.move("a", "b", STEP)
    folder.sync_names(STEP)
    assert (folder.names(), folder.has("a"), folder.size("a"), folder.read("b")) == (
        ["b"],
        False,
        None,
        b"two",
    )
    (folder / "below").make()
    (folder / "below").write("c", b"three", STEP)
    assert folder.names() == ["b", "below"]
    assert sorted(Path(each).name for each in folder.walk(lambda _: True)) == ["b", "c"]
    folder.delete("b", STEP)
    folder.delete("b", STEP)
    assert not folder.has("b")
    assert (folder / "nowhere").names() == []
    assert ((folder / "nowhere").kind, folder.kind) == (None, "folder")


def test_a_file_is_created_once(folder):
    folder.create("a", b"one", STEP)
    with pytest.raises(FileExistsError):
        folder.create("a", b"two", STEP)
    assert (folder.read("a"), folder.names()) == (b"one", ["a"])


def created(folder, name, data):
    try:
        folder.create(name, data, STEP)
    except FileExistsError:
        return False
    return True


def test_of_two_writers_one_succeeds(folder):
    with ThreadPoolExecutor(2) as pool:
        for turn in range(5):
            name, data = str(turn), (b"one", b"two")
            won = list(pool.map(lambda each, name=name: created(folder, name, each), data))
            assert sorted(won) == [False, True]
            assert folder.read(name) == data[won.index(True)]


def test_segments_are_read_back(folder):
    table = pa.table({"k": ["a", "b"], "n": [1, 2]})
    segment = segments.store(folder, "s", table, table="t", first=0, end=9)
    assert segments.read(folder, segment).equals(table)
    old, new = (first_router("uniform", each).arrays for each in (1, 2))
    found = MovingStage((TimeTable("t", ("k",)),), ((segment,),), KeyPlacing(old, new)).move(folder, "m", 2)
    views.forget()
    rows = [segments.read(folder, each) for channel in found.channels for each in channel]
    assert pa.concat_tables(rows).sort_by("n").equals(table)


def test_s3a_and_s3_are_one_place():
    assert Location.of("s3a://b/x") == Location.of("s3://b/x")
    assert Location.of("s3://b/x").for_spark == "s3a://b/x"
    assert Location.of("x").for_spark == str(Path("x").absolute())


def test_the_parquet_sink_replaces_what_came_before(bucket, tmp_path):
    sink, schema = ps.parquet(f"{bucket}/out"), pa.schema([("n", pa.int64())])
    for _ in range(2):
        context = SinkContext(name="o", id="c-0", schema=schema, folder=Location.of(tmp_path), session=None)
        delivery, target = sink.open(context), sink.writes(context.folder)
        file = ResultFile(target, schema)
        file.write(pa.table({"n": [1, 2]}))
        file.close()
        assert isinstance(target, ResultFormat)
        delivery.deliver(EpochId(3), Results(EpochId(3), schema, target, (file.receipt(),)))
    names = [each for each in sink.folder.names() if each.endswith(".parquet")]
    assert len(names) == 1
    table = pq.read_table(f"{sink.folder.path}/{names[0]}", filesystem=sink.folder.files)
    assert table.to_pydict() == {"n": [1, 2]}
