"""A worker that is used again leaves what is loaded out of its collections of garbage."""

import gc

import pyarrow as pa

from penstock.runtime.spark.worker_heap import freeze_worker


def frozen(batches):
    freeze_worker()
    yield from (pa.record_batch({"n": [gc.get_freeze_count()]}) for _ in batches)


def test_a_worker_that_is_used_again_freezes_what_is_loaded(spark):
    job = spark.range(0, 1, 1, 1).mapInArrow(frozen, "n bigint")
    # Workers take turns, and each begins with a task that freezes nothing.
    assert max(job.collect()[0]["n"] for _ in range(10)) > 10_000


def test_the_driver_freezes_nothing():
    before = gc.get_freeze_count()
    freeze_worker()
    assert gc.get_freeze_count() == before
