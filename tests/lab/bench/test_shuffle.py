import pyarrow as pa

from penstock_lab.bench.shuffle import APART, PLACED, STAYS, ShuffleSize, digested, shuffle

SMALL = ShuffleSize(rows=80, epochs=3, cases=(APART,), ways=(STAYS, PLACED), unjudged="far too small")


def test_every_way_gives_the_same_rows_and_a_makespan(spark):
    report = shuffle(channels=2, size=SMALL)
    assert [(row["way"], row["grouping"]) for row in report.rows] == [
        (STAYS, "in place"),
        (PLACED, "by cost"),
    ]
    assert all(row["makespan_s"] > 0 and row["over_best"] >= 1 for row in report.rows)
    assert report.checks[0].verdict == "ok"


def test_work_follows_the_cost():
    batch = pa.record_batch({"value": [7, 7, 8], "cost": [1, 1, 100]})
    found = digested(batch).to_pydict()
    assert found["value"] == [7, 7, 8]
    assert found["digest"][0] == found["digest"][1] != found["digest"][2]
