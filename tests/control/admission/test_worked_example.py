"""The worked example in place of Fig. 5 of [000], whose table is lost; capacity 10, k periods ahead.

stream  gate  rate  forecast  metadata          N1 = 5 + 4 + 3 = 12 > 10
s1      N1    5     4         4
s2      N1    4     6         4                 N2 = 4 + 3 = 7
s3      N1    3     3         4
s4, s5  N2    4, 3  the same  none              N3 = 7
s6      N3    7     the same  none
s7..s9  new   -     4         6, 3, 2
"""

import numpy as np
import pytest

from penstock.control.admission import ARD, ARI, DRF, DRF_M, Cluster, Outlook, Rules, assign

NONE = np.nan
RATE = np.array([5.0, 4, 3, 4, 3, 7, 4, 4, 4])
LATER = np.array([4.0, 6, 3, 4, 3, 7, 4, 4, 4])
DECLARED = np.array([4.0, 4, 4, NONE, NONE, NONE, 6, 3, 2])
HOME = np.array([0, 0, 0, 1, 1, 2, -1, -1, -1])


def placed(strategy):
    outlook = Outlook(RATE, RATE, LATER, DECLARED, np.array([1]), RATE[:, None], np.zeros(9))
    cluster = Cluster.of(HOME, np.full(3, 10.0), 10.0)
    found = assign(strategy, cluster, outlook, Rules(accept=1.0))
    return {f"s{number + 1}": f"N{gate + 1}" for number, gate in enumerate(found.home)}, found


def test_drf_m_moves_s3_and_places_the_new_streams():
    gates, found = placed(DRF_M)
    assert gates == {
        "s1": "N1",
        "s2": "N1",
        "s3": "N4",
        "s4": "N2",
        "s5": "N2",
        "s6": "N3",
        "s7": "N4",
        "s8": "N2",
        "s9": "N3",
    }
    assert found.gates == 4


@pytest.mark.parametrize(
    ("strategy", "leaves"),
    [(DRF_M, "s3"), (DRF, "s2"), (ARD, "s1"), (ARI, "s3")],
    ids=lambda each: str(each)[:24],
)
def test_each_strategy_picks_its_own_stream(strategy, leaves):
    gates, _ = placed(strategy)
    left = [f"s{number}" for number in (1, 2, 3) if gates[f"s{number}"] != "N1"]
    assert left == [leaves]
