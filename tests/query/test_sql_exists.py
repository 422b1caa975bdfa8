"""EXISTS, IN, semi and anti joins and joins by window in SQL: the same plans as the verbs."""

import pytest

import penstock.query as ps
from penstock import window
from penstock.errors import BadExpression, BadJoin, BadWindow, UnknownColumn

CALLS = ps.stream("calls", "time timestamp, caller string, x double", time="time")
TOWERS = ps.stream("towers", "at timestamp, number string, y double", time="at")
PLAIN = CALLS.join(TOWERS, {"caller": "number"}, within="1 hour", how="semi")


def sql(text):
    return ps.sql(text, CALLS, TOWERS)


def tumbled(table, time):
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR({time}), INTERVAL '5' SECOND))"


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS (SELECT * FROM towers t WHERE t.number = calls.caller)",
        "EXISTS (SELECT 1 FROM towers WHERE number = caller)",
        "caller IN (SELECT number FROM towers)",
    ],
)
def test_rows_for_which_a_sub_query_has_a_row(condition):
    assert sql(f"SELECT * FROM calls WHERE {condition} WITHIN 1 HOUR") == PLAIN


@pytest.mark.parametrize(
    "rest",
    [
        "WHERE EXISTS (SELECT * FROM many WHERE many.k = few.k) WITHIN 1 HOUR",
        "WHERE k IN (SELECT k FROM many) WITHIN 1 HOUR",
        "LEFT SEMI JOIN many ON many.k = few.k WITHIN 1 HOUR",
        "LEFT ANTI JOIN many ON many.k = few.k WITHIN 1 HOUR",
    ],
)
def test_a_star_shows_the_columns_of_its_table_in_their_order_and_types(rest):
    few = ps.stream("few", "t timestamp, v double, k tinyint", time="t")
    many = ps.stream("many", "at timestamp, k bigint", time="at")
    found = ps.sql(f"SELECT * FROM few {rest}", few, many)
    assert [(each.name, each.type) for each in found.schema.columns] == [
        ("t", "timestamp"),
        ("v", "double"),
        ("k", "tinyint"),
    ]


def test_conditions_of_each_side_and_of_both():
    text = """
        SELECT caller FROM calls
        WHERE x > 1 AND NOT EXISTS (SELECT * FROM towers WHERE number = caller AND y > 2 AND y > x) KEEP 1 DAY
    """
    strong = TOWERS.where("y > 2")
    found = CALLS.join(strong, {"caller": "number"}, keep="1 day", how="anti", condition="r.y > l.x")
    assert sql(text) == found.where("x > 1").select("caller")


def test_a_null_is_in_and_not_in_nothing():
    text = "SELECT * FROM calls WHERE caller NOT IN (SELECT number FROM towers) WITHIN 1 HOUR"
    condition = "coalesce(l.caller = r.number, TRUE)"
    assert sql(text) == CALLS.cross(TOWERS, condition, within="1 hour", how="anti")


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_joins_of_one_side(how):
    text = f"SELECT * FROM calls LEFT {how} JOIN towers ON caller = number WITHIN 1 HOUR"
    assert sql(text) == CALLS.join(TOWERS, {"caller": "number"}, within="1 hour", how=how)


def test_a_join_with_a_time_to_live():
    text = "SELECT caller, y FROM calls JOIN towers ON caller = number KEEP 2 HOURS"
    assert sql(text) == CALLS.join(TOWERS, {"caller": "number"}, keep="2 hours").select("caller", "y")
    forever = CALLS.join(TOWERS, {"caller": "number"}, keep="forever").select("caller", "y")
    assert sql(text.replace("2 HOURS", "FOREVER")) == forever


SAME = "c.window_start = t.window_start AND c.window_end = t.window_end"
CALLED, BUILT = tumbled("calls", "time"), tumbled("towers", "at")


def test_a_join_by_window():
    text = f"SELECT c.window_start, time, y FROM {CALLED} c JOIN {BUILT} t ON caller = number AND {SAME}"
    pairs = CALLS.join(TOWERS, {"caller": "number"}, window=window("5 seconds"))
    assert sql(text) == pairs.select("time", "y")


def test_windows_are_the_same_however_their_lengths_are_written():
    built = BUILT.replace("'5' SECOND", "5000 MILLISECONDS")
    text = f"SELECT time, y FROM {CALLED} c JOIN {built} t ON caller = number AND {SAME}"
    found = CALLS.join(TOWERS, {"caller": "number"}, window=window("5 seconds")).select("time", "y")
    assert sql(text).schema == found.schema


