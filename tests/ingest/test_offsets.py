import json
from dataclasses import replace

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


@given(FOLLOWING, FOLLOWING, st.lists(NAME, max_size=3))
def test_promises_survive_their_text_and_new_streams(following, promised, new):
    names = list(promised)
    heard = Offsets.of(following).hearing(
        pa.array(names, pa.string()),
        np.array(list(promised.values()), np.int64),
        np.zeros(len(names), np.int64),
    )
    known = {name: each for name, each in promised.items() if name in following}
    assert heard.promises() == known
    joined = heard.joined(pa.array(new, pa.string()))
    assert Offsets.unpacked(json.loads(json.dumps(joined.packed()))).promises() == known


def test_a_promise_holds_once_all_rows_before_it_were_taken():
    a = pa.array(["a"])
    offsets = Offsets.of({"a": 9})
    early = offsets.hearing(a, np.array([70]), np.array([10]))
    assert (early is offsets, early.promises()) == (True, {})
    later = replace(offsets, following=np.array([10])).hearing(a, np.array([70]), np.array([10]))
    assert later.promises() == {"a": 70}
    assert later.hearing(a, np.array([60]), np.array([10])) is later, "a promise never goes back"


def test_promises_of_ten_thousand_streams_are_small():
    chance = np.random.default_rng(1)
    names = [f"reports/vehicle-{n}" for n in range(10_000)]
    offsets = Offsets.of(dict(zip(names, chance.integers(10**5, 10**7, 10_000).tolist(), strict=True)))
    promised = 1_700_000_000_000_000 + chance.integers(0, 10**7, 10_000)
    heard = offsets.hearing(pa.array(names), promised, np.zeros(10_000, np.int64))
    assert len(json.dumps(heard.packed())) < 140_000
