import json

import numpy as np
import pytest

from penstock.routing import BatchModel
from penstock_lab.reproduce.scale_out import PAPER_COSTS, PAPER_SHAPE, ScaleOut
from penstock_lab.reproduce.window_split import WINDOW_SPLIT


@pytest.mark.parametrize("batch", [1, 2, 10, 50])
def test_the_simulated_split_agrees_with_equations_1_and_2(batch):
    model = BatchModel(PAPER_SHAPE, PAPER_COSTS, rate=1.0, channels=4, headroom=0.0)
    predicted = model.throughput(np.array([batch]))[0]
    assert ScaleOut(4_000).batches(4, batch) == pytest.approx(predicted, rel=0.05)


def test_the_published_shapes_hold():
    outcome = WINDOW_SPLIT.run(quick=True, seed=7)
    timed = "Fig. 6"  # a busy machine may bend a measured curve; the command decides about those
    assert [check for check in outcome.checks if not check.ok and timed not in check.source] == []
    json.dumps([check.as_dict() for check in outcome.checks])
    json.dumps(outcome.rows)
    assert set(outcome.figures) == {"004-fig-6", "004-fig-7"}
