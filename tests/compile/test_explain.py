import penstock as ps


def stream():
    return ps.stream("reports", "time timestamp, area string, speed double", time="time", delay="5 seconds")


def test_it_names_the_pane_and_both_queries():
    text = stream().group_by("area").window("60 minutes", slide="1 minute").agg(n=ps.count()).explain()
    assert "panes: 1 minute = gcd(size 1 hour, slide 1 minute)" in text
    assert "pane-level query" in text
    assert "window-level query" in text
    assert "instead of in 60 overlapping windows" in text


def test_equal_partials_are_kept_once():
    query = stream().window("1 minute").agg(mean=ps.avg("speed"), total=ps.sum("speed"), n=ps.count("speed"))
    assert query.explain().count("count(`speed`)") == 1


def test_it_says_why_rows_are_not_combined_on_the_map_side():
    from penstock.demo.queue_end import QueueEnd

    text = stream().group_by("area").window("1 minute").agg(jam=QueueEnd("speed")).explain()
    assert "user-defined aggregates need the rows themselves" in text