def test_another_condition_on_the_bounds_of_windows_is_not_lost():
    text = f"SELECT y FROM {CALLED} c JOIN {BUILT} t ON {SAME} AND t.window_end = c.time"
    with pytest.raises(UnknownColumn, match=r"t\.window_end"):
        sql(text)


def test_a_column_keeps_its_type_where_it_is_compared_with_a_wider_one():
    few, many = (
        ps.stream("few", "t timestamp, k tinyint", time="t"),
        ps.stream("many", "t timestamp, k bigint", time="t"),
    )
    for text in ("EXISTS (SELECT 1 FROM many WHERE many.k = few.k)", "k NOT IN (SELECT k FROM many)"):
        found = ps.sql(f"SELECT k FROM few WHERE {text} WITHIN 1 HOUR", few, many)
        assert found.schema.column("k").type == "tinyint"
    joined = ps.sql(
        "SELECT few.k AS a, many.k AS b FROM few JOIN many ON few.k = many.k WITHIN 1 HOUR", few, many
    )
    assert [joined.schema.column(name).type for name in "ab"] == ["tinyint", "bigint"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM TABLE(HOP(TABLE load, DESCRIPTOR(window_start), '1 hour', '2 hours'))",
        (
            "SELECT sum(n) AS n FROM TABLE(TUMBLE(TABLE load, DESCRIPTOR(window_start), INTERVAL '1' HOUR)) "
            "GROUP BY window_start, window_end"
        ),
        (
            f"SELECT n FROM TABLE(TUMBLE(TABLE load, DESCRIPTOR(window_start), INTERVAL '5' SECOND)) c "
            f"JOIN {BUILT} t ON {SAME}"
        ),
    ],
)
def test_a_table_function_over_rows_that_have_windows_is_refused(text):
    load = ps.sql("SELECT count(*) AS n FROM calls [RANGE 1 MINUTE]", CALLS)
    with pytest.raises(BadWindow, match="which has window_start and window_end already"):
        ps.sql(text, CALLS, TOWERS, load=load)


def test_a_sub_query_in_the_same_window():
    inner = f"SELECT * FROM {BUILT} t WHERE caller = number AND {SAME}"
    found = CALLS.join(TOWERS, {"caller": "number"}, window=window("5 seconds"), how="semi")
    assert sql(f"SELECT caller, x FROM {CALLED} c WHERE EXISTS ({inner})") == found.select("caller", "x")


@pytest.mark.parametrize(
    ("condition", "within"),
    [
        ("time = at", "0 seconds"),
        ("time BETWEEN at - INTERVAL '5' SECOND AND at + INTERVAL '6' SECOND", "6 seconds"),
        ("calls.time > towers.at - INTERVAL '1' MINUTE AND towers.at >= calls.time", "1 minute"),
        ("at <= time + INTERVAL '1' HOUR AND at > time", "1 hour"),
    ],
)
def test_conditions_on_both_event_times_bound_a_join(condition, within):
    found = sql(f"SELECT caller, y FROM calls JOIN towers ON caller = number AND {condition}")
    assert f"within {within}" in repr(found)
    bounded = sql(
        f"SELECT caller, y FROM calls JOIN towers ON caller = number AND {condition} WITHIN {within}"
    )
    assert found == bounded


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        (
            "SELECT * FROM calls WHERE caller IN (SELECT number FROM towers)",
            BadJoin,
            "no bound in time; write",
        ),
        ("SELECT x FROM calls JOIN towers ON caller = number AND at > time", BadJoin, "has no bound"),
        (
            "SELECT * FROM calls WHERE caller IN (SELECT number, y FROM towers) WITHIN 1 HOUR",
            BadExpression,
            "one column",
        ),
        (
            "SELECT * FROM calls WHERE caller IN (SELECT number FROM towers GROUP BY number) WITHIN 1 HOUR",
            BadExpression,
            "put anything else into WITH",
        ),
        (f"SELECT * FROM {CALLED} c JOIN towers ON caller = number WITHIN 1 HOUR", BadJoin, "beside a JOIN"),
        (
            f"SELECT * FROM {CALLED} c JOIN {BUILT.replace('5', '6')} t ON caller = number AND {SAME}",
            BadJoin,
            "give both the same",
        ),
    ],
)
def test_refuses(text, error, reason):
    with pytest.raises(error, match=reason):
        sql(text)
