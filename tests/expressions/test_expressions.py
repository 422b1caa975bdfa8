import pytest

from penstock.errors import BadExpression, UnknownColumn, WrongType
from penstock.expressions.scalar import predicate, scalar
from penstock.expressions.schema import Schema

SCHEMA = Schema.parse(
    "time timestamp not null, Speed double, n int not null, s smallint, f float, d decimal(10,2), k string, "
    "date date, items array<int>, place struct<city:string>, `odd name` int"
)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("speed*2", "`Speed` * 2"),
        ("date", "`date`"),
        ("`odd name` + 1", "`odd name` + 1"),
        ("place.city", "`place`.`city`"),
        ("k = 'it''s'", r"`k` = 'it\'s'"),
        ("k rlike '\\\\d'", r"`k` RLIKE '\\d'"),
        ("date_format(time, 'EEEE HH:mm')", "DATE_FORMAT(`time`, 'EEEE HH:mm')"),
        ("transform(items, x -> x + n)", "TRANSFORM(`items`, x -> x + `n`)"),
        ("timestampdiff(second, time, time)", "TIMESTAMPDIFF(SECOND, `time`, `time`)"),
        ("time - interval 1 hour 30 minutes", "`time` - (INTERVAL '1' HOUR + INTERVAL '30' MINUTES)"),
        ("n -- a comment", "`n`"),
    ],
)
def test_text_for_spark(text, sql):
    assert scalar(text, SCHEMA).sql == sql


@pytest.mark.parametrize("text", ["speed * 2 + n", "k = 'it''s'", "time - interval 1 hour 30 minutes"])
def test_text_for_spark_is_read_back_as_itself(text):
    once = scalar(text, SCHEMA)
    assert scalar(once.sql, SCHEMA) == once


# The types that Spark 4 gives, None where the rules leave it to Spark.
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("speed + n", "double"),
        ("n + s", "int"),
        ("f + f", "float"),
        ("f + n", None),
        ("n * 1.5", "decimal(13,1)"),
        ("d * d", "decimal(21,4)"),
        ("n / 2", "double"),
        ("n div 2", "bigint"),
        ("1.50", "decimal(3,2)"),
        ("3000000000", "bigint"),
        ("1e3", "double"),
        ("year(time)", "int"),
        ("floor(speed)", "bigint"),
        ("floor(d)", "decimal(9,0)"),
        ("upper(k)", "string"),
        ("k || ':'", "string"),
        ("concat(k, n)", None),
        ("n > 1 and k is null", "boolean"),
        ("coalesce(n, 0)", "int"),
        ("case when n > 1 then k end", "string"),
        ("if(n > 1, n, speed)", "double"),
        ("cast(k as long)", "bigint"),
        ("date_trunc('hour', time)", "timestamp"),
        ("items[0]", None),
        ("place.city", None),
        ("zip_with(items, items, (a, b) -> a + b)", None),
    ],
)
def test_types(text, kind):
    assert scalar(text, SCHEMA).type == kind


@pytest.mark.parametrize(
    ("text", "nullable"),
    [("n", False), ("k", True), ("1", False), ("coalesce(k, 'x')", False), ("n > 1", False), ("n / 2", True)],
)
def test_nullable_unless_certain(text, nullable):
    assert scalar(text, SCHEMA).nullable is nullable


def test_columns_in_order_of_first_use():
    assert scalar("speed + n * SPEED", SCHEMA).columns == ("Speed", "n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("count(*)", "is an aggregate"),
        ("1 + max(n)", "is an aggregate"),
        ("sum(n) over (order by n)", "window functions|aggregate"),
        ("row_number()", "window functions"),
        ("(select 1)", "subqueries"),
        ("n in (select 1)", "subqueries"),
        ("explode(items)", "makes several rows"),
        ("*", "name the columns"),
        (":p", "parameters"),
        ("(n, k)", "more than one value"),
        ("array(1)[0]", "element_at"),
        ("n as m", "not expected"),
        ("n; k", "expected one"),
        ("'open", "not closed"),
        ("pow(n,, 2)", "missing"),
        ("pow(n, )", "missing"),
        ("n > > 1", "not expected"),
        ("k = 'a' 'b'", "two adjacent strings"),
    ],
)
def test_refuses(text, reason):
    with pytest.raises(BadExpression, match=reason):
        scalar(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "rand()",
        "uuid()",
        "now()",
        "current_timestamp",
        "current_date()",
        "unix_timestamp()",
        "input_file_name()",
    ],
)
def test_refuses_what_a_replay_would_change(text):
    with pytest.raises(BadExpression, match="replayed"):
        scalar(text, SCHEMA)


def test_a_syntax_error_shows_its_place():
    with pytest.raises(BadExpression) as caught:
        scalar("n + 1\nand speed )", SCHEMA)
    assert str(caught.value).endswith("\n  and speed )\n            ^")


@pytest.mark.parametrize("text", ["sped > 1", "other.k", "items[m]"])
def test_unknown_columns(text):
    with pytest.raises(UnknownColumn):
        scalar(text, SCHEMA)


def test_a_number_is_no_predicate():
    with pytest.raises(WrongType, match="'n' of type int"):
        predicate("n", SCHEMA)


def test_a_predicate_of_unknown_type_is_left_to_spark():
    assert predicate("try_element_at(map('a', n), 'a')", SCHEMA).type is None


def test_a_thing_that_is_no_text():
    with pytest.raises(BadExpression, match="put it in quotes"):
        scalar(3, SCHEMA)
