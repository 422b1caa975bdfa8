"""What Spark makes of expressions, and where a channel makes something else of them."""

from dataclasses import dataclass

from functions.values import ERROR, TYPES, channel_values, plain, raises_in_spark, spark_values
from penstock.functions import Translated, Uncertified

MOST_RAISING = 8


@dataclass(frozen=True)
class Judged:
    """An expression with Spark's type and values, which are null for the rows for which it raises.

    `translated` is what a channel evaluates, None if the expression is left to Spark.
    """

    text: str
    kind: str
    values: list
    raising: list
    translated: Translated | None

    def guarded(self, row):
        """The expression, with a null where it raises; `row` is the column with the number of a row."""
        if not self.raising:
            return self.text
        return f"case when {row} in ({', '.join(map(str, self.raising))}) then null else {self.text} end"


def judged(texts, frame, table):
    """What Spark says of expressions, and a line for each of which a channel says something else.

    An expression that is left to Spark, and raises there for any row, is not among them.
    """
    here, left = {}, []
    for text in dict.fromkeys(texts):
        try:
            here[text] = channel_values(text, table)
        except Uncertified:
            left.append(text)
    raising = {
        text: [row for row, value in enumerate(values) if value == ERROR]
        for text, (_, values) in here.items()
    }
    every, wrong = [], []
    for text, (kind, values) in spark_values(frame, list(here), raising).items():
        every.append(Judged(text, kind, values, raising[text], here[text][0]))
        wrong += _differences(every[-1], here[text][1], table)
    # Some raise, and are found by halving, so they are not asked for together with the others.
    found = spark_values(frame, left, {}).items() if left else ()
    every += [Judged(text, kind, values, [], None) for text, (kind, values) in found if ERROR not in values]
    some = [each for each in every if each.raising]
    # A job each, so only some of them.
    wrong += [
        f"{each.text} raises in a channel and not in Spark, row {each.raising[0]}"
        for each in some[:: max(1, len(some) // MOST_RAISING)]
        if not raises_in_spark(frame, each.text, each.raising[0])
    ]
    return every, wrong


def _differences(judged, found, table):
    """Where type and values in a channel are not Spark's: a line for the type, one for the first such row."""
    if judged.translated.type != judged.kind:
        yield f"{judged.text} is {judged.kind} in Spark, {judged.translated.type} in a channel"
    for row, (ours, theirs) in enumerate(zip(found, judged.values, strict=True)):
        if ours != ERROR and plain(ours) != plain(theirs):
            given = {name: table[name][row].as_py() for name in TYPES if name in judged.text}
            yield f"{judged.text} of {given} is {theirs!r} in Spark, {ours!r} in a channel"
            return
