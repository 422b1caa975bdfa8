import pytest

import penstock.query as ps
from penstock.errors import BadDuration, BadExpression, BadJoin, BadName, UnknownColumn, WrongType

CALLS = ps.stream(
    "calls",
    "time timestamp, caller string, callee string, seconds double, x double, place struct<city:string>",
    time="time",
)
SUSPECTS = ps.stream("suspects", "at timestamp, number string, kind string, x double", time="at")
TOWERS = ps.stream("towers", "time timestamp, tower string, x double, caller string", time="time")
BY_NUMBER = {"caller": "number"}


def sql(text, **named):
    return ps.sql(text, CALLS, SUSPECTS, TOWERS, **named)


def listed(text, tables="calls AS c JOIN suspects AS s ON c.caller = s.number"):
    return sql(f"SELECT {text} FROM {tables} WITHIN 1 HOUR")


PAIRS = CALLS.join(SUSPECTS, BY_NUMBER, within="1 hour", suffixes=("", "_s"))


def test_an_equality_is_a_key_and_names_are_told_apart_by_the_alias():
    found = listed("c.caller, kind, s.x AS theirs, c.x")
    assert found == PAIRS.select(caller="caller", kind="kind", theirs="x_s", x="x")


@pytest.mark.parametrize(
    "on",
    [
        "c.caller = s.number WITHIN 1 HOUR",
        "s.number = c.caller within 60 minutes",
        "(caller = number) WITHIN INTERVAL 1 HOUR",
        "c.caller = s.number WITHIN '1 hour'",
        "c.caller = s.number WITHIN INTERVAL '30' MINUTES 1800 SECONDS",
        "C.CALLER = `s`.number WITHIN 1h",
    ],
)
def test_ways_to_write_one_join(on):
    assert sql(f"SELECT c.x FROM calls AS c JOIN suspects AS s ON {on}") == PAIRS.select("x")


@pytest.mark.parametrize(
    "on",
    ["c.caller = s.number AND c.x < s.x WITHIN 1 HOUR", "c.caller = s.number WITHIN 1 HOUR AND c.x < s.x"],
)
def test_what_is_no_equality_is_a_condition_over_the_pair(on):
    expected = CALLS.join(
        SUSPECTS, BY_NUMBER, within="1 hour", condition="l.x < r.x", suffixes=("", "_s")
    ).select("kind")
    assert sql(f"SELECT kind FROM calls c JOIN suspects s ON {on}") == expected


@pytest.mark.parametrize(
    ("on", "condition"),
    [
        ("ON c.x < s.x OR c.caller = s.number", "l.x < r.x OR l.caller = r.number"),
        ("ON c.caller = 'me'", "l.caller = 'me'"),
        ("ON c.caller <=> s.number", "l.caller <=> r.number"),
        ("", None),
    ],
)
def test_without_an_equality_of_both_sides_it_is_a_cartesian_product(on, condition):
    found = sql(f"SELECT * FROM calls c JOIN suspects s {on} WITHIN 5 MINUTES")
    assert found == CALLS.cross(SUSPECTS, condition, within="5 minutes", suffixes=("", "_s"))


def test_tables_may_be_called_l_and_r():
    found = sql("SELECT r.x FROM calls AS r JOIN suspects AS l ON r.x < l.x WITHIN 1 HOUR")
    expected = CALLS.cross(SUSPECTS, "l.x < r.x", within="1 hour", suffixes=("", "_l"))
    assert found == expected.select("x")


def test_cross_join():
    found = sql("SELECT kind FROM calls CROSS JOIN suspects WITHIN 5 MINUTES")
    assert found == CALLS.cross(SUSPECTS, within="5 minutes", suffixes=("", "_suspects")).select("kind")


def test_the_last_rows():
    found = sql("SELECT kind FROM calls AS c JOIN suspects AS s ON c.caller = s.number LAST 100 ROWS")
    assert found == CALLS.join(SUSPECTS, BY_NUMBER, last=100, suffixes=("", "_s")).select("kind")


@pytest.mark.parametrize("how", ["left", "right", "full"])
@pytest.mark.parametrize("outer", ["", "OUTER"])
def test_outer_joins(how, outer):
    found = sql(
        f"SELECT kind FROM calls c {how} {outer} JOIN suspects s ON c.caller = s.number WITHIN 1 HOUR"
    )
    expected = CALLS.join(SUSPECTS, BY_NUMBER, within="1 hour", how=how, suffixes=("", "_s"))
    assert found == expected.select("kind")


