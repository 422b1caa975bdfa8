"""Calls of every certified function in Spark SQL, over the columns of the table of values."""

import itertools

from functions.values import EDGES, names_of
from penstock.functions import CASTS, GROUPS

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


# Texts of gigabytes and times that DuckDB does not have are no part of a certificate: a channel raises there.
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
