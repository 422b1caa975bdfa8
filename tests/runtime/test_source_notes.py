"""What sources say of themselves in Spark's offsets: the same however often an epoch is run."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.ingest.reader import Offsets
from penstock.runtime.spark.offsets import SourceNote, SparkOffsets
from penstock.state.storage import Location


def offsets(promised, following=None, **more):
    """The offsets of an inlet with streams a and b, and promises before their next rows."""
    names, times = pa.array(list(promised), pa.string()), np.array(list(promised.values()), np.int64)
    found = Offsets.of(following or {"a": 5, "b": 7}).hearing(names, times, np.zeros(len(times), np.int64))
    return {**replace(found, **more).packed(), "stream": "reports", "column": "vehicle"}


def test_an_epoch_finds_its_promises_in_its_offsets(tmp_path):
    lines = ["v1", "{}", json.dumps(offsets({"a": 90})), "-", json.dumps({"logOffset": 3})]
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text("\n".join(lines))
    spark = SparkOffsets(Location(str(tmp_path)))
    note = SourceNote(promised={"a": 90}, column="vehicle")
    assert spark.notes(4) == spark.notes(4) == {"reports": note}


def test_a_source_promises_when_all_its_streams_have():
    assert SourceNote.of(offsets({"a": 90})).least is None
    assert SourceNote.of(offsets({"a": 90, "b": 80})).least == 80


def test_a_source_promises_nothing_while_a_stream_is_expected_that_has_not():
    promised = {"a": 90, "b": 80}
    assert SourceNote.of(offsets(promised, waiting=("b",))).least == 80
    assert SourceNote.of(offsets(promised, waiting=("c",))).least is None


def test_offsets_without_promises_need_no_more_than_before():
    assert SourceNote.of({"stream": "reports", "away": ["a:1"]}) == SourceNote(away=("a:1",))
