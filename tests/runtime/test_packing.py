"""Messages of the packed exchange: every row comes to its channels, and what came is told."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.compile import TIME
from penstock.runtime.packing import NEVER, Packing, unpacked

SCHEMA = pa.schema([(TIME, pa.int64()), ("v", pa.string())])
CHANNELS = 4


def batch(rows):
    """Rows of (channel or channels, time, v)."""
    several = any(isinstance(channel, list) for channel, _, _ in rows)
    kind = pa.list_(pa.int32()) if several else pa.int32()
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    types = (kind, pa.int64(), pa.string())
    arrays = [pa.array(list(each), type_) for each, type_ in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["_ps_channel", TIME, "v"])


def received(messages, channel, side=0):
    """What one channel gets."""
    if not messages:
        return []
    table = pa.Table.from_batches(messages)
    mine = table.filter(pa.array(table["_ps_channel"].to_numpy() == channel))
    return unpacked(mine, side, SCHEMA).to_pylist()


def told(messages):
    table = pa.Table.from_batches(messages)
    names = ("_ps_latest", "_ps_earliest", "_ps_rejects", "_ps_came")
    return [[each for each in table[name].to_pylist() if each is not None] for name in names]


ROWS = st.lists(st.tuples(st.integers(-1, CHANNELS - 1), st.integers(0, 9), st.text(max_size=3)), max_size=20)


@given(st.lists(ROWS, max_size=4))
def test_every_row_comes_to_its_channel_in_the_order_it_was_sent(batches):
    messages = list(Packing(0, CHANNELS, watched=False)(iter(map(batch, batches))))
    for channel in range(CHANNELS):
        expected = [{TIME: t, "v": v} for rows in batches for at, t, v in rows if at == channel]
        assert received(messages, channel) == expected


def test_a_row_with_several_channels_comes_to_each_of_them():
    messages = list(
        Packing(1, CHANNELS, watched=False)(iter([batch([([2, 0], 5, "a"), ([-1], 6, "b"), ([2], 7, "c")])]))
    )
    assert [each["v"] for each in received(messages, 2, side=1)] == ["a", "c"]
    assert [each["v"] for each in received(messages, 0, side=1)] == ["a"]
    assert received(messages, 2, side=0) == []


@pytest.mark.parametrize("several", [False, True])
def test_rejects_and_late_rows_are_told_and_left_out(several):
    rows = [([0] if several else 0, time, "x") for time in (NEVER, 3, 8, 12)]
    messages = list(Packing(0, CHANNELS, watched=True, bound=5)(iter([batch(rows)])))
    assert [each[TIME] for each in received(messages, 0)] == [8, 12]
    assert told(messages) == [[12], [3], [1], [4]]


def test_what_came_is_told_though_no_row_is_sent():
    messages = list(Packing(0, CHANNELS, watched=True, bound=5)(iter([batch([(0, 1, "x")])])))
    assert told(messages)[3] == [1]
    assert [received(messages, channel) for channel in range(CHANNELS)] == [[]] * CHANNELS


def test_large_batches_are_sent_in_several_messages(monkeypatch):
    monkeypatch.setattr("penstock.runtime.packing._MOST_BYTES", 1_000)
    rows = [(int(at), number, "text") for number, at in enumerate(np.arange(400) % CHANNELS)]
    messages = list(Packing(0, CHANNELS, watched=True)(iter([batch(rows[:200]), batch(rows[200:])])))
    assert len(messages) == 2
    assert [each[TIME] for each in received(messages, 3)] == list(range(3, 400, CHANNELS))
    assert sum(told(messages)[3]) == 400
