"""What a channel and Spark make of the same expressions."""

from functions.values import ERROR, TYPES, channel_values, plain, raises_in_spark, spark_values
from penstock.functions import Uncertified

MOST_RAISING = 8


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
    some = [text for text in here if raising[text]]
    # A job each, so only some of them.
    return wrong + [
        f"{text} raises in a channel and not in Spark, row {raising[text][0]}"
        for text in some[:: max(1, len(some) // MOST_RAISING)]
        if not raises_in_spark(frame, text, raising[text][0])
    ]
