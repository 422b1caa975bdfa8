import pytest

from penstock_lab.bench.data import DataSet
from penstock_lab.bench.engines import (
    PENSTOCK,
    SPARK_CHAINED,
    SPARK_WINDOW,
    Job,
    WindowSpan,
    measure,
)
from penstock_lab.bench.results import delivered, last_end
from penstock_lab.bench.session import settings


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("engines")
    source = DataSet(rows=4_000, seconds=40, keys=20, seed=5, rows_per_file=1_000).write(place)

    def run_engine(engine):
        job = Job(source, place / engine.name / "out", place / engine.name / "state", WindowSpan(6, 2), 2)
        return job.output, measure(engine, spark, job)

    return run_engine


@pytest.fixture(scope="module")
def native(run):
    return run(SPARK_WINDOW)


@pytest.mark.parametrize("engine", [PENSTOCK, SPARK_CHAINED], ids=lambda engine: engine.name)
def test_engines_agree_on_windows_that_spark_closed(engine, run, native):
    expected, (got, _) = native[0], run(engine)
    until = last_end(expected)
    assert delivered(expected, until).rows > 200
    assert delivered(got, until) == delivered(expected, until)


def test_a_run_says_what_it_took(native):
    cost = native[1]
    assert cost.wall_s > 0
    assert cost.cpu_s > 0
    assert cost.peak_mb > 100


def test_settings_are_put_back(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    with settings(spark, {"spark.sql.shuffle.partitions": "3", "spark.penstock.test": "x"}):
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert spark.conf.get("spark.penstock.test", None) is None
