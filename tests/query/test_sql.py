import pytest

import penstock.query as ps
from penstock.errors import BadAggregate, BadExpression, BadName, BadWindow, UnknownColumn, WrongType

REPORTS = ps.stream(
    "reports",
    "time timestamp, vehicle string, lon double, lat double, speed double, kind string, "
    "place struct<city:string>",
    time="time",
)
TOLLS = ps.stream("tolls", "time timestamp, paid decimal(10,2)", time="time")
SPREAD = ps.sql_aggregate(
    partial={"lo": "min(x)", "hi": "max(x)"}, merge={"lo": "min", "hi": "max"}, finish="hi - lo"
)


class QueueEnd(ps.ArrowAggregate):
    state = {"place": "double"}  # noqa: RUF012
    result = "double"

    def accumulate(self, groups, n, *columns): ...

    def merge(self, left, right): ...

    def finish(self, state): ...


def sql(text):
    return ps.sql(text, TOLLS, REPORTS, queue_end=QueueEnd, spread=SPREAD)


def test_the_traffic_query():
    text = """
        SELECT grid(lon, lat, 100) AS area, count(*) AS reports, avg(speed) AS mean, max(speed) AS top,
               queue_end(speed) AS jam, spread(speed) AS spread
        FROM reports [RANGE 60 MINUTES SLIDE 1 MINUTE] WHERE kind = 'traffic' GROUP BY area
    """
    assert sql(text) == (
        REPORTS.where("kind = 'traffic'")
        .group_by(area="grid(lon, lat, 100)")
        .window("60 minutes", slide="1 minute")
        .agg(
            reports=ps.count(),
            mean=ps.avg("speed"),
            top=ps.max("speed"),
            jam=QueueEnd("speed"),
            spread=SPREAD("speed"),
        )
    )


WINDOW = REPORTS.window("5 minutes")
BY_VEHICLE = REPORTS.group_by("vehicle").window("5 minutes")


@pytest.mark.parametrize(
    ("call", "aggregate"),
    [
        ("count(*)", ps.count()),
        ("count(speed)", ps.count("speed")),
        ("count(DISTINCT vehicle)", ps.count_distinct("vehicle")),
        ("count(DISTINCT vehicle, kind)", ps.count_distinct("vehicle", "kind")),
        ("count_distinct(vehicle)", ps.count_distinct("vehicle")),
        ("approx_count_distinct(vehicle)", ps.approx_count_distinct("vehicle")),
        ("approx_count_distinct(vehicle, 0.1)", ps.approx_count_distinct("vehicle", rsd=0.1)),
        ("sum(speed * 2)", ps.sum("speed * 2")),
        ("mean(speed)", ps.avg("speed")),
        ("variance(speed)", ps.var("speed")),
        ("var_samp(speed)", ps.var("speed")),
        ("STDDEV(speed)", ps.stddev("speed")),
        ("first(kind)", ps.first("kind")),
        ("last(kind)", ps.last("kind")),
        ("quantile(speed, 0.95)", ps.quantile("speed", 0.95)),
        ("quantile(speed, 1, 400)", ps.quantile("speed", 1, k=400)),
        ("top_k(vehicle, 5)", ps.top_k("vehicle", 5)),
        ("max_by(vehicle, speed)", ps.max_by("vehicle", "speed")),
        ("min_by(vehicle, speed)", ps.min_by("vehicle", "speed")),
        ("every(speed > 3)", ps.bool_and("speed > 3")),
        ("any(speed > 3)", ps.bool_or("speed > 3")),
        ("some(speed > 3)", ps.bool_or("speed > 3")),
        ("var_pop(speed)", ps.var_pop("speed")),
        ("stddev_pop(speed)", ps.stddev_pop("speed")),
        ("corr(speed, speed * 2)", ps.corr("speed", "speed * 2")),
        ("array_agg(kind)", ps.array_agg("kind")),
        ("array_agg(kind, 7)", ps.array_agg("kind", limit=7)),
        ("collect_list(kind)", ps.collect_list("kind")),
        ("median(speed)", ps.median("speed")),
        ("percentile(speed, 0.95)", ps.percentile("speed", 0.95)),
        ("mode(kind)", ps.mode("kind")),
        ("covar_pop(speed, lon)", ps.covar_pop("speed", "lon")),
        ("covar_samp(speed, lon)", ps.covar_samp("speed", "lon")),
        ("mode() WITHIN GROUP (ORDER BY kind)", ps.mode("kind")),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY speed)", ps.percentile("speed", 0.5)),
        ("sum(DISTINCT speed)", ps.sum("speed", distinct=True)),
        ("max(DISTINCT speed)", ps.max("speed")),
        ("count(*) FILTER (WHERE speed > 3)", ps.count(where="speed > 3")),
        ("avg(DISTINCT speed) FILTER (WHERE lon > 3)", ps.avg("speed", where="lon > 3", distinct=True)),
        ("count(DISTINCT kind) FILTER (WHERE lon > 3)", ps.count("kind", where="lon > 3", distinct=True)),
        ("spread(speed) FILTER (WHERE lon > 3)", SPREAD("speed", where="lon > 3")),
        ("queue_end(speed) FILTER (WHERE lon > 3)", QueueEnd("speed", where="lon > 3")),
        ("min(CASE WHEN kind = 'a' THEN speed END)", ps.min("CASE WHEN kind = 'a' THEN speed END")),
    ],
)
def test_aggregates(call, aggregate):
    assert sql(f"SELECT {call} AS a FROM reports [RANGE 5 MINUTES]") == WINDOW.agg(a=aggregate)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT vehicle, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY vehicle",
        "select vehicle, count(*) c from reports [range 300 seconds] group by 1",
        "SELECT window_end, vehicle, count(*) AS c FROM reports[RANGE 5 MINUTES]GROUP BY VEHICLE",
        "SELECT r.vehicle, count(*) AS c FROM Reports [RANGE 5 MINUTES] AS r GROUP BY r.vehicle",
        "SELECT reports.vehicle, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY vehicle",
    ],
)
def test_ways_to_name_a_key(text):
    assert sql(text) == BY_VEHICLE.agg(c=ps.count())


