"""What a statement cannot mean is refused when it is written, in words, and never when it runs."""

import pytest

import penstock.query as ps
from penstock.errors import BadAggregate, BadExpression, BadWindow, WrongType

T = ps.stream("t", "at timestamp, a string, b int, v double, tags array<string>", time="at")
U = ps.stream("u", "at timestamp, a string, w int", time="at")


def sql(text):
    return ps.sql(text, T, U)


ROLLED = [
    "a, window(at, '5 minutes') WITH ROLLUP",
    "window(at, '5 minutes'), a WITH CUBE",
    "ROLLUP (a, window(at, '5 minutes'))",
    "b, CUBE (window(at, '5 minutes'), a)",
    "GROUPING SETS ((a, window(at, '5 minutes')), (a))",
]


@pytest.mark.parametrize("group", ROLLED)
def test_a_set_of_keys_without_the_window_is_no_result_of_windows(group):
    with pytest.raises(
        BadExpression, match=r"without the window.*write GROUP BY WINDOW\(at, '5 minutes'\), ROLLUP"
    ):
        sql(f"SELECT a, count(*) AS n FROM t GROUP BY {group}")


def test_the_keys_of_a_table_function_roll_up_beside_its_window():
    table = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '5' MINUTES))"
    with pytest.raises(BadExpression, match="with ROLLUP, CUBE or GROUPING SETS of keys at the end"):
        sql(f"SELECT a, count(*) AS n FROM {table} GROUP BY window_start, window_end, a WITH ROLLUP")


def test_a_window_in_every_set_stands_beside_them():
    inside = "GROUPING SETS ((a, window(at, '5 minutes')), (window(at, '5 minutes')))"
    beside = "window(at, '5 minutes'), GROUPING SETS ((a), ())"
    made = [sql(f"SELECT a, count(*) AS n FROM t GROUP BY {each}") for each in (inside, beside)]
    assert made[0] == made[1]
    rolled = sql("SELECT a, count(*) AS n FROM t GROUP BY a WITH ROLLUP")
    assert rolled == sql("SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a)")


def test_windows_that_rows_have_already_are_keys_like_others():
    inner = "SELECT a, count(*) AS m FROM t [RANGE 5 MINUTES] GROUP BY a"
    found = sql(f"SELECT window_start, a, sum(m) AS n FROM ({inner}) GROUP BY ROLLUP (window_start, a)")
    assert found.schema.names == ("change", "window_start", "a", "n")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, window(at, '5 minutes') AS w FROM t",
        "SELECT window(at, '5 minutes') AS w, count(*) AS n FROM t GROUP BY window(at, '5 minutes')",
        "SELECT a, session(at, '5 minutes') AS w FROM t",
        "SELECT a FROM t WHERE session_window(at, '5 minutes').start > at",
    ],
)
def test_a_window_outside_group_by(text):
    with pytest.raises(
        BadWindow, match=r"(?s)outside GROUP BY; write GROUP BY .* window_start and window_end.*\^"
    ):
        sql(text)


def test_no_operator_with_state_follows_what_is_updated():
    totals = "SELECT a, max(b) AS most FROM t GROUP BY a"
    with pytest.raises(BadAggregate, match="change as long as tuples come"):
        sql(f"SELECT avg(most) AS mean FROM ({totals})")
    with pytest.raises(BadAggregate, match="change as long as tuples come"):
        sql(f"SELECT u.w FROM u JOIN ({totals}) AS m ON u.a = m.a KEEP 1 DAY")
    with pytest.raises(BadWindow, match="corrected later"):
        T.window("1 minute", lateness="1 hour").agg(n=ps.count()).window("1 hour").agg(n=ps.sum("n"))
    steps = T.group_by("a").agg(n=ps.count()).where("n > 3").select(m="n + 1")
    with pytest.raises(BadAggregate, match="change as long as tuples come"):
        steps.union(steps).deduplicate("m", within="1 hour")


def test_steps_and_channels_without_state_follow_what_is_updated():
    totals = T.group_by("a").agg(n=ps.count())
    assert totals.where("n > 3").select(m="n + 1").schema.names == ("change", "m")
    assert sql("SELECT n + 1 AS m FROM (SELECT a, count(*) AS n FROM t GROUP BY a) WHERE n > 3")


