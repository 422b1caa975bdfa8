import pytest

from penstock.routing import Growth
from penstock_lab.reproduce.partitioning_toy import TOYS

NETWORK, PROCESSING, BOTH = TOYS


@pytest.mark.parametrize(
    ("toy", "network", "processing", "moved"),
    [
        (NETWORK, (11 / 11, 8 / 7), (39 / 35, 34 / 15), 7),
        (PROCESSING, (12 / 10, 10 / 5), (38 / 36, 25 / 24), 10),
        (BOTH, (12 / 10, 8 / 7), (38 / 36, 27 / 22), 10),
    ],
)
def test_figure_1(toy, network, processing, moved):
    assert toy.ratios(Growth.LINEAR) == pytest.approx(network)
    assert toy.ratios(Growth.QUADRATIC) == pytest.approx(processing)
    assert toy.moved() == pytest.approx(moved)
