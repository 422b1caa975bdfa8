"""Random expressions of certified functions, typed from the inside out."""

import itertools
import re
from collections import defaultdict
from functools import cache

from functions.calls import BOUNDED, LITERALS, UNITS, kinds_of
from functions.values import EDGES, names_of
from penstock.functions import FUNCTIONS

MOST_OF_A_FORM = 12
_NESTED = re.compile(r"\([^)]*\(")
NUMBERS = ("0", "1", "-1", "2", "7", "100")
CONSTANTS = {
    "int": NUMBERS,
    "bigint": tuple(f"{each}L" for each in NUMBERS),
    "double": ("0.5D", "-2.5D", "1e3D"),
    "string": ("'a'", "''", "'é, x'"),
    "boolean": ("true", "false"),
    "date": ("date'2024-02-29'",),
    "timestamp": ("timestamp'2024-03-10 07:30:00'",),
}


@cache
def _makers():
    """Ways to make a value of a type: a function, its form and the types of its arguments."""
    found = defaultdict(list)
    for function in FUNCTIONS.values():
        for form in function.forms:
            every = list(itertools.product(*map(kinds_of, form.takes)))
            step = max(1, len(every) // MOST_OF_A_FORM)
            for kinds in every[::step]:
                made = form.result(kinds)
                if made in EDGES:
                    found[made].append((function, form, kinds))
    return dict(found)


def expression(kind, depth, chance):
    """A random expression of a type."""
    makers = _makers().get(kind)
    if depth == 0 or not makers or chance.random() < 0.1:
        if kind in CONSTANTS and chance.random() < 0.25:
            return chance.choice(CONSTANTS[kind])
        return chance.choice(names_of(kind))
    function, form, kinds = chance.choice(makers)
    arguments = []
    for place, each in enumerate(kinds):
        if each == "unit":
            arguments.append(chance.choice(UNITS))
        elif place in form.literals:
            arguments.append(chance.choice(LITERALS[function.name, place]))
        else:
            inner = expression(each, depth - 1, chance)
            bounded = each in {"int", "bigint"} and function.name in BOUNDED
            arguments.append(BOUNDED[function.name].format(inner) if bounded else inner)
    return function.call(arguments)


def compositions(count, chance):
    """Different random expressions of any type: calls within calls, up to three deep."""
    found = {}
    while len(found) < count:
        text = expression(chance.choice(list(EDGES)), chance.randint(2, 3), chance)
        # Every call and every operator has parentheses, a column or a literal has none.
        if _NESTED.search(text):
            found[text] = None
    return list(found)
