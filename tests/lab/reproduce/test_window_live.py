"""Copies of tuples through the exchange of a run: as many as the technique says, and where it says."""

from functools import partial

import pyarrow as pa
import pytest

from penstock.routing import Batches, WindowChannels, WindowShape
from penstock_lab.exchange import Exchanging
from penstock_lab.reproduce.window_live import _Copies, _Deliveries, _opened, _tables

SHAPE = WindowShape(60, 10)


def in_windows(time, size, slide):
    return range((time - size) // slide + 1, time // slide + 1)


def placed(placer, times):
    rows, channels = placer.place(pa.table({"id": times}))
    return sorted(zip((times[row] for row in rows.tolist()), channels.tolist(), strict=True))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_copy_for_each_batch_of_windows(batch):
    times = list(range(200, 300))
    size, slide = SHAPE.size + (batch - 1) * SHAPE.slide, batch * SHAPE.slide
    expected = [(time, each % 4) for time in times for each in in_windows(time, size, slide)]
    assert placed(_Copies(WindowShape(size, slide)), times) == sorted(expected)


def test_one_copy_for_each_channel():
    times = list(range(200, 300))
    windows = WindowChannels(SHAPE, Batches(1), 4)
    expected = {(time, each % 4) for time in times for each in in_windows(time, SHAPE.size, SHAPE.slide)}
    assert placed(_Deliveries(windows), times) == sorted(expected)


def test_every_copy_comes_to_a_channel(spark):
    taken = Exchanging(spark).take(partial(_tables, 1_000, 10), partial(_opened, _Copies(SHAPE)), 4)
    assert taken.rows == 6_000
    assert taken.cpu_s > 0
