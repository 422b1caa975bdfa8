"""Places that cannot work are refused before Spark starts."""

import pytest

import penstock as ps
from penstock.errors import BadPath, BadSource


def stream(folder):
    return ps.stream("s", "time timestamp, n bigint", "time", source=ps.files(folder)).where("n > 0")


@pytest.fixture
def places(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "file").write_text("x")
    return tmp_path


@pytest.mark.parametrize("sink", ["file", "file/out", "file/deep/out"])
def test_a_file_is_no_folder_for_results(places, sink):
    with pytest.raises(BadPath, match=r"cannot be a folder: .*/file is a file; give another path"):
        stream(places / "in").start(ps.parquet(places / sink))


@pytest.mark.parametrize("checkpoint", ["file", "file/checkpoint"])
def test_a_file_is_no_checkpoint(places, checkpoint):
    with pytest.raises(BadPath, match=r"/file is a file"):
        stream(places / "in").start(ps.memory(), places / checkpoint)


@pytest.mark.parametrize("checkpoint", ["in", "in/checkpoint"])
def test_a_checkpoint_is_not_among_the_data(places, checkpoint):
    with pytest.raises(BadPath, match=r"in the folder '.*/in' that stream 's' reads"):
        stream(places / "in").start(ps.memory(), places / checkpoint)


@pytest.mark.parametrize("sink", ["in", "in/out"])
def test_results_are_not_among_the_data(places, sink):
    with pytest.raises(BadPath, match=r"parquet\(.* in the folder '.*/in' that stream 's' reads"):
        stream(places / "in").start(ps.parquet(places / sink))


def test_results_are_not_in_the_checkpoint(places):
    with pytest.raises(BadPath, match=r"is in the checkpoint .* whose files come and go"):
        stream(places / "in").start(ps.parquet(places / "checkpoint" / "out"), places / "checkpoint")


def test_what_readers_skip_and_what_only_begins_alike_is_fine(places, spark):
    source = stream(places / "in")
    with pytest.raises(BadSource, match="has no file"):
        source.start(ps.parquet(places / "in" / "_out"), places / "in" / ".checkpoint", session=spark)
    with pytest.raises(BadSource, match="has no file"):
        source.start(ps.parquet(places / "in-out"), places / "in-checkpoint", session=spark)


@pytest.mark.parametrize(
    ("path", "told"), [("away", "does not exist"), ("file", "is a file; give its folder, or a pattern")]
)
def test_a_source_that_is_no_folder(places, spark, path, told):
    with pytest.raises(BadSource, match=told):
        stream(places / path).start(ps.memory(), session=spark)


def test_a_table_of_delta_is_no_file(places, spark):
    (places / "in" / "a.parquet").write_text("not read")
    with pytest.raises(BadPath, match="/file is a file"):
        stream(places / "in").start(ps.delta(places / "file"), session=spark)
