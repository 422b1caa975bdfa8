from itertools import chain

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.client.outbox import UnsentRows
from penstock.ingest.client.rows import pieces

TEXTS = st.lists(st.text("ab", max_size=30), min_size=1, max_size=12)


@given(st.lists(TEXTS, max_size=10), st.integers(1, 7), st.integers(1, 200))
def test_batches_have_all_rows_in_order_and_keep_to_their_bounds(given_pieces, rows, size):
    unsent = UnsentRows()
    for texts in given_pieces:
        unsent.add(pa.record_batch({"t": texts}))
    batches = []
    while unsent.rows:
        batches.append(unsent.cut(rows, size))
    assert [text for batch in batches for text in batch["t"].to_pylist()] == list(
        chain.from_iterable(given_pieces)
    )
    assert all(batch.num_rows <= rows for batch in batches)
    assert all(batch.nbytes <= size or batch.num_rows == 1 for batch in batches)
    assert unsent.bytes == 0


@given(st.lists(TEXTS, max_size=5), st.integers(1, 7), st.integers(1, 200))
def test_pieces_have_all_rows_in_order_and_keep_to_their_bounds(given_pieces, rows, size):
    cut = list(pieces([pa.record_batch({"t": texts}) for texts in given_pieces], rows, size))
    assert [text for piece in cut for text in piece["t"].to_pylist()] == list(
        chain.from_iterable(given_pieces)
    )
    assert all(piece.num_rows <= rows and (piece.nbytes <= size or piece.num_rows == 1) for piece in cut)
