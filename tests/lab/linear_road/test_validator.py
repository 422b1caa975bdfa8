import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock_lab.linear_road.traffic import INPUT_NAMES, START_US, Traffic
from penstock_lab.linear_road.validator import ANSWERS, Truth

TRAFFIC = Traffic(seconds=480, begin=5400, most=800, accidents=120, seed=5)


@pytest.fixture(scope="module")
def truth():
    with Truth(TRAFFIC.reports, TRAFFIC.history) as truth:
        yield truth


def delivered(truth, name):
    table = truth.answer(name)
    time = pc.multiply(table["t"], 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    return table.append_column("time", time)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_truth_is_right_and_not_empty(truth, name):
    verdict = truth.verdict(name, delivered(truth, name))
    assert verdict.ok
    assert verdict.expected > 50


@pytest.mark.parametrize("name", ANSWERS)
def test_a_missing_and_a_doubled_answer_are_found(truth, name):
    table = delivered(truth, name)
    assert truth.verdict(name, table.slice(1)).missing == 1
    assert truth.verdict(name, pa.concat_tables([table, table.slice(0, 1)])).wrong == 1


def test_a_wrong_toll_is_missing_and_wrong(truth):
    table = delivered(truth, "tolls")
    place = table.column_names.index("toll")
    verdict = truth.verdict("tolls", table.set_column(place, "toll", pc.add(table["toll"], 1)))
    assert verdict.missing == verdict.wrong == verdict.expected


def test_there_are_tolls_free_segments_accidents_and_charges_to_compare(truth):
    tolls = truth.answer("tolls")
    assert 50 < pc.sum(pc.greater(tolls["toll"], 0)).as_py() < tolls.num_rows
    assert pc.max(truth.answer("balances")["balance"]).as_py() > 0
    assert pc.max(truth.answer("expenditures")["expenditure"]).as_py() > 0
    assert truth.accidents() > 1


def test_a_car_that_stands_at_its_last_report_stands_on():
    # Two cars stand from second 0 on and one drives past; the first two are not heard of after second 150.
    standing = [(30 * number, vid, 1, 700) for number in range(6) for vid in (1, 2)]
    rows = [*standing, (300, 3, 1, 100)]
    second, vid, lane, pos = (np.array(each, np.int32) for each in zip(*rows, strict=True))
    zero = np.zeros(len(rows), np.int32)
    table = dict.fromkeys(INPUT_NAMES, zero)
    table |= {"vid": vid, "lane": lane, "pos": pos}
    time = pa.array(START_US + second.astype(np.int64) * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    with Truth(pa.table({**table, "time": time}), TRAFFIC.history.slice(0, 0)) as truth:
        warned = truth.answer("warnings").to_pydict()
    assert warned["vid"] == [3]


def test_nothing_delivered_is_all_missing(truth):
    verdict = truth.verdict("warnings", pa.table({}))
    assert (verdict.delivered, verdict.missing) == (0, verdict.expected)
    assert truth.verdict("warnings", delivered(truth, "warnings")).ok
