"""When channels take samples of what rows cost."""

import numpy as np

from penstock.distribution.learnt_costs import LearntCosts
from penstock.runtime.layout_files import LayoutFiles
from penstock.sketches import ValueCosts
from penstock.state.storage import Location


def measured(seconds):
    costs = ValueCosts()
    costs.update(np.array([7], np.uint64), np.ones(1), np.array([seconds]), np.array([seconds]))
    return costs


def test_samples_are_seldom_once_costs_are_known_and_frequent_when_they_change(tmp_path):
    # epochs  0 1 2 3 4 5 6 7 8 ... : costs change in epoch 16
    learnt, files, sampled = LearntCosts(), LayoutFiles(Location(str(tmp_path))), []
    for epoch in range(24):
        learnt.stored(files)
        if learnt.sampled(epoch):
            sampled.append(epoch)
            learnt.update([measured(1.0 if epoch < 16 else 9.0)])
    assert sampled == [0, 1, 2, 3, 4, 8, *range(16, 24)]
