"""Windows in SQL as users of Flink and Spark write them: the same plans as the verbs."""

import pytest

import penstock.query as ps
from penstock.errors import BadDuration, BadExpression, BadName, BadWindow

REPORTS = ps.stream("reports", "time timestamp, vehicle string, speed double, kind string", time="time")
TUMBLE = "TABLE(TUMBLE(TABLE reports, DESCRIPTOR(time), INTERVAL '5' MINUTES))"
TUMBLED = REPORTS.window("5 minutes")
BY_VEHICLE = REPORTS.group_by("vehicle").window("5 minutes")


def sql(text):
    return ps.sql(text, REPORTS)


def numbered(function, partition, order="speed"):
    return f"FROM (SELECT *, {function} OVER (PARTITION BY {partition} ORDER BY {order}) AS r FROM {TUMBLE})"


@pytest.mark.parametrize(
    ("function", "windowed"),
    [
        (TUMBLE, TUMBLED),
        ("TUMBLE(TABLE reports, DESCRIPTOR(time), INTERVAL '5' MINUTES)", TUMBLED),
        ("TUMBLE(reports, '5 minutes')", TUMBLED),
        ("TUMBLE(reports, time, INTERVAL 5 MINUTES)", TUMBLED),
        ("TABLE(TUMBLE(DATA => TABLE reports, TIMECOL => DESCRIPTOR(time), SIZE => '5 minutes'))", TUMBLED),
        (
            "TABLE(TUMBLE(TABLE reports, DESCRIPTOR(time), INTERVAL '1' DAY, INTERVAL '-8' HOUR))",
            REPORTS.window("1 day", offset="-8 hours"),
        ),
        (
            "TABLE(HOP(TABLE reports, DESCRIPTOR(time), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))",
            REPORTS.window("5 minutes", slide="1 minute"),
        ),
        (
            "HOP(TABLE reports, DESCRIPTOR(time), SIZE => '5 minutes', SLIDE => '1 minute')",
            REPORTS.window("5 minutes", slide="1 minute"),
        ),
        (
            "TABLE(CUMULATE(TABLE reports, DESCRIPTOR(time), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))",
            REPORTS.cumulate("5 minutes", "1 minute"),
        ),
    ],
)
def test_table_functions(function, windowed):
    found = sql(
        f"SELECT window_start, window_end, count(*) AS c FROM {function} GROUP BY window_start, window_end"
    )
    assert found == windowed.agg(c=ps.count())


EARLY = "(window_start < TIMESTAMP '2024-01-01' OR t.kind = 'a')"


def test_a_condition_on_windows_and_a_key():
    """The key has another name in the results, and another column has its name."""
    found = sql(
        f"SELECT speed AS kind, kind AS k, count(*) AS c FROM {TUMBLE} AS t WHERE {EARLY} "
        "GROUP BY window_start, window_end, kind, speed"
    )
    grouped = REPORTS.group_by(k="kind", kind="speed").window("5 minutes").agg(c=ps.count())
    early = "(window_start < CAST('2024-01-01' AS TIMESTAMP) OR `k` = 'a')"
    assert found == grouped.where(early).select(kind="`kind`", k="`k`", c="`c`")


def test_a_condition_on_windows_and_a_column():
    inner = f"SELECT * FROM {TUMBLE} AS t WHERE {EARLY}"
    for text in (inner, f"SELECT u.* FROM ({inner}) AS u"):
        (condition,) = [each for each in str(sql(text)).split(".") if each.startswith("where(")]
        assert "kind" in condition


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT max(speed) AS kind FROM {TUMBLE} AS t WHERE {EARLY} GROUP BY window_start, window_end",
        f"SELECT speed AS kind FROM {TUMBLE} AS t WHERE {EARLY} GROUP BY window_start, window_end, speed",
        f"SELECT kind FROM {TUMBLE} AS t WHERE {EARLY} GROUP BY window_start, window_end, ROLLUP(kind)",
        f"SELECT * {numbered('RANK()', 'window_start')[:-1]} AS t WHERE {EARLY}) WHERE r <= 2",
    ],
    ids=["aggregate", "other key", "sets of keys", "numbered"],
)
def test_a_condition_on_windows_and_a_column_that_is_gone(text):
    """Results have no such column, or another one of that name."""
    with pytest.raises(BadWindow, match="is about windows"):
        sql(text)


