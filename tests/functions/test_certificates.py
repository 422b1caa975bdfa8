"""Every form of every function against Spark: type, values and errors, over edge values and random ones."""

import random

import pyarrow as pa
import pytest

from functions.calls import calls_of, casts
from functions.judging import judged
from functions.values import channel_values, frame_of, table_of_values
from penstock.functions import FUNCTIONS
from sessions import interpreting

SEED = 20261117


@pytest.fixture(scope="module")
def interpreted(spark):
    with interpreting(spark):
        yield spark


def _given(spark, rows):
    table = table_of_values(SEED, rows)
    return frame_of(spark, table), table


@pytest.fixture(scope="module")
def many(interpreted):
    return _given(interpreted, 120)


@pytest.mark.parametrize("group", sorted({each.group for each in FUNCTIONS.values()} | {"cast"}))
def test_every_form_has_the_type_the_values_and_the_errors_of_spark(group, many):
    print("seed", SEED)  # noqa: T201 -- a failure shows it
    chance = random.Random(f"{SEED} {group}")
    functions = [each for each in FUNCTIONS.values() if each.group == group]
    texts = (
        list(casts()) if group == "cast" else [text for each in functions for text in calls_of(each, chance)]
    )
    every, wrong = judged(texts, *many)
    assert not wrong, "\n".join(wrong)
    # Where types fit and precisions do not, Spark evaluates; a form that never fits is found elsewhere.
    certified = {each.text for each in every if each.translated}
    assert not [text for text in texts if "decimal" not in text and text not in certified]


def test_the_end_of_a_bigint_as_a_double_is_no_overflow(interpreted):
    """Spark takes 2^63 for the largest bigint; of rows that raise, the test above asks Spark about a few."""
    values = [2.0**63, -(2.0**63), 9.2e18]
    table = pa.table({"double_0": values})
    ours = channel_values("cast(double_0 as bigint)", table)[1]
    theirs = interpreted.createDataFrame([(each,) for each in values], "double_0 double")
    assert ours == [row[0] for row in theirs.selectExpr("cast(double_0 as bigint)").collect()]


# What is no call: literals, intervals, tests, CASE, and texts that stand for times.
FORMS_OF_SQL = """
    cast(-7 as bigint) + bigint_0
    cast(2.5 as double) * double_0
    double_0 * 3.6
    double_0 > -0.1
    3L - int_0
    timestamp_0 + interval 90 minutes
    timestamp_0 - interval '2' day
    timestamp_ntz_0 + interval 1 week
    timestamp_0 - interval '2.500' second
    timestamp_0 + interval '0.000001' second
    timestamp_0 > '2000-02-29 12:34:56.789'
    timestamp_0 between '1970-01-01' and '2024-03-10T07:30:00'
    timestamp_ntz_0 <= '2024-12-30'
    date_0 = '2024-01-31'
    date_0 in ('2000-02-29', '1970-01-01')
    timestamp_0 <=> timestamp'1970-01-01 00:00:00'
    date_0 > date'2000-01-01'
    extract(week from date_0)
    date_part('dow', date_0)
    case int_0 when 1 then 'a' when 2 then 'b' end
    case when int_0 > 1 then int_1 when int_0 < 0 then bigint_0 else 0.5D end
    int_0 not in (1, 2)
    string_0 not like 'a%'
    int_0 not between 1 and 5
    int_0 between int_1 - 1 and int_2 + 1
    int_0 not between tinyint_0 and int_1 * 2
    not (boolean_0 or boolean_1 and boolean_2)
    boolean_0 and null
    int_0 <> 0 and 10 / int_0 > 1
    int_0 = 0 or 10 % int_0 = 1
    int_0 is not null and cast(int_0 as tinyint) > 3
    string_0 is null or length(string_0) > 2
    coalesce(null, int_0, 5)
    nullif(string_0, 'a') || 'it''s'
    decimal_10_2__0 > 100
    decimal_10_2__0 + 1.25
    if(boolean_0, int_0, null)
"""


def test_what_is_no_call_has_the_type_the_values_and_the_errors_of_spark(many):
    texts = [each.strip() for each in FORMS_OF_SQL.strip().splitlines()]
    every, wrong = judged(texts, *many)
    assert not wrong, "\n".join(wrong)
    assert [each.text for each in every if each.translated] == texts
