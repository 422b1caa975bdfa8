import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DamagedCheckpoint
from penstock.ingest.reader.offsets import Offsets

NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
FOLLOWING = st.dictionaries(NAME, st.integers(0, 2**62), max_size=6)


@given(FOLLOWING)
def test_offsets_survive_their_text(following):
    text = json.dumps(Offsets.of(following).packed())
    assert Offsets.unpacked(json.loads(text)).asdict() == following


@given(FOLLOWING, st.lists(NAME, max_size=5))
def test_new_streams_begin_at_zero(following, names):
    streams = pa.array(names, pa.string())
    joined = Offsets.of(following).joined(streams)
    assert joined.asdict() == dict.fromkeys(names, 0) | following


@given(FOLLOWING, FOLLOWING)
def test_streams_without_their_first_rows_begin_where_it_is_said(following, began):
    joined = Offsets.of(following).joined(pa.array(list(began), pa.string()), began)
    assert joined.asdict() == dict(began) | following
    assert joined.began == {name: each for name, each in began.items() if name not in following}
    assert Offsets.unpacked(json.loads(json.dumps(joined.packed()))).began == joined.began


def test_ten_thousand_streams_are_small():
    sequences = np.random.default_rng(1).integers(10**5, 10**7, 10_000).tolist()
    offsets = Offsets.of({f"reports/vehicle-{n}": each for n, each in enumerate(sequences)})
    assert len(json.dumps(offsets.packed())) < 90_000


def test_a_damaged_text_is_named():
    with pytest.raises(DamagedCheckpoint, match="offset"):
        Offsets.unpacked({"names": "x", "following": "y"})
