import duckdb
import pytest

from penstock_lab.bench.call_pairs import CallPairs
from penstock_lab.bench.comparisons import CONDITIONS
from penstock_lab.bench.cross_kernel import kernel

PAIRS = CallPairs(calls=2_000, seconds=300, seed=5)
WITHIN = "abs(epoch_us(l.time) - epoch_us(r.time)) <= 60000000"


def count(condition):
    tables = {"one": PAIRS.left, "other": PAIRS.right}
    with duckdb.connect() as engine:
        for name, table in tables.items():
            engine.register(name, table)
        found = engine.execute(f"SELECT count(*) FROM one AS l, other AS r WHERE {WITHIN} AND {condition}")
        return found.fetchone()[0]


def test_comparisons_are_the_pairs_within_a_minute():
    assert count("true") == PAIRS.comparisons > 1_000_000


@pytest.mark.parametrize("name", CONDITIONS)
def test_the_kernel_in_channels_finds_what_a_batch_engine_finds(name):
    condition = CONDITIONS[name]
    expected = count(condition.sql)
    assert 10 < expected < PAIRS.comparisons / 100
    assert kernel(condition, PAIRS, epochs=3) == expected
