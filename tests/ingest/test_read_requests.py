import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.gate.read_requests import joined, separate

ROWS = pa.schema([("n", pa.int64())])
NAMED = ROWS.append(pa.field("stream", pa.string(), nullable=False))
PIECES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(1, 9)), max_size=12)


def numbered(pieces):
    for stream, first, rows in pieces:
        yield f"i/{stream}", first, pa.record_batch({"n": range(first, first + rows)}, schema=ROWS)


@given(PIECES, st.integers(1, 30))
def test_joined_batches_hold_the_same_rows_in_the_same_order_and_say_what_they_are(pieces, most):
    expected = [(stream, n) for stream, _, batch in numbered(pieces) for n in batch["n"].to_pylist()]
    found, told = [], []
    for batch, said in joined(numbered(pieces), NAMED, most):
        found += zip(batch["stream"].to_pylist(), batch["n"].to_pylist(), strict=True)
        runs = json.loads(said)["runs"]
        told += [(stream, n) for stream, first, rows in runs for n in range(first, first + rows)]
        assert batch.num_rows <= most or batch.num_rows in {rows for *_, rows in pieces}
        assert sum(run[2] for run in runs) == batch.num_rows
    assert found == told == expected


def test_single_batches_have_their_stream_and_sequence():
    (batch, said), (other, _) = separate(numbered([("a", 3, 2), ("b", 0, 1)]), NAMED)
    assert json.loads(said) == {"runs": [["i/a", 3, 2]]}
    assert batch.to_pylist() == [{"n": 3, "stream": "i/a"}, {"n": 4, "stream": "i/a"}]
    assert other["stream"].to_pylist() == ["i/b"]


def test_rows_stay_without_a_column_where_none_is_asked_for():
    ((batch, _),) = joined(numbered([("a", 0, 2), ("b", 0, 1)]), ROWS, 100)
    assert batch.schema == ROWS
