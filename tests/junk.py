"""Values of every kind, of which most are wrong for any option."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import penstock.query as ps

WORDS = ["subquery", "query", "best effort", "balanced", "scan", "LLL", "LCQ", "CCC", "", "a\nb"]

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(min_value=10_000),
    st.floats(),
    st.text(),
    st.binary(),
    st.sampled_from([*WORDS, np.int64(3), np.float64(2.0), ps.memory(), print, Path("state"), object()]),
    st.lists(st.integers()),
    st.dictionaries(
        st.one_of(st.integers(-1, 3), st.text(), st.floats()),
        st.one_of(st.floats(), st.sampled_from(WORDS), st.none()),
    ),
)