def test_the_fraud_query_joins_a_stream_with_itself():
    found = sql("""
        SELECT a.caller, a.x AS here, b.x AS there FROM calls AS a JOIN calls AS b
        ON a.caller = b.caller AND a.time < b.time
           AND abs(a.x - b.x) > 10 * timestampdiff(SECOND, a.time, b.time) WITHIN 1 MINUTE
    """)
    condition = "l.time < r.time AND abs(l.x - r.x) > 10 * timestampdiff(second, l.time, r.time)"
    expected = CALLS.join(CALLS, "caller", within="1 minute", condition=condition, suffixes=("", "_b"))
    assert found == expected.select(caller="caller", here="x", there="x_b")


def test_joins_go_from_left_to_right_each_with_its_bound():
    found = sql("""
        SELECT c.caller, kind, tower FROM calls AS c
        JOIN suspects AS s ON c.caller = s.number WITHIN 1 HOUR
        LEFT JOIN towers AS t ON s.number = t.caller AND s.x < t.x LAST 3 ROWS
    """)
    expected = PAIRS.join(
        TOWERS, {"caller": "caller"}, last=3, how="left", condition="l.x_s < r.x", suffixes=("", "_t")
    )
    assert found == expected.select("caller", "kind", "tower")


def test_a_time_is_that_of_its_table_with_or_without_the_name_of_the_table():
    assert listed("time, kind") == PAIRS.select("time", "kind") == listed("c.time, kind")
    assert (
        listed("c.time AS called, s.at") == PAIRS.select(called="time", at="at") == listed("time called, at")
    )
    assert listed("at").schema.names == ("pair_time", "at")


def test_the_time_of_the_pair_has_a_name_of_its_own():
    assert listed("pair_time, kind") == PAIRS.select("kind")
    assert listed("kind, date_trunc('hour', pair_time) AS hour") == PAIRS.select(
        kind="kind", hour="date_trunc('hour', pair_time)"
    )


def test_the_time_of_pairs_that_are_joined_again_is_a_column_of_their_table():
    tables = "(SELECT c.caller AS who FROM calls c JOIN suspects s ON c.caller = s.number WITHIN 1 HOUR) AS p"
    found = sql(
        f"SELECT p.pair_time AS first, tower FROM {tables} JOIN towers AS t ON who = caller WITHIN 1 HOUR"
    )
    first = PAIRS.select(who="caller")
    inner = first.select(*first.schema.names, pair_time_of_p="pair_time")
    pairs = inner.join(TOWERS, {"who": "caller"}, within="1 hour", suffixes=("", "_t"))
    assert found == pairs.select(first="pair_time_of_p", tower="tower")


def test_a_column_that_is_called_like_the_time_of_pairs_keeps_its_name():
    odd = ps.stream("odd", "at timestamp, k int, pair_time int", time="at")
    found = ps.sql("SELECT a.pair_time FROM odd a JOIN odd b ON a.k = b.k WITHIN 1 HOUR", odd)
    assert found.schema.names == ("pair_time2", "pair_time")
    assert found.schema.column("pair_time").type == "int"


def test_the_time_of_the_first_table_in_a_later_condition():
    found = sql("""
        SELECT kind, tower FROM calls c JOIN suspects s ON c.caller = s.number WITHIN 1 HOUR
        JOIN towers t ON c.caller = t.caller AND c.time < t.time WITHIN 1 HOUR
    """)
    assert str(found.inputs[0].operator.condition) == "`l`.`time` < `r`.`time`"


def test_the_keys_of_an_outer_join_as_each_side_has_them():
    tables = "calls c LEFT JOIN suspects s ON c.caller = s.number"
    right = SUSPECTS.select(*SUSPECTS.schema.names, number_of_s="number")
    pairs = CALLS.join(right, BY_NUMBER, within="1 hour", how="left", suffixes=("", "_s"))
    assert listed("c.caller, s.number", tables) == pairs.select(caller="caller", number="number_of_s")


def test_the_key_of_an_inner_join_is_one_column_for_both():
    assert listed("s.number") == PAIRS.select(number="caller")


def test_using_merges_the_key():
    found = sql("SELECT caller, tower FROM calls FULL JOIN towers USING (caller) WITHIN 1 HOUR")
    expected = CALLS.join(TOWERS, "caller", within="1 hour", how="full", suffixes=("", "_towers"))
    assert found == expected.select("caller", "tower")


