import pytest

from penstock_lab.bench.comparisons import ComparisonSize
from penstock_lab.bench.figure_8 import Integers
from penstock_lab.bench.joins import JoinSize
from penstock_lab.bench.operators import Sizes, operators
from penstock_lab.bench.single_operators import OperatorSize
from penstock_lab.bench.timing import Rounds

# All parts together take a minute; `test_joins.py` and `test_comparisons.py` are the slice in `make test`.
pytestmark = pytest.mark.soak

TINY = Sizes(
    JoinSize(calls=1_500, seconds=200, calls_per_file=1_500, files_per_epoch=1),
    ComparisonSize(kernel_calls=2_000, run_calls=2_000, seconds=120, epochs=1),
    OperatorSize(calls=4_000, seconds=100, calls_per_file=4_000, files_per_epoch=1),
    Integers(rows=2_000, seconds=60, files=1, seed=7),
    skewed_tuples=20_000,
    rounds=Rounds(1, warm=False),
)


@pytest.fixture(scope="module")
def report(spark):
    return operators(sizes=TINY)


def test_everything_is_measured(report):
    cases = [row["case"] for row in report.rows]
    assert len(cases) == 2 * 3 + 4 + 3 + 3 + 2
    assert all(row["wall_s"] > 0 and row["rows_out"] > 0 for row in report.rows if "wall_s" in row)
    outs = {row["case"]: row.get("rows_out") for row in report.rows}
    assert outs["map, an expression"] == outs["map, a Python function over Arrow"] == 4_000


def test_results_agree_whatever_the_speed(report):
    speed = ("ratio to Spark", "million comparisons", "strategy subquery to", "busiest")
    agreement = [check for check in report.checks if not check.name.startswith(speed)]
    assert len(agreement) == 2 * 5 + 3
    assert [check.name for check in agreement if not check.ok] == []


def test_every_floor_is_a_check(report):
    floors = [
        check.floor for check in report.checks if check.name.startswith(("ratio", "million", "strategy"))
    ]
    assert floors == [5, 5, 300, 300, 300, 300, 1, 1]
