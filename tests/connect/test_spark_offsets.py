"""The checkpoint of Spark's own streaming query: known by what it reads, set back, and repaired."""

import json

import pytest

from penstock.connect.sources.spark_offsets import SparkOffsets
from penstock.errors import DamagedCheckpoint
from penstock.state.storage import Location

PARTS = ("offsets", "commits", "sources/0")


@pytest.fixture
def folder(tmp_path):
    """After three planned batches, of which two are committed, with a source of one file to a batch."""
    for part in PARTS:
        (tmp_path / "spark" / part).mkdir(parents=True)
    for batch in range(3):
        head = f'v1\n{{"batchTimestampMs":{batch}}}\n'
        (tmp_path / f"spark/offsets/{batch}").write_text(f'{head}{{"logOffset":{batch}}}')
        (tmp_path / f"spark/sources/0/{batch}").write_text(f'v1\n{{"path":"{batch}.parquet"}}')
        if batch < 2:
            (tmp_path / f"spark/commits/{batch}").write_text("v1\n{}")
            (tmp_path / f"spark/commits/.{batch}.crc").write_text("a checksum")
    return tmp_path / "spark"


def offsets(folder):
    return SparkOffsets(Location(str(folder)))


def names(folder):
    return {part: sorted(path.name for path in (folder / part).glob("[0-9]*")) for part in PARTS}


def test_offsets_are_known_by_what_they_read_and_not_by_when(folder):
    """Defect 13: nothing tied a manifest to Spark's offsets."""
    before = offsets(folder).settle(1)
    path = folder / "offsets/1"
    path.write_text(path.read_text().replace('Ms":1', 'Ms":99'))
    offsets(folder).check(1, before)
    (folder / "sources/0/1").write_text('v1\n{"path":"other.parquet"}')
    with pytest.raises(DamagedCheckpoint, match=r"offsets/1 has other offsets of batch 1 than its epoch"):
        offsets(folder).check(1, before)
    path.write_text('v1\n{}\n{"logOffset":2}')
    with pytest.raises(DamagedCheckpoint, match="lose or repeat rows"):
        offsets(folder).check(1, before)


def test_what_spark_has_of_later_batches_is_set_aside(folder, tmp_path):
    offsets(folder).set_back(0, Location(str(tmp_path / "aside")))
    assert names(folder) == {key: ["0"] for key in PARTS}
    aside = tmp_path / "aside"
    assert names(aside) == {"offsets": ["1", "2"], "commits": ["1"], "sources/0": ["1", "2"]}
    assert (aside / "commits/.1.crc").exists()
    offsets(folder).set_back(-1, Location(str(aside)))
    assert names(folder) == {key: [] for key in PARTS}


def test_a_list_of_files_whose_end_is_gone_is_not_set_back(folder, tmp_path):
    """It would take files for new that it has read."""
    (folder / "sources/0/0").unlink()
    offsets(folder).set_back(0, Location(str(tmp_path / "aside")))
    assert names(folder) == {"offsets": ["0"], "commits": ["0"], "sources/0": ["1", "2"]}


@pytest.mark.parametrize("left", [None, b"", b'{"id":"0d1'])
def test_metadata_that_spark_never_synced_is_written_anew(folder, left):
    """Defect 13: after a loss of power Spark refuses its own offsets."""
    metadata = folder / "metadata"
    (folder / ".metadata.crc").write_text("a checksum of other bytes")
    if left is not None:
        metadata.write_bytes(left)
    offsets(folder).restore_metadata()
    written = json.loads(metadata.read_text())
    assert written["id"]
    assert not (folder / ".metadata.crc").exists()
    offsets(folder).restore_metadata()
    assert json.loads(metadata.read_text()) == written