def test_an_expression_as_key_is_made_before_the_join():
    found = listed("kind", "calls c JOIN suspects s ON lower(c.caller) = s.number AND c.place.city = kind")
    left = CALLS.select(*CALLS.schema.names, _key="lower(caller)", _key2="place.city")
    right = SUSPECTS.select(*SUSPECTS.schema.names, kind_of_s="kind")
    keys = {"_key": "number", "_key2": "kind"}
    # The type of a field is not known before Spark has seen it, so the column of its table passes by.
    assert found == left.join(right, keys, within="1 hour", suffixes=("", "_s")).select(kind="kind_of_s")


def test_equal_times_are_a_key_too():
    found = sql("SELECT kind FROM calls JOIN suspects ON time = at WITHIN 0 SECONDS")
    expected = CALLS.join(SUSPECTS, {"time": "at"}, within="0 seconds", suffixes=("", "_suspects"))
    assert found == expected.select("kind")


def test_a_left_column_is_a_key_once():
    found = sql("SELECT number FROM calls JOIN suspects ON caller = number AND caller = kind WITHIN 1 HOUR")
    join = found.inputs[0].operator
    assert [(key.left, key.right) for key in join.keys] == [("caller", "number")]
    assert str(join.condition) == "`l`.`caller` = `r`.`kind`"


def test_star_is_every_column_of_every_table_in_their_order():
    ours, theirs = CALLS.schema.names, ("at", "number", "kind", "x_s")
    assert listed("*").schema.names == ("pair_time", *ours, *theirs)
    assert listed("*") == PAIRS.select(*ours, "at", number="caller", kind="kind", x_s="x_s")


def test_star_shows_equal_columns_of_one_name_once():
    tables = "calls c JOIN towers t ON c.caller = t.caller"
    shown = ("pair_time", *CALLS.schema.names, "time_t", "tower", "x_t")
    assert listed("*", tables).schema.names == shown
    assert listed("*", "calls c JOIN towers t USING (caller)").schema.names == shown


def test_star_shows_the_key_of_each_side_of_an_outer_join():
    tables = "calls c LEFT JOIN towers t ON c.caller = t.caller"
    right = TOWERS.select(*TOWERS.schema.names, caller_of_t="caller")
    pairs = CALLS.join(right, "caller", within="1 hour", how="left", suffixes=("", "_t"))
    theirs = {"time_t": "time_t", "tower": "tower", "x_t": "x_t", "caller_t": "caller_of_t"}
    assert listed("*", tables) == pairs.select(*CALLS.schema.names, **theirs)


def test_star_of_one_table():
    assert listed("s.*, seconds").schema.names == ("pair_time", "at", "number", "kind", "x", "seconds")


def test_where_reads_the_joined_rows():
    found = sql("SELECT kind FROM calls c JOIN suspects s ON c.caller = s.number WITHIN 1 HOUR WHERE s.x > 1")
    assert found == PAIRS.where("x_s > 1").select("kind")


WINDOW = "[RANGE 10 MINUTES SLIDE 1 MINUTE]"


@pytest.mark.parametrize(
    "tables",
    [
        f"calls AS c JOIN suspects AS s ON c.caller = s.number WITHIN 1 HOUR {WINDOW}",
        f"calls AS c JOIN suspects AS s {WINDOW} ON c.caller = s.number WITHIN 1 HOUR",
    ],
)
def test_the_call_records_query_aggregates_joined_rows(tables):
    found = sql(f"""
        SELECT c.seconds, count(*) AS calls, max(s.x) FROM {tables}
        WHERE s.x > 0 GROUP BY c.seconds HAVING max(s.x) > 3
    """)
    windowed = PAIRS.where("x_s > 0").group_by("seconds").window("10 minutes", slide="1 minute")
    assert found == windowed.agg(calls=ps.count(), max_x=ps.max("x_s")).where("max_x > 3")


def test_group_by_prefers_columns_and_having_aliases():
    found = sql(f"""
        SELECT c.x AS kind, s.kind AS x, count(*) AS n
        FROM calls AS c JOIN suspects AS s ON c.caller = s.number WITHIN 1 HOUR {WINDOW}
        GROUP BY c.x, s.kind HAVING x = 'a' AND c.x > 1
    """)
    windowed = PAIRS.group_by(kind="x", x="kind").window("10 minutes", slide="1 minute")
    assert found == windowed.agg(n=ps.count()).where("x = 'a' AND kind > 1")


def test_a_relation_made_in_python_under_a_name():
    long = CALLS.where("seconds > 60")
    found = sql("SELECT kind FROM long JOIN suspects ON long.caller = number WITHIN 1 HOUR", long=long)
    expected = long.join(SUSPECTS, BY_NUMBER, within="1 hour", suffixes=("", "_suspects"))
    assert found == expected.select("kind")


