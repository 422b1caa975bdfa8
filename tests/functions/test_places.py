"""One meaning: an expression has the type and the values that Spark gives it, wherever it stands.

Every function, every cast and random compositions of depth two and three, in four places of a query: before a
stage, behind a window, behind a join, and in the condition of a join. A run of Spark takes seconds, however
few its columns, so hundreds of expressions share one.
"""

import random
from functools import cache

import pytest

from functions.calls import calls_of, casts
from functions.compositions import compositions
from functions.judging import judged
from functions.places import Values, as_column, collected
from functions.values import frame_of, listed, plain, table_of_values
from penstock.compile import cut
from penstock.errors import BadJoin
from penstock.expressions.types import from_arrow
from penstock.functions import FUNCTIONS
from penstock.query import Query
from sessions import interpreting

SEED = 20261118
ROWS = 24
# The soak has more than 5,000 different ones.
COMPOSITIONS, IN_SOAK = 200, 650
PARTS = [0, *(pytest.param(each, marks=pytest.mark.soak) for each in range(1, 10))]
MOST_CONJUNCTS = 150
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
    cast(1.9 as bigint)
    int_0 not in (1, 2, null)
    cast(float_0 as string)
    shiftleft(int_0, 3)
    conv(string_0, 16, 10)
    size(split(string_0, ','))
    array_contains(array(int_0, 1, null), 1)
    named_struct('a', int_0).a
    concat(string_0, int_1)
    if(length(string_0) < -1, date_add(make_date(0, 100, 100), int_1 % 100), date_0)
    coalesce(length(string_0), 3, 100 div 0)
""".strip()


def _texts(part):
    """Random compositions; first of all also calls of every function, every cast and what only Spark does."""
    chance = random.Random(f"{SEED} {part}")
    if part:
        return compositions(IN_SOAK, chance)
    found = compositions(COMPOSITIONS, chance)
    for each in FUNCTIONS.values():
        calls = list(calls_of(each, chance))
        found += chance.sample(calls, min(2, len(calls)))
    return [*found, *casts(), *(each.strip().replace("\\\\", "\\") for each in ONLY_SPARK.splitlines())]


class Batch:
    """Expressions with what Spark says of them, apart by whether a channel may evaluate them."""

    def __init__(self, part, spark):
        self.table = table_of_values(SEED + part, ROWS)
        every, self.wrong = judged(_texts(part), frame_of(spark, self.table), self.table)
        self.certified = [each for each in every if each.translated]
        self.left_to_spark = [each for each in every if not each.translated]


@pytest.fixture(scope="module")
def batch_of(spark):
    print("seed", SEED)  # noqa: T201 -- a failure shows it
    with interpreting(spark):
        yield cache(lambda part: Batch(part, spark))


@pytest.fixture
def batch(batch_of, part):
    return batch_of(part)


over_parts = pytest.mark.parametrize("part", PARTS)
over_places = pytest.mark.parametrize("place", ["prefix", "window", "join"])


@over_parts
def test_a_channel_gives_and_raises_what_spark_does(batch):
    assert not batch.wrong, "\n".join(batch.wrong)
    assert len(batch.certified) > 0.9 * COMPOSITIONS, "too few of them are certified to show anything"


@over_parts
@over_places
def test_a_certified_expression_gives_what_spark_gives(place, batch, spark):
    relation = _relation(place, batch.certified, batch.table)
    if place != "prefix":
        # One step without a certificate would take all of them to Spark, and nothing would be shown.
        (feed,) = cut(Query((relation,))).outputs[0]
        assert feed.inside
        assert not feed.outside
    _compare(relation, batch.certified, spark)


@over_parts
@over_places
def test_an_expression_that_is_left_to_spark_gives_what_spark_gives(place, batch, spark):
    if batch.left_to_spark:
        _compare(_relation(place, batch.left_to_spark, batch.table), batch.left_to_spark, spark)


@over_parts
def test_a_condition_gives_what_spark_gives(batch, spark):
    # What may raise comes first: what stands before it would be evaluated twice, to know if it is reached.
    some, wrong = sorted(batch.certified, key=lambda each: not each.translated.raises), []
    for first in range(0, len(some), MOST_CONJUNCTS):
        wrong += _unequal(some[first : first + MOST_CONJUNCTS], batch.table, spark)
    assert not wrong, "\n".join(wrong)


@over_parts
def test_what_only_spark_can_evaluate_is_refused_in_a_condition(batch):
    values = Values(batch.table)
    for each in batch.left_to_spark:
        with pytest.raises(BadJoin, match=r"where pairs meet: .+; make what it needs a column with select"):
            values.condition(f"({each.text}) is not null", {})


def _relation(place, some, table):
    return getattr(Values(table), place)({f"v{at}": each.guarded("row") for at, each in enumerate(some)})


def _compare(relation, some, spark):
    declared = {each.name: each.type for each in relation.schema.columns}
    found = collected(relation, spark)
    wrong = []
    for at, each in enumerate(some):
        name = f"v{at}"
        if from_arrow(found.schema.field(name).type) != each.kind:
            wrong.append(f"{each.text} is {each.kind} in Spark, and {found.schema.field(name).type} here")
        if declared[name] not in {None, each.kind}:
            wrong.append(f"{each.text} is {each.kind} in Spark, and declared {declared[name]}")
        ours = listed(found[name])
        if list(map(plain, ours)) != list(map(plain, each.values)):
            wrong.append(f"{each.text}: {each.values} in Spark, {ours} here")
    assert not wrong, "\n".join(wrong)


def _unequal(some, table, spark):
    """The expressions that, in a condition, are not equal to Spark's values for some pair."""
    expected = {f"v{at}": as_column(each.values, each.kind) for at, each in enumerate(some)}
    text = " and ".join(f"({each.guarded('l.row')}) <=> v{at}" for at, each in enumerate(some))
    try:
        relation = Values(table).condition(text, expected)
    except BadJoin as refused:
        # An expression that is nearly too long to be certified is too long with a comparison around it.
        if len(some) == 1:
            return [] if "this long" in str(refused) else [str(refused)]
    else:
        rows = collected(relation, spark)["row"].to_pylist()
        if rows == list(range(ROWS)):
            return []
        if len(some) == 1:
            return [f"{some[0].text}: as in Spark only for rows {rows}"]
    half = len(some) // 2
    return _unequal(some[:half], table, spark) + _unequal(some[half:], table, spark)
