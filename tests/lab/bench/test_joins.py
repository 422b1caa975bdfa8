import duckdb
import pytest

from penstock_lab.bench.join_engines import PENSTOCK, SPARK, JoinJob
from penstock_lab.bench.joins import JoinSize
from penstock_lab.bench.results import pairs_delivered

SIZE = JoinSize(calls=3_000, seconds=300, calls_per_file=1_000, files_per_epoch=1)
ORACLE = """
    COPY (
        SELECT least(l.time, r.time) AS time, l.caller, l.time AS sent_north, r.time AS sent_south,
               sqrt((l.x - r.x) * (l.x - r.x) + (l.y - r.y) * (l.y - r.y)) AS metres
        FROM read_parquet('{north}/*.parquet') AS l {how} JOIN read_parquet('{south}/*.parquet') AS r
        ON l.caller = r.caller AND abs(epoch_us(l.time) - epoch_us(r.time)) <= 60000000
    ) TO '{output}/oracle.parquet'
"""


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    return SIZE.write(tmp_path_factory.mktemp("networks"), seed=3)


@pytest.mark.parametrize("engine", [PENSTOCK, SPARK], ids=lambda engine: engine.name)
def test_engines_deliver_what_a_batch_join_gives(engine, networks, spark, tmp_path):
    north, south = networks
    oracle = tmp_path / "oracle"
    oracle.mkdir()
    duckdb.execute(ORACLE.format(north=north, south=south, how="left", output=oracle))
    job = JoinJob(north, south, tmp_path / "run", "left", files_per_epoch=1)
    engine.run(spark, job)
    expected = pairs_delivered(oracle, SIZE.settled_us)
    assert expected.rows > 2_000
    assert pairs_delivered(job.output, SIZE.settled_us) == expected
