"""What Spark makes of expressions, and where a channel makes something else of them."""

from dataclasses import dataclass

from functions.values import ERROR, TYPES, channel_values, plain, raises_in_spark, spark_values
from penstock.functions import Uncertified, translated

MOST_RAISING = 8


@dataclass(frozen=True)
class Judged:
    """An expression with Spark's type and values, which are null for the rows for which it raises."""

    text: str
    kind: str
    values: list
    raising: list
    certified: bool

    def guarded(self, row):
        """The expression, with a null where it raises; `row` is the column with the number of a row."""
        if not self.raising:
            return self.text
        return f"case when {row} in ({', '.join(map(str, self.raising))}) then null else {self.text} end"


def is_certified(text):
    """Whether a channel may evaluate an expression."""
    try:
        translated(text, TYPES)
    except Uncertified:
        return False
    return True


def judged(texts, frame, table):
    """What Spark says of expressions, and a line for each of which a channel says something else.

    An expression that is left to Spark, and raises there for any row, is not among them.
    """
    here = {
        text: channel_values(text, table) if is_certified(text) else None for text in dict.fromkeys(texts)
    }
    raising = {
        text: [row for row, value in enumerate(found[1]) if value == ERROR] if found else []
        for text, found in here.items()
    }
    types, values = spark_values(frame, here, raising)
    every = [
        Judged(text, types[text], values[text], raising[text], found is not None)
        for text, found in here.items()
        if found is not None or ERROR not in values[text]
    ]
    wrong = [line for each in every if each.certified for line in _differences(each, *here[each.text], table)]
    some = [each for each in every if each.raising]
    # A job each, so only some of them.
    wrong += [
        f"{each.text} raises in a channel and not in Spark, row {each.raising[0]}"
        for each in some[:: max(1, len(some) // MOST_RAISING)]
        if not raises_in_spark(frame, each.text, each.raising[0])
    ]
    return every, wrong


def _differences(judged, kind, found, table):
    """Where type and values in a channel are not Spark's: a line for the type, one for the first such row."""
    if kind != judged.kind:
        yield f"{judged.text} is {judged.kind} in Spark, {kind} in a channel"
    for row, (ours, theirs) in enumerate(zip(found, judged.values, strict=True)):
        if ours != ERROR and plain(ours) != plain(theirs):
            given = {name: table[name][row].as_py() for name in TYPES if name in judged.text}
            yield f"{judged.text} of {given} is {theirs!r} in Spark, {ours!r} in a channel"
            return