@pytest.mark.parametrize(("items", "name"), [("*", "kind"), ("speed, kind AS k", "k")])
def test_a_condition_on_windows_and_a_key_of_numbered_rows(items, name):
    """All rows of a window and a key have it alike, so it is asked of those that are left."""
    rank = "RANK() OVER (PARTITION BY window_start, window_end, t.kind ORDER BY speed) AS r"
    plain = f"SELECT * FROM (SELECT {items}, {rank} FROM {TUMBLE} AS t) WHERE r <= 2"
    early = EARLY.replace("t.kind", f"`{name}`").replace(
        "TIMESTAMP '2024-01-01'", "CAST('2024-01-01' AS TIMESTAMP)"
    )
    text = plain.replace(" AS t)", f" AS t WHERE {EARLY})")
    assert sql(text) == sql(plain).where(early)


def test_a_condition_on_windows_and_an_aggregate():
    with pytest.raises(BadExpression, match="into HAVING"):
        sql(
            f"SELECT count(*) AS c FROM {TUMBLE} WHERE window_start < TIMESTAMP '2024-01-01' OR count(*) > 1 "
            "GROUP BY window_start, window_end"
        )


def test_parentheses_and_case_make_no_other_key():
    columns = "(lower(kind)) AS k, grouping((LOWER((Kind)))) AS g, count(*) AS c"
    found = sql(f"SELECT {columns} FROM reports GROUP BY ROLLUP((lower((reports.kind))))")
    assert found.schema.names == ("change", "k", "g", "c")
    assert found.inputs[0].inputs[0] == REPORTS.explode(_grouping="array(0L, 1L)")


INNER = "(SELECT kind, count(*) AS n FROM reports GROUP BY kind, window(time, '2 minutes'))"


@pytest.mark.parametrize("key", ["2", "e", "(window_end)", "window_end"])
def test_a_bound_of_earlier_windows_is_no_key_beside_other_windows(key):
    with pytest.raises(BadName, match="GROUP BY window_end is a column of its table"):
        sql(f"SELECT n, window_end AS e FROM {INNER} GROUP BY {key}, window(window_start, '1 minute')")


@pytest.mark.parametrize("key", ["1", "r.time", "at"])
def test_a_key_that_equals_a_bound_of_a_joined_table_is_a_key(key):
    found = sql(
        f"SELECT r.time AS at, count(*) AS c FROM {INNER} AS w JOIN reports r "
        f"ON w.window_end = r.time WITHIN 1 HOUR GROUP BY {key}, window(w.window_start, '1 minute')"
    )
    assert [name for name, _ in found.operator.keys] == ["at"]


def test_a_bound_of_earlier_windows_within_a_key():
    columns = "unix_micros(window_end) AS e, unix_micros(window.end) AS own, count(*) AS c"
    found = sql(f"SELECT {columns} FROM {INNER} GROUP BY 1, window(window_start, '2 minutes')")
    assert found.inputs[0].operator.keys[0][0] == "e"
    assert [each.sql for _, each in found.operator.columns][3] == "UNIX_MICROS(`window_end`)"


