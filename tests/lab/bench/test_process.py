import duckdb
import pytest

from penstock_lab.bench.process import ProcessSize, process
from penstock_lab.bench.process_engines import PENSTOCK_EVENT_ORDER, ProcessJob
from penstock_lab.bench.results import last_statistics
from penstock_lab.bench.timing import Rounds

SIZE = ProcessSize(rows=400, keys=30, epochs=2, rounds=Rounds(1, warm=False))
ORACLE = """
    COPY (
        SELECT key, count(*) AS n, sum(value) AS total, max(value) AS top
        FROM read_parquet('{files}/*.parquet') GROUP BY key
    ) TO '{output}/oracle.parquet'
"""


def test_the_last_statistics_are_those_of_a_batch_engine(spark, tmp_path):
    files, oracle = SIZE.data(seed=3).write(tmp_path), tmp_path / "oracle"
    oracle.mkdir()
    duckdb.execute(ORACLE.format(files=files, output=oracle))
    job = ProcessJob(files, tmp_path / "run", files_per_epoch=2)
    PENSTOCK_EVENT_ORDER.run(spark, job)
    assert last_statistics(oracle).rows == 30
    assert last_statistics(job.output) == last_statistics(oracle)


@pytest.fixture(scope="module")
def report(spark):
    return process(size=SIZE)


@pytest.mark.soak
def test_every_engine_is_measured_and_all_agree(report):
    assert [row["engine"].split()[0] for row in report.rows] == [
        "penstock",
        "penstock,",
        "penstock,",
        "spark",
        "spark",
    ]
    assert all(row["wall_s"] > 0 and row["rows_out"] >= 30 for row in report.rows)
    agreement = [check for check in report.checks if not check.name.startswith("ratio")]
    assert len(agreement) == 6
    assert [check.name for check in agreement if not check.ok] == []


@pytest.mark.soak
def test_both_ratios_have_their_floor(report):
    floors = [check.floor for check in report.checks if check.name.startswith("ratio")]
    assert floors == [5, 5]
