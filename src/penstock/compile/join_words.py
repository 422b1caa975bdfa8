"""A join in words: its bound, what its channels keep and until when, and what becomes of lone rows."""

from penstock.query import Join, words

__all__ = ["join_words"]


def join_words(join: Join) -> list[str]:
    """What the channels of a join do."""
    lines = [f"pairs: {_pairs(join)}"]
    if join.condition:
        lines.append(f"  of these, where {join.condition} is true")
    lines.append(f"state: {_state(join)}")
    if join.how != "inner":
        sides = "either side" if join.how == "full" else f"the {join.how} side"
        lines.append(f"outer: a row of {sides} without a partner is delivered when it can match no more")
    return lines


def _pairs(join: Join) -> str:
    alike = f"equal {', '.join(key.left for key in join.keys)}" if join.keys else "any two rows"
    if join.within is not None:
        return f"{alike}, at most {words(join.within)} apart; the time of a pair is that of its earlier row"
    return (
        f"{alike}, a row with the last {join.last} of the other side before it, at the time of the later row"
    )


def _state(join: Join) -> str:
    if join.within is not None:
        return (
            "the rows of both sides in segments, new ones matched against kept ones; a row goes when the "
            f"frontier of the other side has passed its time by more than {words(join.within)}"
        )
    each = "of every key, for as long as the run lasts" if join.keys else "for as long as the run lasts"
    return f"the last {join.last} rows of each side {each}; those that later rows precede go"
