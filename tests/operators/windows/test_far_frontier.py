"""A frontier may be any time ahead of all rows: a source that ends, or one that promises so."""

import pytest

import penstock as ps
from operators.cases import EVENTS, Total
from operators.contract import KernelRun

FAR = 1 << 60
ROW = {"time": 25, "k": 1, "s": "a", "v": 7, "n": 3}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [{"size": "10 us"}, {"size": "30 us", "slide": "10 us"}])
@pytest.mark.parametrize("own", [ps.array_agg("v"), Total("n"), ps.count()])
def test_windows_close_at_once_however_far_the_frontier_goes(tmp_path, channels, shape, own):
    run = KernelRun(EVENTS.window(**shape).agg(own=own), tmp_path, channels)
    run.step([[ROW]], (20,))
    run.step([[]], (FAR,))
    starts = [20] if "slide" not in shape else [0, 10, 20]
    assert sorted(row[0] for row in run.results) == starts