def test_a_column_may_be_called_within_or_last():
    odd = ps.stream("odd", "t timestamp, within int, last int", time="t")
    found = ps.sql("SELECT a.last FROM odd a JOIN odd b ON a.within = b.within LAST 2 ROWS", odd)
    assert found == odd.join(odd, "within", last=2, suffixes=("", "_b")).select("last")


JOIN = "SELECT c.x FROM calls c JOIN suspects s ON c.caller = s.number"


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        (JOIN, BadJoin, "JOIN s has no bound; write WITHIN 1 HOUR"),
        (f"{JOIN} WITHIN 1", BadJoin, "cannot read the bound"),
        (f"{JOIN} WITHIN 1 MONTH", BadDuration, "no fixed length"),
        (f"{JOIN} LAST 0 ROWS", BadJoin, "1 or more"),
        (f"{JOIN} LAST x ROWS", BadJoin, "cannot read the bound"),
        (f"{JOIN} WITHIN 1 HOUR LAST 5 ROWS", BadJoin, "second bound"),
        (f"{JOIN} WHERE c.x > 1 WITHIN 1 HOUR", BadJoin, "after the condition of a JOIN"),
        ("SELECT x FROM calls WITHIN 1 HOUR", BadJoin, "after the condition of a JOIN"),
        ("SELECT x FROM calls, suspects", BadExpression, "comma"),
        (JOIN.replace("JOIN", "RIGHT SEMI JOIN") + " WITHIN 1 HOUR", BadJoin, "supported are"),
        ("SELECT 1 AS a FROM calls NATURAL JOIN towers WITHIN 1 HOUR", BadJoin, "supported are"),
        (
            JOIN.replace("c.x", "x") + " WITHIN 1 HOUR",
            BadExpression,
            "'x' is a column of c and s; write c.x or s.x",
        ),
        (JOIN.replace("c.caller", "x") + " WITHIN 1 HOUR", BadExpression, "a column of c and s"),
        (JOIN.replace("c.x", "c.y") + " WITHIN 1 HOUR", UnknownColumn, "did you mean 'c.x'.*s.number"),
        (JOIN.replace("c.x", "c.x, s.x") + " WITHIN 1 HOUR", BadName, "AS"),
        (
            JOIN.replace("c.x", "c.x AS pair_time") + " WITHIN 1 HOUR",
            BadName,
            "'pair_time'; rename one with AS",
        ),
        (JOIN.replace("c.x", "calls.x") + " WITHIN 1 HOUR", UnknownColumn, "no column 'calls.x'.* 'c.x'"),
        (JOIN.replace("c.x", "q.*") + " WITHIN 1 HOUR", BadName, "the tables are c, s"),
        (JOIN.replace("c.caller", "c.x") + " WITHIN 1 HOUR", WrongType, "cast one"),
        (
            f"{JOIN} WITHIN 1 HOUR JOIN suspects s ON TRUE WITHIN 1 HOUR",
            BadName,
            "two tables have the name 's'",
        ),
        ("SELECT 1 AS a FROM calls JOIN (SELECT * FROM towers) WITHIN 1 HOUR", BadName, "needs a name"),
        ("SELECT 1 AS a FROM calls JOIN towers USING (tower) WITHIN 1 HOUR", UnknownColumn, "tower"),
        ("SELECT 1 AS a FROM calls JOIN towers USING ( ) WITHIN 1 HOUR", BadJoin, "names no column"),
        (
            f"SELECT count(*) AS n FROM calls {WINDOW} JOIN towers WITHIN 1 HOUR",
            BadExpression,
            "after the last one",
        ),
    ],
)
def test_refuses(text, error, reason):
    with pytest.raises(error, match=reason):
        sql(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (JOIN, "suspects"),
        (f"{JOIN} WITHIN 1 MONTH", "WITHIN"),
        (JOIN.replace("c.x", "kind, x") + " WITHIN 1 HOUR", "x FROM"),
        (f"{JOIN} WITHIN 1 HOUR WHERE )", ")"),
        ("SELECT a\nFROM calls c JOIN nowhere n ON TRUE WITHIN 1 HOUR", "nowhere"),
    ],
)
def test_errors_mark_the_place(text, at):
    with pytest.raises((BadJoin, BadDuration, BadExpression, BadName)) as caught:
        sql(text)
    line, caret = str(caught.value).splitlines()[-2:]
    assert line[caret.index("^") :].startswith(at)