@pytest.mark.parametrize(
    ("call", "windowed"),
    [
        ("window(time, '5 minutes')", TUMBLED),
        ("window(time, '5 minutes', '1 minute')", REPORTS.window("5 minutes", slide="1 minute")),
        (
            "window(time, '5 minutes', '1 minute', '10 seconds')",
            REPORTS.window("5 minutes", slide="1 minute", offset="10 seconds"),
        ),
        ("TUMBLE(time, INTERVAL '5' MINUTE)", TUMBLED),
        (
            "HOP(time, INTERVAL '0.5' SECOND(1, 1), INTERVAL '2' SECOND)",
            REPORTS.window("2 seconds", slide="0.5 seconds"),
        ),
    ],
)
def test_calls_in_group_by(call, windowed):
    text = f"SELECT vehicle, count(*) AS c FROM reports GROUP BY {call}, vehicle"
    assert sql(text) == windowed.group_by("vehicle").agg(c=ps.count())
    assert sql(f"SELECT count(*) AS c FROM reports GROUP BY {call}") == windowed.agg(c=ps.count())


@pytest.mark.parametrize(
    "items",
    [
        "window.start, window.end, count(*) AS c",
        "TUMBLE_START(time, INTERVAL '5' MINUTE), TUMBLE_END(time, INTERVAL '5' MINUTE), count(*) AS c",
        "window_start, count(*) AS c",
        "count(*) AS c",
    ],
)
def test_bounds_stand_first_however_they_are_written(items):
    found = sql(f"SELECT {items} FROM reports GROUP BY window(time, '5 minutes')")
    assert found == TUMBLED.agg(c=ps.count())


@pytest.mark.parametrize("t", ["t", "kind"], ids=["plain", "called like a column"])
def test_bounds_and_their_time_under_other_names(t):
    text = f"""
        SELECT {t}.window_start AS s, window_time, count(*) AS c FROM {TUMBLE} AS {t}
        GROUP BY {t}.window_start, {t}.window_end, window_time
    """
    end = "window_end - INTERVAL '0.001' SECOND"
    assert sql(text) == TUMBLED.agg(c=ps.count()).select(s="window_start", window_time=end, c="c")


@pytest.mark.parametrize(("table", "side"), [("r", "left"), ("t", "right")])
def test_windows_by_the_own_time_of_one_side_of_a_join(table, side):
    tolls = ps.stream("tolls", "time timestamp, car string, paid double", time="time")
    text = f"""
        SELECT count(*) AS c FROM reports r JOIN tolls t ON vehicle = car WITHIN 1 HOUR
        GROUP BY TUMBLE({table}.time, INTERVAL '5' MINUTES)
    """
    joined = REPORTS.join(tolls, {"vehicle": "car"}, within="1 hour", time=side, suffixes=("", "_t"))
    assert ps.sql(text, REPORTS, tolls) == joined.window("5 minutes").agg(c=ps.count())


def test_without_a_window_and_a_key_there_is_one_total():
    assert sql("SELECT count(*) AS c FROM reports WHERE speed > 3") == REPORTS.where("speed > 3").agg(
        c=ps.count()
    )


def test_columns_with_the_names_of_windows_stay_what_they_are():
    panes = ps.stream("panes", "time timestamp, window string, window_time bigint", time="time")
    found = ps.sql("SELECT window, max(window_time) AS m FROM panes [RANGE 1 HOUR] GROUP BY `window`", panes)
    assert found == panes.group_by("window").window("1 hour").agg(m=ps.max("window_time"))


def test_a_window_as_a_struct():
    found = sql("SELECT window, count(*) AS c FROM reports GROUP BY window(time, '5 minutes')")
    struct = "named_struct('start', window_start, 'end', window_end)"
    assert found == TUMBLED.agg(c=ps.count()).select(window=struct, c="c")


def test_conditions_on_rows_and_on_bounds():
    text = f"""
        SELECT vehicle, count(*) AS c FROM {TUMBLE} WHERE speed > 3 AND window_start > TIMESTAMP '2024-01-01'
        GROUP BY window_start, window_end, vehicle HAVING c > 1
    """
    counted = REPORTS.where("speed > 3").group_by("vehicle").window("5 minutes").agg(c=ps.count())
    assert sql(text) == counted.where("c > 1").where("window_start > CAST('2024-01-01' AS TIMESTAMP)")


