import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from penstock_lab.bench.linear_road import LiveFiles, Size, best_expressways
from penstock_lab.linear_road.traffic import Traffic


@pytest.mark.parametrize("most", [0, 1, 2, 3, 5, 8, 13, 21, 34])
def test_the_search_finds_the_most_to_an_eighth(most):
    tried = []

    def held(number):
        tried.append(number)
        return number <= most

    found = best_expressways(held, 20)
    assert found <= most <= max(found + 1, found * 9 / 8)
    assert len(tried) == len(set(tried))


def test_the_search_ends_after_so_many_numbers():
    tried = []
    assert best_expressways(lambda number: tried.append(number) or True, 4) == 8
    assert tried == [1, 2, 4, 8]


def test_the_search_may_begin_anywhere():
    assert best_expressways(lambda number: number <= 5, first=8) == 5
    assert best_expressways(lambda number: number <= 20, first=8) == 20


def test_what_is_measured_is_the_end_of_the_run():
    traffic = Size(seconds=60, settling=15, before=120).traffic(2, seed=1)
    assert traffic.begin + traffic.seconds <= 10_800 < traffic.begin + traffic.seconds + 60


def test_a_second_of_traffic_is_a_file_at_its_moment(tmp_path):
    traffic = Traffic(seconds=4, begin=600)
    began = time.time()
    with LiveFiles(traffic.reports, 600, tmp_path, began, 50.0) as files:
        while len(list(tmp_path.glob("[0-9]*"))) < 4:
            time.sleep(0.01)
    assert time.time() >= began + 3 / 50
    assert files.seconds == 4 / 50
    names = sorted(tmp_path.glob("[0-9]*"))
    assert [each.name for each in names] == [f"{number:06}.parquet" for number in range(600, 604)]
    rows = [pq.read_table(each) for each in names]
    assert sum(each.num_rows for each in rows) == traffic.reports.num_rows
    assert all(len(np.unique(each["time"].to_numpy())) == 1 for each in rows)
