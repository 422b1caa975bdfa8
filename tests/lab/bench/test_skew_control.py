from dataclasses import replace

import numpy as np
import pytest

from penstock_lab.bench.hot_sets import HotSets
from penstock_lab.bench.on_and_off import Pair, Ran
from penstock_lab.bench.results import Delivered
from penstock_lab.bench.skew_cases import (
    REAL,
    Case,
    cases,
    no_gain,
    real_keys,
    saved_of_ideal,
    saving,
    settled,
)
from penstock_lab.bench.skew_control import skew
from penstock_lab.bench.skew_queries import Sums, Waits
from penstock_lab.bench.turns import Spent
from penstock_lab.errors import BadBench

KEYS = HotSets(rows=200, epochs=2, sets=1, zipf=1.0, keys=20)
TINY = Case("tiny", Sums(), KEYS, no_gain, pairs=2, channels=2, unjudged="far too small")
WAITING = Case("waits", Waits(row_s=0.01), replace(KEYS, epochs=11), saving)


def ran(mode, wall, cpu=1.0, rows=((30, 10),), checksum=7):
    costs = tuple(tuple(map(float, each)) for each in rows)
    taken = sum(map(sum, rows))
    return Ran(mode, Spent(wall, cpu), Delivered(1, checksum), rows, costs, costs, taken, 0, 0, 0.0, ())


def pair(on, off, hottest=(5,)):
    return Pair(7, "on", on, off, hottest)


def test_the_checks_of_a_case_without_gain_bound_mean_and_interval():
    pairs = [pair(ran("on", 1.01), ran("off", 1.0)), pair(ran("on", 1.03), ran("off", 1.0))]
    found = {each.name: each for each in replace(TINY, unjudged="").checks(pairs)}
    assert found["tiny: wall time on over off"].value == pytest.approx(1.02, abs=1e-3)
    assert found["tiny: CPU time on over off"].ok
    # Two pairs that differ by 2 % say next to nothing.
    assert found["tiny: wall time on over off, upper end of the 95 % interval"].ok is False


def test_other_results_with_control_are_a_failure():
    pairs = [pair(ran("on", 1.0), ran("off", 1.0)), pair(ran("on", 1.0, checksum=8), ran("off", 1.0))]
    assert TINY.checks(pairs)[-1].value == 0.5
    assert TINY.checks(pairs)[-1].ok is False


def test_a_saving_is_told_as_a_part_of_what_even_channels_would_save():
    # 30 and 10 rows of 10 ms: even channels would take 0.1 s less; 0.06 and 0.08 s are saved.
    pairs = [pair(ran("on", 0.94), ran("off", 1.0)), pair(ran("on", 0.92), ran("off", 1.0))]
    assert saved_of_ideal(WAITING, pairs).mean == pytest.approx(0.7)
    assert saved_of_ideal(TINY, pairs) is None


def test_channels_have_ten_epochs_to_become_even():
    rows = (((40, 0),) * 10) + ((20, 20),)
    assert settled(WAITING, ran("on", 1.0, rows=rows)) == [1.0]
    assert settled(TINY, ran("on", 1.0, rows=rows)) == []


def test_copies_count_in_rows_that_were_sent():
    assert replace(ran("on", 1.0), taken=20).copies == 2


def test_a_run_is_told_for_each_side_of_each_pair(spark):
    report = skew(given=[TINY], quick=True)
    runs = [row for row in report.rows if row["section"] == "runs"]
    assert [(row["pair"], row["control"]) for row in runs] == [(1, "on"), (1, "off"), (2, "off"), (2, "on")]
    assert all(row["epochs"] == 2 and row["wall_s"] > 0 and row["cpu_s"] > 0 for row in runs)
    assert [each.verdict for each in report.checks] == ["not judged"] * 4 + ["ok"]


def test_every_case_has_a_quick_form():
    assert [each.name for each in cases()] == [each.name for each in cases(quick=True)]
    assert all(each.unjudged for each in cases(quick=True))


@pytest.mark.parametrize("only", ["real-keys", "no such case"])
def test_a_case_that_cannot_run_is_refused(only):
    with pytest.raises(BadBench, match=only):
        skew(only=[only])


def test_real_keys_come_in_the_order_of_their_arrival(tmp_path):
    np.savetxt(tmp_path / "keys.txt", np.arange(2000), fmt="%d")
    epochs = list(real_keys(tmp_path / "keys.txt", quick=True))
    assert [len(each) for each in epochs] == [1500, 500]
    assert np.concatenate(epochs).tolist() == list(range(2000))
    (case,) = (each for each in cases(quick=True) if each.name == REAL)
    assert case.write(tmp_path / "data", 7, iter(epochs)) == (1, 1)
    assert len(list((tmp_path / "data" / "rows").iterdir())) == 2
