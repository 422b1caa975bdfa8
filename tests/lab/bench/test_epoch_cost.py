import pytest

from penstock_lab.bench.cost import Cost
from penstock_lab.bench.epoch_cost import Running, epoch_cost
from penstock_lab.errors import BadBench


class Counting:
    """A run that commits an epoch whenever it is asked, up to a last one."""

    def __init__(self, last):
        self.last = last
        self.done = 0
        self.asked = []
        self.waited = 0

    def committed(self, epochs):
        self.asked.append(epochs)
        self.done = min(self.done + 1, self.last)
        return self.done >= epochs

    def wait(self):
        self.waited += 1

    def running(self):
        return Running(self.committed, lambda: self.done == self.last, self.wait)


def test_warm_epochs_come_first_and_the_run_is_waited_for():
    run = Counting(last=10)
    epoch_cost(run.running(), warm=3, counted=4)
    assert run.asked == [3, 3, 3, 7, 7, 7, 7]
    assert run.waited == 1


def test_the_cost_of_several_epochs_is_that_of_each():
    assert Cost(wall_s=2.0, cpu_s=4.0, peak_mb=100.0).each_of(8) == Cost(0.25, 0.5, 100.0)


def test_a_run_that_ends_early_is_an_error():
    with pytest.raises(BadBench, match="before epoch 5"):
        epoch_cost(Counting(last=4).running(), warm=2, counted=3)