def test_a_sub_query_that_passes_a_table_function_on():
    inner = f"SELECT * FROM {TUMBLE} WHERE window_start > TIMESTAMP '2024-01-01' AND speed > 3"
    found = sql(f"SELECT vehicle, count(*) AS c FROM ({inner}) GROUP BY vehicle, window_start, window_end")
    counted = REPORTS.where("speed > 3").group_by("vehicle").window("5 minutes").agg(c=ps.count())
    assert found == counted.where("window_start > CAST('2024-01-01' AS TIMESTAMP)")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT DISTINCT vehicle FROM {TUMBLE}",
        f"SELECT vehicle FROM {TUMBLE} GROUP BY vehicle, window_start, window_end",
        "SELECT DISTINCT vehicle FROM reports [RANGE 5 MINUTES]",
    ],
)
def test_groups_without_an_aggregate(text):
    assert sql(text) == BY_VEHICLE.agg()


def test_results_are_grouped_by_the_windows_that_they_have():
    inner = f"SELECT vehicle, count(*) AS c FROM {TUMBLE} GROUP BY vehicle, window_start, window_end"
    found = sql(f"SELECT c, count(*) AS n FROM ({inner}) GROUP BY c, window_start, window_end")
    assert found == BY_VEHICLE.agg(c=ps.count()).by_window().group_by("c").agg(n=ps.count())


CASCADE = """
    SELECT sum(c) AS s FROM (
        SELECT count(*) AS c, TUMBLE_ROWTIME(time, INTERVAL '10' SECOND) AS at FROM reports
        GROUP BY kind, TUMBLE(time, INTERVAL '10' SECOND)
    ) GROUP BY TUMBLE(at, INTERVAL '{}' SECOND)
"""


def test_windows_over_the_last_moment_of_windows_that_fill_them():
    counted = REPORTS.group_by("kind").window("10 seconds").agg(c=ps.count())
    named = counted.select(c="c", at="window_end - INTERVAL '0.001' SECOND")
    assert sql(CASCADE.format(30)) == named.window("30 seconds").agg(s=ps.sum("c"))


@pytest.mark.parametrize("condition", ["r <= 3", "r < 4", "3 >= r", "t.r <= 3 AND r <= 5"])
def test_row_number_over_a_table_function(condition):
    text = f"""
        SELECT * FROM (
            SELECT *, ROW_NUMBER() OVER
                (PARTITION BY window_start, window_end, vehicle ORDER BY speed DESC) AS r
            FROM {TUMBLE}
        ) AS t WHERE {condition}
    """
    top = BY_VEHICLE.top(3, by=["`speed`"], descending=[True])
    assert sql(text) == top.select("time", "vehicle", "speed", "kind", r="rank")


@pytest.mark.parametrize("condition", ["r = 2", "2 = r"])
def test_one_row_by_its_number(condition):
    found = sql(f"SELECT * {numbered('ROW_NUMBER()', 'window_start')} WHERE {condition}")
    top = TUMBLED.top(2, by=["`speed`"], descending=[False])
    assert found == top.select("time", "vehicle", "speed", "kind", r="rank").where(condition)


def test_rows_that_are_equal_share_a_rank():
    found = sql(f"SELECT * {numbered('RANK()', 'window_start')} WHERE r <= 2")
    top = TUMBLED.top(2, by=["`speed`"], descending=[False], ties=True)
    assert found == top.select("time", "vehicle", "speed", "kind", r="rank")


def test_row_number_over_results_of_windows():
    inner = (
        f"SELECT vehicle, kind, count(*) AS c FROM {TUMBLE} GROUP BY vehicle, kind, window_start, window_end"
    )
    text = f"""
        SELECT kind, vehicle FROM (
            SELECT *, ROW_NUMBER() OVER
                (PARTITION BY window_start, window_end, kind ORDER BY c DESC, vehicle) AS r
            FROM ({inner})
        ) WHERE r = 1 AND c > 2
    """
    counted = REPORTS.group_by("vehicle", "kind").window("5 minutes").agg(c=ps.count())
    top = counted.by_window().group_by("kind").top(1, by=["`c`", "`vehicle`"], descending=[True, False])
    expected = top.select("vehicle", "kind", "c", r="rank").where("c > 2").select("kind", "vehicle")
    assert sql(text) == expected


