"""What an offset says of the streams behind gates: the same however often an epoch is run."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from connect.reading import opened
from penstock.connect import NOTHING_SAID, SourceNote
from penstock.ingest.reader import Offsets

SCHEMA = "time timestamp, vehicle string"


@pytest.fixture
def reader(tmp_path):
    """No gate is asked what an offset says."""
    reader = opened(ps.gates("127.0.0.1:1", stream_column="vehicle"), None, tmp_path, SCHEMA)
    yield reader
    reader.close()


def offset(promised, following=None, **more):
    """The offset of an inlet with streams a and b, and promises before their next rows."""
    names, times = pa.array(list(promised), pa.string()), np.array(list(promised.values()), np.int64)
    found = Offsets.of(following or {"a": 5, "b": 7}).hearing(names, times, np.zeros(len(times), np.int64))
    return replace(found, **more).packed()


def test_an_epoch_finds_its_promises_in_its_offset(reader):
    durable = json.loads(json.dumps(offset({"a": 90})))
    note = SourceNote(promised={"a": 90}, column="vehicle")
    assert reader.note(durable) == reader.note(durable) == note


def test_a_source_promises_when_all_its_streams_have(reader):
    assert reader.note(offset({"a": 90})).least is None
    assert reader.note(offset({"a": 90, "b": 80})).least == 80


def test_a_source_promises_nothing_while_a_stream_is_expected_that_has_not(reader):
    promised = {"a": 90, "b": 80}
    assert reader.note(offset(promised, waiting=("b",))).least == 80
    assert reader.note(offset(promised, waiting=("c",))).least is None


def test_an_offset_without_promises_says_who_is_away(reader):
    assert reader.note(offset({}, away=("a:1",))) == SourceNote(away=("a:1",))
    assert reader.note(offset({})) == NOTHING_SAID
