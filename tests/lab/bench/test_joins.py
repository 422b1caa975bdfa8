import pytest

from penstock_lab.bench.batch_engines import duckdb_join
from penstock_lab.bench.join_engines import METRES_APART, PENSTOCK, SPARK, WITHIN_S, JoinJob
from penstock_lab.bench.joins import JoinSize
from penstock_lab.bench.results import pairs_delivered

SIZE = JoinSize(calls=3_000, seconds=300, calls_per_file=1_000, files_per_epoch=1)


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    return SIZE.write(tmp_path_factory.mktemp("networks"), seed=3)


@pytest.mark.parametrize("engine", [PENSTOCK, SPARK], ids=lambda engine: engine.name)
def test_engines_deliver_what_a_batch_join_gives(engine, networks, spark, tmp_path):
    north, south = networks
    oracle = tmp_path / "oracle"
    duckdb_join(north, south, oracle, "left", WITHIN_S, METRES_APART)()
    job = JoinJob(north, south, tmp_path / "run", "left", files_per_epoch=1)
    engine.run(spark, job)
    expected = pairs_delivered(oracle, SIZE.settled_us)
    assert expected.rows > 2_000
    assert pairs_delivered(job.output, SIZE.settled_us) == expected