def test_row_number_by_expressions_that_are_not_selected():
    text = f"""
        SELECT * FROM (
            SELECT speed, ROW_NUMBER() OVER
                (PARTITION BY window_start, window_end, upper(kind) ORDER BY vehicle) AS r
            FROM {TUMBLE}
        ) WHERE r <= 2
    """
    assert sql(text).schema.names == ("window_start", "window_end", "speed", "r")


def test_the_number_of_a_row_needs_a_name_of_its_own():
    text = f"""
        SELECT speed FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY speed) AS Kind
            FROM {TUMBLE}
        ) WHERE Kind <= 2
    """
    with pytest.raises(BadName, match="two columns would have the name 'Kind'"):
        sql(text)


def test_grouping_sets_repeat_tuples_for_each_set():
    text = """
        SELECT vehicle, kind, GROUPING_ID(vehicle, kind) AS g, GROUPING(kind) AS k, count(kind) AS c
        FROM reports [RANGE 5 MINUTES] GROUP BY GROUPING SETS ((vehicle, kind), (vehicle), ())
    """
    keys = {
        "_grouping": "`_grouping`",
        "vehicle": "CASE WHEN `_grouping` IN (0, 1) THEN vehicle END",
        "kind": "CASE WHEN `_grouping` IN (0) THEN kind END",
    }
    counted = (
        REPORTS.explode(_grouping="array(0L, 1L, 3L)")
        .group_by(**keys)
        .window("5 minutes")
        .agg(c=ps.count("kind"))
    )
    which = "CAST(shiftright(`_grouping`, 0) & 1L AS TINYINT)"
    assert sql(text) == counted.select("vehicle", "kind", g="_grouping", k=which, c="c")


@pytest.mark.parametrize(
    ("group", "numbers"),
    [
        ("ROLLUP(vehicle, kind)", (0, 1, 3)),
        ("CUBE(vehicle, kind)", (0, 1, 2, 3)),
        ("vehicle, kind WITH ROLLUP", (0, 1, 3)),
        ("vehicle, ROLLUP(kind)", (0, 1)),
        ("GROUPING SETS ((vehicle, kind), kind)", (0, 2)),
        ("ROLLUP((vehicle, kind))", (0, 3)),
        ("GROUPING SETS (ROLLUP(vehicle), kind)", (1, 3, 2)),
        ("GROUPING SETS (((vehicle), reports.kind), (KIND))", (0, 2)),
    ],
)
def test_sets_of_keys_by_number(group, numbers):
    found = sql(f"SELECT vehicle, kind, count(*) AS c FROM reports [RANGE 5 MINUTES] GROUP BY {group}")
    exploded = REPORTS.explode(_grouping=f"array({', '.join(f'{each}L' for each in numbers)})")
    assert found.inputs[0].inputs[0] == exploded


@pytest.mark.parametrize(
    ("call", "windowed"),
    [
        ("session_window(time, '5 minutes')", REPORTS.group_by("vehicle").session("5 minutes")),
        ("SESSION(time, INTERVAL '5' MINUTES)", REPORTS.group_by("vehicle").session("5 minutes")),
    ],
)
def test_sessions_in_group_by(call, windowed):
    found = sql(f"SELECT vehicle, count(*) AS c FROM reports GROUP BY {call}, vehicle")
    assert found == windowed.agg(c=ps.count())


