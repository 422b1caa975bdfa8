"""One meaning: an expression has the type and the values that Spark gives it, wherever it stands."""

import random

import pytest

import penstock as ps
from functions.calls import calls_of, casts
from functions.compositions import compositions
from functions.places import Values, as_column, collected, guarded
from functions.values import (
    ERROR,
    TYPES,
    channel_values,
    frame_of,
    listed,
    plain,
    spark_values,
    table_of_values,
)
from penstock.expressions.types import from_arrow
from penstock.functions import FUNCTIONS, Uncertified, translated
from sessions import interpreting

SEED = 20261118
ROWS = 24
MOST_CONJUNCTS = 100
ROW_IN, L_ROW_IN = "case when row in", "case when l.row in"
# Not certified: Spark evaluates them before the next exchange or over results; a condition refuses them.
ONLY_SPARK = """
    exp(double_0)
    ln(double_0)
    log10(double_0)
    log(2, double_0)
    cbrt(double_0)
    pow(double_0, 3)
    sin(double_0)
    round(double_0, 2)
    bround(double_0, 1)
    lower(string_0)
    upper(string_0)
    initcap(string_0)
    format_string('%s-%d', string_0, int_1)
    regexp_replace(string_0, '[a-c]+', '-')
    string_0 rlike 'a.*b'
    string_0 ilike 'A%'
    string_0 like 'a\\\\%b'
    substring_index(string_0, ',', 2)
    levenshtein(string_0, string_1)
    soundex(string_0)
    base64(cast(string_0 as binary))
    hash(string_0, int_1)
    xxhash64(double_0)
    crc32(string_0)
    date_format(timestamp_0, 'yyyy-MM-dd HH:mm:ss.SSS')
    months_between(timestamp_0, timestamp_1)
    next_day(date_0, 'MON')
    from_utc_timestamp(timestamp_0, 'America/New_York')
    decimal_10_2__0 * decimal_10_2__1
    decimal_10_2__0 * 1.1
    cast(double_0 as string)
    cast(float_0 as string)
    shiftleft(int_0, 3)
    conv(string_0, 16, 10)
    size(split(string_0, ','))
    array_contains(array(int_0, 1, null), 1)
    named_struct('a', int_0).a
    concat(string_0, int_1)
""".strip()


def _texts(chance):
    """Calls over every function, and of each a few forms."""
    found = []
    for each in FUNCTIONS.values():
        calls = list(calls_of(each, chance))
        found += chance.sample(calls, min(2, len(calls)))
    return list(dict.fromkeys([*found, *casts()]))


@pytest.fixture(scope="module")
def interpreted(spark):
    with interpreting(spark):
        yield spark


@pytest.fixture(scope="module")
def given(interpreted):
    table = table_of_values(random.Random(SEED), ROWS)
    return table, frame_of(interpreted, table)


def _judged(texts, table, frame):
    """What Spark says of expressions: the guarded text, the type and the values."""
    raising = {}
    for text in texts:
        try:
            values = channel_values(text, table)[1]
        except Uncertified:
            values = []
        raising[text] = [row for row, value in enumerate(values) if value == ERROR]
    types, values = spark_values(frame, texts, raising)
    wrong = [text for text in texts if ERROR in values[text]]
    assert not wrong, f"Spark raises for {wrong}"
    return {
        f"v{place}": (guarded(text, raising[text]), types[text], values[text])
        for place, text in enumerate(texts)
    }


def _compare(relation, judged, spark):
    declared = {each.name: each.type for each in relation.schema.columns}
    found = collected(relation, spark)
    wrong = []
    for name, (text, kind, values) in judged.items():
        if from_arrow(found.schema.field(name).type) != kind:
            wrong.append(f"{text} is {kind} in Spark, and {found.schema.field(name).type} here")
        if declared[name] not in {None, kind}:
            wrong.append(f"{text} is {kind} in Spark, and declared {declared[name]}")
        ours = listed(found[name])
        if list(map(plain, ours)) != list(map(plain, values)):
            wrong.append(f"{text}: {values} in Spark, {ours} here")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("place", ["prefix", "window", "join"])
@pytest.mark.parametrize("part", ["functions", "compositions", "only Spark"])
def test_an_expression_gives_what_spark_gives(place, part, given, interpreted):
    print("seed", SEED)  # noqa: T201 -- a failure shows it
    chance = random.Random(f"{SEED} {part}")
    texts = {
        "functions": lambda: _texts(chance),
        "compositions": lambda: compositions(60, chance),
        "only Spark": lambda: [each.strip().replace("\\\\", "\\") for each in ONLY_SPARK.splitlines()],
    }[part]()
    judged = _judged(list(dict.fromkeys(texts)), *given)
    columns = {name: text for name, (text, _, _) in judged.items()}
    _compare(getattr(Values(given[0]), place)(columns), judged, interpreted)


@pytest.mark.parametrize("part", ["functions", "compositions"])
def test_a_condition_gives_what_spark_gives(part, given, interpreted):
    print("seed", SEED)  # noqa: T201 -- a failure shows it
    chance = random.Random(f"{SEED} {part}")
    texts = _texts(chance) if part == "functions" else compositions(60, chance)
    # The translation of values that may raise in IN or BETWEEN is left to Spark, and so refused here.
    judged = _judged([each for each in dict.fromkeys(texts) if _is_certified(each)], *given)
    names = list(judged)
    for first in range(0, len(names), MOST_CONJUNCTS):
        some = {name: judged[name] for name in names[first : first + MOST_CONJUNCTS]}
        expected = {name: as_column(values, kind) for name, (_, kind, values) in some.items()}
        text = " and ".join(
            f"({text.replace(ROW_IN, L_ROW_IN)}) <=> {name}" for name, (text, _, _) in some.items()
        )
        found = collected(Values(given[0]).condition(text, expected), interpreted)
        assert found["row"].to_pylist() == list(range(ROWS)), text


def _is_certified(text):
    try:
        translated(text, TYPES)
    except Uncertified:
        return False
    return True


@pytest.mark.parametrize("text", [each.strip() for each in ONLY_SPARK.splitlines()])
def test_what_only_spark_can_evaluate_is_refused_in_a_condition(text, given):
    values = Values(given[0])
    with pytest.raises(ps.errors.PenstockError, match=r"select|cast|Spark"):
        values.condition(f"({text}) is not null", {})
