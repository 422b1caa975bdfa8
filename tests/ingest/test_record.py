import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingest.log.record import RecordHeader, checksum, padded, parse_header, write_header

WHOLE = st.integers(0, 2**62)


@given(
    st.text(min_size=1, max_size=60),
    WHOLE,
    WHOLE,
    st.none() | st.integers(-(2**62), 2**62),
    st.binary(max_size=200),
)
def test_a_header_says_what_was_written(stream, sequence, rows, frontier, payload):
    name = stream.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    fields = {"sequence": sequence, "rows": rows, "frontier": frontier, "arrived": 7, "synced": 64}
    fields["length"] = len(payload)
    written = write_header(stream=name.encode(), total=checksum(payload), **fields)
    header = parse_header(memoryview(written), 0)
    assert header == RecordHeader(stream=name, total=checksum(payload), size=len(written), **fields)
    assert header.stride == len(written) + padded(len(payload))


NAME_END = 76 + len(b"reports")


@pytest.mark.parametrize("at", range(0, NAME_END, 3))
def test_a_changed_byte_makes_no_header(at):
    written = bytearray(
        write_header(
            stream=b"reports", sequence=1, rows=2, frontier=None, arrived=3, length=4, total=5, synced=6
        )
    )
    written[at] ^= 1
    assert parse_header(memoryview(written), 0) is None


def test_a_header_that_is_cut_short_is_none():
    written = write_header(
        stream=b"reports", sequence=1, rows=2, frontier=None, arrived=3, length=4, total=5, synced=6
    )
    assert all(parse_header(memoryview(written[:end]), 0) is None for end in range(NAME_END))