def test_a_name_in_double_quotes_is_a_text():
    for text in (
        "SELECT b FROM t WHERE \"a\" = 'x'",
        'SELECT "A" AS x FROM t',
        'SELECT m FROM (SELECT b AS m FROM t) WHERE "m" > 1',
    ):
        with pytest.raises(
            BadExpression, match=r"(?s)is a text in Spark SQL.*write `\w+` for the column.*\^"
        ):
            sql(text)
    with pytest.raises(BadExpression, match="is a text in Spark SQL"):
        T.where("\"a\" = 'x'")
    with pytest.raises(BadExpression, match="is a text in Spark SQL"):
        T.join(U, "a", within="1 hour", condition='"w" > 3', suffixes=("", "_u"))
    assert sql('SELECT b AS "n" FROM t WHERE a = "x"') == sql("SELECT b AS n FROM t WHERE a = 'x'")


def test_a_decimal_without_a_scale_drops_no_digits_in_silence():
    for value in ("v", "a", "b / 3"):
        for cast in (f"({value})::NUMERIC", f"CAST({value} AS DECIMAL)", f"decimal({value})"):
            with pytest.raises(WrongType, match=r"decimal\(10,0\) in Spark.*give precision and scale"):
                sql(f"SELECT {cast} AS x FROM t")
    with pytest.raises(WrongType, match=r"CAST\(`sum_v` AS DECIMAL\)"):
        sql("SELECT round(sum(v)::NUMERIC, 2) AS x FROM t")
    assert sql("SELECT b::NUMERIC AS x FROM t").schema.column("x").type == "decimal(10,0)"
    assert sql("SELECT v::NUMERIC(10, 0) AS x FROM t") == sql("SELECT CAST(v AS DECIMAL(10, 0)) AS x FROM t")


def test_a_key_that_divides_whole_numbers():
    for text in (
        "SELECT count(*) AS n FROM t GROUP BY b / 2",
        "SELECT b / 2 + 1 AS half, count(*) AS n FROM t GROUP BY half",
        "SELECT b FROM (SELECT b, ROW_NUMBER() OVER (PARTITION BY b / 2 ORDER BY a) AS r FROM t) WHERE r = 1",
    ):
        with pytest.raises(WrongType, match=r"has a fraction in Spark.*write `b` div 2"):
            sql(text)
    with pytest.raises(WrongType, match="has a fraction in Spark"):
        T.group_by(half="b / 2")
    for key in ("b div 2", "v / 2", "floor(b / 2)", "CAST(b AS DOUBLE) / 2"):
        assert sql(f"SELECT count(*) AS n FROM t GROUP BY {key}")


def test_one_row_alone_by_its_number():
    ranked = "SELECT a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS r FROM t"
    second = sql(f"SELECT a, r FROM ({ranked}) WHERE r = 2")
    assert second == sql(f"SELECT a, r FROM (SELECT * FROM ({ranked}) WHERE r <= 2) WHERE r = 2")


def test_columns_that_a_statement_adds_have_names_for_people():
    found = sql("SELECT a, sum(b) + max(v) AS s FROM t GROUP BY a, b + 1 HAVING count(*) > 1")
    assert "group_by(a, value_b).agg(sum_b=sum(`b`), max_v=max(`v`), count=count())" in repr(found)
    ranked = sql(
        "SELECT a FROM (SELECT a, RANK() OVER (PARTITION BY upper(a) ORDER BY -b) AS r FROM t) WHERE r = 1"
    )
    assert "group_by(upper_a)" in repr(ranked)


