from penstock_lab.bench.hot_sets import OFF, ON, HotSets, skew

SMALL = HotSets(
    rows=400,
    join_rows=10,
    epochs=3,
    settled=2,
    quiet_epochs=0,
    sets=1,
    skews=(1.0,),
    cases=("process",),
    ways=(ON, OFF),
    unjudged="far too small",
)


def test_a_run_that_nobody_touches_is_measured_with_and_without_control(spark):
    report = skew(size=SMALL)
    assert [row["way"] for row in report.rows] == [ON, OFF]
    assert all(float(row["busiest_over_mean"]) >= 1 for row in report.rows)
    assert [check.verdict for check in report.checks] == ["not judged", "ok"]