def test_the_bounds_of_sessions_by_their_names_in_spark():
    found = sql("""
        SELECT vehicle, session_window.start AS window_start, session_window.end AS window_end, count(*) AS c
        FROM reports GROUP BY vehicle, session_window(time, '5 minutes')
    """)
    assert found == REPORTS.group_by("vehicle").session("5 minutes").agg(c=ps.count())


def test_numbers_in_group_by_count_the_bounds_of_windows():
    found = sql("""
        SELECT window.start AS window_start, vehicle, kind, count(*) AS c
        FROM reports GROUP BY 2, window(time, '5 minutes'), 3
    """)
    assert found == REPORTS.group_by("vehicle", "kind").window("5 minutes").agg(c=ps.count())
    found = sql(
        f"SELECT window_start, window_end, vehicle, count(*) AS c FROM {TUMBLE} GROUP BY window_start, 2, 3"
    )
    assert found == BY_VEHICLE.agg(c=ps.count())


def test_sessions_as_a_table_function():
    text = """
        SELECT vehicle, window_start, count(*) AS c
        FROM TABLE(SESSION(TABLE reports PARTITION BY vehicle, DESCRIPTOR(time), INTERVAL '5' MINUTES))
        GROUP BY vehicle, window_start, window_end
    """
    assert sql(text) == REPORTS.group_by("vehicle").session("5 minutes").agg(c=ps.count())


SESSIONS = "TABLE(SESSION(TABLE reports PARTITION BY vehicle, DESCRIPTOR(time), INTERVAL '5' MINUTES))"


@pytest.mark.parametrize(
    "source",
    [
        f"{SESSIONS} WHERE speed > 3",
        f"{SESSIONS} WHERE vehicle = 'a' OR speed > 3",
        f"(SELECT * FROM {SESSIONS} WHERE speed > 3)",
        f"{SESSIONS} AS s WHERE EXISTS (SELECT 1 FROM reports r WHERE r.vehicle = s.vehicle) WITHIN 1 MINUTE",
    ],
)
def test_a_condition_would_leave_rows_out_of_sessions_that_are_formed(source):
    """The function comes before WHERE, so its sessions are those of all rows, and no filter below it is."""
    with pytest.raises(BadWindow, match=r"WHERE chooses rows by .*session_window"):
        sql(f"SELECT vehicle, count(*) AS c FROM {source} GROUP BY vehicle, window_start, window_end")


def test_sessions_of_some_keys():
    found = sql(
        f"SELECT vehicle, count(*) AS c FROM {SESSIONS} WHERE vehicle > 'a' "
        "GROUP BY vehicle, window_start, window_end"
    )
    chosen = REPORTS.where("vehicle > 'a'").group_by("vehicle").session("5 minutes")
    assert found == chosen.agg(c=ps.count())


def test_distinct_keys_and_first_rows_of_sessions():
    sessions = "TABLE(SESSION(TABLE reports PARTITION BY vehicle, DESCRIPTOR(time), INTERVAL '5' MINUTES))"
    keyed = REPORTS.group_by("vehicle").session("5 minutes")
    assert sql(f"SELECT DISTINCT vehicle FROM {sessions}") == keyed.agg()
    numbered = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end, vehicle ORDER BY speed) AS r"
    found = sql(f"SELECT * FROM (SELECT *, {numbered} FROM {sessions}) WHERE r = 1")
    top = keyed.top(1, by=["`speed`"], descending=[False])
    assert found == top.select("time", "vehicle", "speed", "kind", r="rank")


def test_groups_without_a_window_are_updated():
    found = sql("SELECT vehicle, count(*) AS c FROM reports GROUP BY vehicle HAVING c > 3")
    assert found == REPORTS.group_by("vehicle").agg(c=ps.count()).where("c > 3")


