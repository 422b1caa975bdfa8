"""Runs of partials: a merge for which order matters, against the runs themselves."""

import random

import numpy as np
import pytest

from penstock.operators.counts.sliding import Runs, merged_runs


class Texts:
    """Joins texts, so that the order of every merge shows; it counts them."""

    merges = 0

    def combine(self, left, right, out):
        self.merges += len(left[0])
        out[0][:] = left[0] + right[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_run_is_the_merge_of_its_partials_in_their_order(seed):
    chance = random.Random(seed)
    span, lengths = chance.randrange(1, 9), [chance.randrange(1, 40) for _ in range(4)]
    places = np.concatenate([np.arange(length) for length in lengths])
    texts = np.array([f"{key}.{place} " for key, n in enumerate(lengths) for place in range(n)], object)
    ends = np.flatnonzero(np.array([chance.random() < 0.5 for _ in places]))
    first = np.maximum(ends - span + 1, ends - places[ends])
    merge = Texts()
    (found,) = merged_runs(merge, (texts,), Runs(ends, first, ends, places, span))
    expected = ["".join(texts[start : end + 1]) for start, end in zip(first, ends, strict=True)]
    assert found.tolist() == expected, f"seed {seed}"
    assert merge.merges <= 2 * len(texts) + len(ends)


def test_no_partial_makes_no_run():
    nothing = np.zeros(0, np.int64)
    assert merged_runs(Texts(), (nothing,), Runs(nothing, nothing, nothing, nothing, 3))[0].tolist() == []