def test_a_key_takes_its_alias():
    text = "SELECT upper(vehicle) AS v, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY UPPER(vehicle)"
    assert sql(text) == REPORTS.group_by(v="upper(vehicle)").window("5 minutes").agg(c=ps.count())


def test_the_window_clause_in_full():
    text = "SELECT count(*) AS c FROM reports [RANGE 5 MINUTES SLIDE 1 MINUTE OFFSET 10 SECONDS]"
    assert sql(text) == REPORTS.window("5 minutes", slide="1 minute", offset="10 seconds").agg(c=ps.count())


@pytest.mark.parametrize("having", ["c > 3", "count(*) > 3", "C > 3"])
def test_having(having):
    text = f"SELECT vehicle, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY vehicle HAVING {having}"
    assert sql(text) == BY_VEHICLE.agg(c=ps.count()).where("c > 3")


def test_having_over_an_aggregate_that_is_not_selected():
    text = (
        "SELECT vehicle, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY vehicle HAVING avg(speed) > 3"
    )
    expected = (
        BY_VEHICLE.agg(c=ps.count(), avg_speed=ps.avg("speed")).where("avg_speed > 3").select("vehicle", "c")
    )
    assert sql(text) == expected


def test_expressions_over_aggregates_and_keys():
    text = """
        SELECT vehicle || '!' AS v, sum(speed) / count(*) AS mean, count(*) AS c
        FROM reports [RANGE 5 MINUTES] GROUP BY vehicle HAVING mean > 1
    """
    expected = (
        BY_VEHICLE.agg(c=ps.count(), sum_speed=ps.sum("speed"))
        .where("(sum_speed / c) > 1")
        .select(v="vehicle || '!'", mean="sum_speed / c", c="c")
    )
    assert sql(text) == expected


def test_the_order_of_the_select_list_is_kept():
    text = "SELECT count(*) AS c, vehicle FROM reports [RANGE 5 MINUTES] GROUP BY vehicle"
    assert sql(text).schema.names == ("window_start", "window_end", "c", "vehicle")


def test_a_key_that_is_not_selected_is_dropped():
    found = sql("SELECT count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY lower(vehicle)")
    assert found.schema.names == ("window_start", "window_end", "c")
    assert found.inputs[0].operator.keys[0][1].sql == "LOWER(`vehicle`)"


def test_names_of_items_without_alias():
    found = sql("SELECT count(*), avg(speed) FROM reports [RANGE 5 MINUTES]")
    assert found.schema.names[2:] == ("count", "avg_speed")


def test_a_column_goes_before_an_alias():
    text = "SELECT upper(kind) AS kind, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY kind"
    found = sql(text)
    assert found.inputs[0].operator.keys[0][1].sql == "`kind`"
    assert str(found.operator.columns[2][1]) == "UPPER(`kind`)"


def test_a_field_of_a_struct_as_key():
    text = "SELECT place.city, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY place.city"
    assert sql(text) == REPORTS.group_by(city="place.city").window("5 minutes").agg(c=ps.count())