def test_the_windows_of_each_row():
    found = sql(f"SELECT * FROM {TUMBLE} WHERE speed > 3")
    assert found.schema.names == (*REPORTS.schema.names, "window_start", "window_end", "window_time")
    assert found.time == "time"


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        (
            f"SELECT vehicle, count(*) AS c FROM {TUMBLE} GROUP BY vehicle",
            BadExpression,
            "GROUP BY window_start",
        ),
        (
            "SELECT count(*) AS c FROM TUMBLE(reports, DESCRIPTOR(at), '5 minutes') GROUP BY window_start",
            BadWindow,
            r"write DESCRIPTOR\(time\)",
        ),
        (
            "SELECT count(*) AS c FROM TUMBLE(TABLE cars, DESCRIPTOR(at), '5 minutes') GROUP BY window_start",
            BadName,
            "no stream 'cars'",
        ),
        ("SELECT count(*) AS c FROM TUMBLE((SELECT * FROM reports), '5 minutes')", BadWindow, "name in WITH"),
        (
            "SELECT count(*) AS c FROM HOP(reports, DESCRIPTOR(time), '5 minutes') GROUP BY window_start",
            BadWindow,
            "no size; write .*slide first",
        ),
        (
            "SELECT count(*) AS c FROM TUMBLE(TABLE reports, DESCRIPTOR(time), '1 day', '1 hour', '1 hour')",
            BadWindow,
            "too many",
        ),
        (
            "SELECT count(*) AS c FROM TUMBLE(reports, time, '5 parsecs') GROUP BY window_start",
            BadDuration,
            "parsecs",
        ),
        (
            "SELECT count(*) AS c FROM TUMBLE(TABLE reports PARTITION BY kind, DESCRIPTOR(time), '1 day')",
            BadWindow,
            "keys of sessions",
        ),
        (
            "SELECT count(*) AS c FROM reports GROUP BY window(speed, '5 minutes')",
            BadWindow,
            "event time is 'time'",
        ),
        ("SELECT count(*) AS c FROM reports GROUP BY HOP(time, '5 minutes')", BadWindow, "slide first"),
        (
            "SELECT count(*) AS c FROM reports [RANGE 1 HOUR] GROUP BY window(time, '5 minutes')",
            BadWindow,
            "second window",
        ),
        (f"SELECT DISTINCT count(*) AS c FROM {TUMBLE}", BadExpression, "leave DISTINCT out"),
        ("SELECT DISTINCT vehicle FROM reports", BadWindow, "keep every row forever"),
        (
            f"SELECT * {numbered('DENSE_RANK()', 'window_start')} WHERE r <= 2",
            BadExpression,
            "ROW_NUMBER",
        ),
        (
            f"SELECT * {numbered('ROW_NUMBER()', 'window_start')}",
            BadExpression,
            "how many rows",
        ),
        (
            f"SELECT * {numbered('ROW_NUMBER()', 'kind')} WHERE r <= 2",
            BadWindow,
            "no window",
        ),
        (
            f"SELECT * {numbered('ROW_NUMBER()', 'window_start', 'speed NULLS LAST')} WHERE r <= 2",
            BadExpression,
            "least values",
        ),
        (
            "SELECT count(*) AS c FROM reports [RANGE 1 HOUR] GROUP BY GROUPING SETS (kind, kind)",
            BadExpression,
            "twice",
        ),
        (
            "SELECT count(*) AS c FROM reports [RANGE 1 HOUR] GROUP BY CUBE(lower(kind), (Lower((KIND))))",
            BadExpression,
            "twice",
        ),
        (
            (
                "SELECT window_end, count(*) AS c FROM (SELECT window.start AS window_start, window.end AS "
                "window_end, kind FROM reports GROUP BY kind, window(time, '2 minutes', '1 minute')) "
                "GROUP BY window_end, window(window_start, '1 minute')"
            ),
            BadName,
            "GROUP BY window_end is a column of its table",
        ),
        (
            "SELECT grouping(kind) AS g FROM reports [RANGE 1 HOUR] GROUP BY kind",
            BadExpression,
            "GROUPING SETS",
        ),
    ],
)
def test_refuses(text, error, reason):
    with pytest.raises(error, match=reason):
        sql(text)
