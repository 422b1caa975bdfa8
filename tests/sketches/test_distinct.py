import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.sketches.distinct import Distinct
from penstock.sketches.splitmix import splitmix64


def sketched(first, last, seed):
    found = Distinct()
    found.update(splitmix64(np.arange(first, last, dtype=np.uint64), seed))
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("number", [0, 1, 70, 3000, 60_000, 700_000])
def test_estimates_are_within_five_percent(number, seed):
    assert sketched(0, number, seed).estimate == pytest.approx(number, rel=0.05)


def test_a_merge_is_the_sketch_of_both_and_survives_its_text():
    left, right = sketched(0, 40_000, 5), sketched(20_000, 60_000, 5)
    left.merge(right)
    assert left.to_text() == sketched(0, 60_000, 5).to_text()
    assert Distinct.from_text(left.to_text()).estimate == left.estimate
    assert len(left.to_text()) < 3000


@pytest.mark.parametrize("text", ["", "!!", "x" * 40])
def test_other_texts_are_refused(text):
    with pytest.raises(BadRouting):
        Distinct.from_text(text)
