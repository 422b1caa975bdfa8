import gzip
import itertools

import numpy as np
import pytest

from penstock.errors import RunError
from penstock_lab.bench.migration import STEPS, migration, read_keys


@pytest.mark.soak
def test_every_change_of_channels_is_measured_from_segments(spark):
    report = migration(rows=30_000, partitionings=("consistent",), seed=7)
    assert [row["case"] for row in report.rows] == [
        f"{a} -> {b} channels" for a, b in itertools.pairwise(STEPS)
    ]
    # A consistent hash moves about the ideal share, whatever the keys weigh.
    assert all(0.3 < row["moved_over_ideal"] < 2.5 for row in report.rows)
    assert [check.ceiling for check in report.checks] == [1.35, 1.25, 1.25]


def test_keys_are_whole_numbers_one_a_line(tmp_path):
    (tmp_path / "keys.txt.gz").write_bytes(gzip.compress(b"5\n-7\n5\n"))
    np.testing.assert_array_equal(read_keys(tmp_path / "keys.txt.gz"), [5, -7, 5])
    (tmp_path / "words.txt").write_text("a\nb\n")
    with pytest.raises(RunError, match="whole number a line"):
        read_keys(tmp_path / "words.txt")