REST = "FROM reports [RANGE 5 MINUTES]"


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("SELECT DISTINCT speed FROM reports", BadWindow, "no window"),
        ("SELECT count(*) FROM reports [RANGE 5 MINUTES", BadWindow, "not closed"),
        ("SELECT count(*) FROM reports [RANGE]", BadWindow, "cannot read the window"),
        (f"SELECT count(*) {REST}, tolls [RANGE 1 HOUR]", BadWindow, "second window"),
        ("SELECT count(*) FROM cars [RANGE 1 HOUR]", BadName, "the streams are tolls, reports"),
        ("SELECT FROM reports GROUP BY kind", BadExpression, "something is missing before this"),
        (f"SELECT count(*) AS c {REST} ORDER BY c", BadExpression, "ORDER BY is not supported; supported is"),
        (f"SELECT count(*) AS c {REST} LIMIT 3", BadExpression, "LIMIT"),
        (f"SELECT count(*) AS c {REST} JOIN tolls", BadExpression, "JOIN"),
        (f"SELECT count(*) AS c {REST}, tolls", BadExpression, "JOIN"),
        (f"SELECT DISTINCT count(*) AS c {REST}", BadExpression, "DISTINCT"),
        (f"WITH a AS (SELECT 1) SELECT count(*) AS c {REST}", BadExpression, "WITH"),
        (f"SELECT count(*) AS c {REST} UNION SELECT 1", BadExpression, "drops duplicates"),
        (f"SELECT count(*) AS c {REST} TABLESAMPLE (1 PERCENT)", BadExpression, "alias only"),
        ("SELECT count(*) AS c FROM (SELECT 1) [RANGE 1 HOUR]", BadExpression, "one stream"),
        (f"SELECT sum(speed) OVER () AS c {REST}", BadExpression, "OVER"),
        (f"SELECT sum(speed) FILTER (WHERE speed) AS c {REST}", WrongType, "give a condition"),
        (f"SELECT vehicle, count(*) AS c {REST} GROUP BY ALL", BadExpression, "GROUP BY takes keys"),
        (f"SELECT count(*) AS c {REST} GROUP BY 2", BadExpression, "1 items"),
        (f"SELECT count(*) AS c {REST} GROUP BY 1", BadExpression, "cannot be an aggregate"),
        (f"SELECT vehicle, count(*) AS c {REST}", BadExpression, "neither in GROUP BY"),
        (f"SELECT count(*) AS c {REST} HAVING speed > 1", BadExpression, "neither in GROUP BY"),
        (f"SELECT count(*) AS c,, {REST}", BadExpression, "missing"),
        (f"SELECT * {REST}", BadExpression, r"SELECT \*"),
        (f"SELECT kurtosis(speed) AS c {REST}", BadAggregate, "the aggregates are .*queue_end"),
        (f"SELECT top_k(DISTINCT vehicle, 3) AS c {REST}", BadAggregate, "DISTINCT is not supported"),
        (f"SELECT mode() WITHIN GROUP (ORDER BY kind DESC) AS c {REST}", BadExpression, "written this way"),
        (f"SELECT quantile(speed) AS c {REST}", BadExpression, "2 to 3"),
        (f"SELECT quantile(speed, lon) AS c {REST}", BadExpression, "write a number"),
        (f"SELECT count(*) + 1 {REST}", BadName, "AS name"),
        (f"SELECT count(*) AS a, sum(speed) AS A {REST}", BadName, "AS"),
        (f"SELECT count(*) AS window_end {REST}", BadName, "window_end"),
        (f"SELECT count(*) AS c {REST} WHERE sped > 1", UnknownColumn, "speed"),
        (f"SELECT count(*) AS c {REST} WHERE rand() > 0.5", BadExpression, "replayed"),
        (f"SELECT rank() AS r, count(*) AS c {REST}", BadExpression, "RANK"),
    ],
)
def test_refuses(text, error, reason):
    with pytest.raises(error, match=reason):
        sql(text)


def test_a_syntax_error_shows_the_place_in_the_text_as_written():
    with pytest.raises(BadExpression) as caught:
        sql("SELECT count(*) AS c FROM reports [RANGE 5 MINUTES] WHERE speed > )")
    line, caret = str(caught.value).splitlines()[1:]
    assert line == "  SELECT count(*) AS c FROM reports [RANGE 5 MINUTES] WHERE speed > )"
    assert line[caret.index("^")] == ")"


@pytest.mark.parametrize(
    ("definitions", "error"), [({"avg": QueueEnd}, BadName), ({"mine": QueueEnd("speed")}, BadAggregate)]
)
def test_definitions_are_checked(definitions, error):
    with pytest.raises(error):
        ps.sql(f"SELECT count(*) AS c {REST}", REPORTS, **definitions)