def test_count_of_nothing():
    with pytest.raises(BadExpression, match=r"write count\(\*\)"):
        sql("SELECT count() AS n FROM t")


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("extract(epoch FROM at)", r"no field EPOCH of a time.*unix_seconds"),
        ("extract(foo FROM at)", "no field FOO of a time; the fields are year"),
        ("date_part('foo', at)", "no field FOO of a time"),
        ("timestampdiff(FORTNIGHT, at, at)", "no unit FORTNIGHT; the units are DAY"),
        ("at - INTERVAL 5 FORTNIGHTS", "no unit FORTNIGHTS; the units are DAY"),
        ("to_char(at, 'YYYY-MM-DD')", "has Y, which counts by weeks.*write yyyy-MM-dd"),
        ("date_format(at, 'yyyy-MM-ddTHH:mm')", "has the letter T.*put text into quotes"),
        ("to_timestamp(a, 'EEE d MMM yyyy')", "has the letter E"),
        ("a.city", "a is string, which has no fields"),
        ("b[0]", "b` is int, which has no elements"),
        ("tags[a]", "the place in an array is a whole number, got string"),
        ("array()", r"write cast\(array\(\) as array<string>\)"),
        ("struct(b, b)", "has two fields 'b'"),
        ("array(struct(b, b))", "has two fields 'b'"),
        ("named_struct('x', a, 'x', b)", "has two fields 'x'"),
        ("map('x', a, 'y')", "takes pairs"),
        ("upper(tags)", r"UPPER\(`tags`\): Spark does not take array<string> here"),
        ("year(v)", "does not take double here"),
        ("size(a)", "does not take string here"),
        ("tags + 1", r"does not take array<string> and int here"),
        ("NOT v", "does not take double here"),
        ("a AND tags", "does not take string and array<string> here"),
        ("CASE WHEN b THEN 1 END", "does not take int here"),
        ("CASE WHEN b > 1 THEN 1 ELSE tags END", "does not take int and array<string> here"),
        ("if(b, 1, 2)", "does not take int here"),
        ("coalesce(b, tags)", "does not take int and array<string> here"),
        ("cast(tags AS int)", "does not take array<string> and int here"),
        ("tags IN (1, 2)", "does not take array<string> and int here"),
        ("tags = b", "does not take array<string> and int here"),
        ("at + at", "does not take timestamp and timestamp here"),
        ("at + 1", "does not take timestamp and int here"),
        ("9" * 41, "has 41 digits; a decimal has 38 at most"),
        ("1e400", "is no double"),
    ],
)
def test_what_spark_would_refuse_is_refused_without_it(item, why):
    with pytest.raises((BadExpression, WrongType), match=why):
        sql(f"SELECT {item} AS x FROM t")
    with pytest.raises((BadExpression, WrongType), match=why):
        T.select(x=item)


@pytest.mark.parametrize(
    "item",
    [
        "extract(dow FROM at)",
        "date_part('qtr', at)",
        "timestampadd(QUARTER, 1, at)",
        "date_format(at, \"yyyy-MM-dd'T'HH:mm:ss.SSSXXX\")",
        "to_char(b, '999')",
        "coalesce(tags, array())",
        "to_json(struct(b, b))",
        "concat(a, b)",
        "concat(tags, array(a))",
        "transform(tags, b -> upper(b))",
        "a = b || ''",
        "at - INTERVAL '1 day 2 hours'",
        "at + INTERVAL 1 WEEK",
        "at - at",
        "array_contains(array(1, 2), b)",
        "element_at(tags, 1)",
        "CASE b WHEN 1 THEN a ELSE NULL END",
        "b IN (1, 2.5)",
        "at > '2020-01-01'",
        "date_add(at, 1)",
        "substring(b, 1, 2)",
    ],
)
def test_what_spark_takes_is_taken(item):
    assert T.select(x=item).schema.names == ("x",)


def test_a_null_without_a_type_cannot_be_kept():
    for text in (
        "SELECT max(coalesce(NULL, NULL)) AS n FROM t [RANGE 5 MINUTES]",
        "SELECT count(*) AS n FROM t GROUP BY NULL",
    ):
        with pytest.raises(WrongType, match=r"which has no type; write cast\(.* as int\)"):
            sql(text)
    counted = sql("SELECT count(NULL) AS n, count(DISTINCT NULL) AS m FROM t")
    assert counted == sql(
        "SELECT count(cast(NULL AS int)) AS n, count(DISTINCT cast(NULL AS int)) AS m FROM t"
    )


def test_containers_take_what_they_hold():
    nested = ps.stream(
        "n", "at timestamp, l array<array<int>>, m array<map<string,int>>, i array<int>", time="at"
    )
    for item in ("array_contains(l, i)", "array_append(l, i)", "array_append(m, m[0])", "element_at(m, 1)"):
        assert nested.select(x=item).schema.names == ("x",)
