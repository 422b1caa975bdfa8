"""Every form of every function against Spark: type, values and errors, over edge values and random ones."""

import itertools
import random

import pytest

from functions.values import (
    EDGES,
    ERROR,
    TYPES,
    channel_values,
    names_of,
    plain,
    raises_in_spark,
    spark_values,
    table_of_values,
)
from penstock.functions import CASTS, FUNCTIONS, GROUPS, Uncertified
from sessions import interpreting

SEED = 20261117
ROWS = 150
MOST_COMBINATIONS = 8
DECIMALS = [kind for kind in EDGES if kind.startswith("decimal(")]
UNITS = ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
LITERALS = {
    ("power", 1): ("2",),
    ("pow", 1): ("2",),
    ("pmod", 1): ("1", "7"),
    ("shiftright", 1): ("0", "1", "31"),
    ("sha2", 1): ("256", "0"),
    ("like", 1): ("'a%'", "'%b%'", "'_'", "''"),
    ("date_trunc", 0): ("'YEAR'", "'week'", "'day'", "'hour'", "'quarter'", "'MM'", "'second'", "'minute'"),
    ("trunc", 1): ("'YEAR'", "'week'", "'MM'", "'quarter'"),
}


# Texts of gigabytes, and times that DuckDB does not have, are no part of the certificate: a channel raises there.
BOUNDED = {
    **dict.fromkeys(("repeat", "space", "lpad", "rpad"), "({0} % 40)"),
    **dict.fromkeys(("date_add", "dateadd", "date_sub", "date_from_unix_date"), "({0} % 700000)"),
    **dict.fromkeys(("add_months", "timestampadd"), "({0} % 300)"),
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), "({0} % 100000000000)"),
}


def kinds_of(wanted):
    """The types that a form takes at a place."""
    wanted = wanted.removesuffix("*")
    if wanted == "unit":
        return ["unit"]
    if wanted == "any":
        return list(EDGES)
    found = [
        kind for each in GROUPS.get(wanted, (wanted,)) for kind in (DECIMALS if each == "decimal" else [each])
    ]
    assert found, wanted
    return found


def calls_of(function, chance):
    """Calls of a function in Spark SQL: some for every form, over columns of the types that it takes."""
    for form in function.forms:
        takes = list(form.takes)
        if takes and takes[-1].endswith("*"):
            takes += [takes[-1]] * chance.randint(0, 1)
        combinations = [
            each for each in itertools.product(*map(kinds_of, takes)) if form.result(each) is not None
        ]
        assert combinations, f"no types fit {function.name} {form.takes}"
        for kinds in chance.sample(combinations, min(len(combinations), MOST_COMBINATIONS)):
            choices = []
            for place, kind in enumerate(kinds):
                if kind == "unit":
                    choices.append(UNITS)
                elif place in form.literals:
                    choices.append(LITERALS[function.name, place])
                elif kind in {"int", "bigint"} and function.name in BOUNDED:
                    choices.append((BOUNDED[function.name].format(names_of(kind)[place % 3]),))
                else:
                    choices.append((names_of(kind)[place % 3],))
            for arguments in itertools.product(*choices):
                yield function.call(arguments)


def casts():
    """Every certified cast."""
    for given, wanted in CASTS:
        for kind in DECIMALS if given == "decimal" else [given]:
            yield f"cast({names_of(kind)[0]} as {wanted})"


@pytest.fixture(scope="module")
def frame_and_table(spark):
    chance = random.Random(SEED)
    table = table_of_values(chance, ROWS)
    frame = spark.createDataFrame(table.append_column("row", [list(range(ROWS))])).selectExpr(
        *(f"cast({name} as {kind}) as {name}" for name, kind in TYPES.items()), "row"
    )
    with interpreting(spark):
        yield frame.localCheckpoint(), table


@pytest.mark.parametrize("group", sorted({each.group for each in FUNCTIONS.values()} | {"cast"}))
def test_every_form_has_the_type_the_values_and_the_errors_of_spark(group, frame_and_table):
    print("seed", SEED)
    chance = random.Random(f"{SEED} {group}")
    functions = [each for each in FUNCTIONS.values() if each.group == group]
    texts = (
        list(casts()) if group == "cast" else [text for each in functions for text in calls_of(each, chance)]
    )
    wrong = differences(texts, *frame_and_table)
    assert not wrong, "\n".join(wrong)


def differences(texts, frame, table, *, certified=True):
    """What differs between Spark and a channel, a line for each expression."""
    here = {}
    for text in dict.fromkeys(texts):
        try:
            here[text] = channel_values(text, table)
        except Uncertified:
            # The types fit, but not their precision; a whole form that never fits is found elsewhere.
            assert not certified or "decimal" in text, text
    raising = {
        text: [row for row, value in enumerate(found[1]) if value == ERROR] for text, found in here.items()
    }
    types, values = spark_values(frame, here, raising)
    wrong = []
    for text, (kind, found) in here.items():
        if kind != types[text]:
            wrong.append(f"{text} is {types[text]} in Spark, {kind} in a channel")
        for row, (ours, theirs) in enumerate(zip(found, values[text], strict=True)):
            if ours != ERROR and plain(ours) != plain(theirs):
                given = {name: table[name][row].as_py() for name in TYPES if name in text}
                wrong.append(f"{text} of {given} is {theirs!r} in Spark, {ours!r} in a channel")
                break
        wrong += [
            f"{text} raises in a channel and not in Spark, row {row}"
            for row in raising[text][:1]
            if not raises_in_spark(frame, text, row)
        ]
    return wrong
