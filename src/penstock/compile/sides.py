"""To which input of a join a condition on its result can go, the result staying the same.

Within a distance of time, a condition on the columns of a side goes to that side if the side has no rows to
lose: both sides of an inner join, the preserved side of a left or right one. A condition on keys alone goes
to both sides of any join, since rows of equal keys fare alike. With a bound of the last rows only whole keys
may go: without a row, an older one would come into the window.
"""

from penstock.compile.conditions import substituted
from penstock.query import Expression, Join, Schema, quoted

__all__ = ["sides_of"]

_LEFT, _RIGHT = 0, 1
# The sides of which no row comes out without passing a condition on its own columns.
_TAKERS = {"inner": (_LEFT, _RIGHT), "left": (_LEFT,), "right": (_RIGHT,), "full": ()}


def sides_of(join: Join, condition: Expression, left: Schema, right: Schema) -> dict[int, Expression]:
    """The condition as each side that takes it has to read it; empty if it has to stay after the join."""
    read = set(condition.columns)
    keys = {key.left for key in join.keys}
    meanings = _meanings(join, left, right)
    if read <= keys:
        found = [
            substituted(condition, each, side) for each, side in zip(meanings, (left, right), strict=True)
        ]
        return {place: each for place, each in enumerate(found) if each} if all(found) else {}
    if join.last is not None:
        return {}
    for place in _TAKERS[join.how]:
        if found_here := substituted(condition, meanings[place], (left, right)[place]):
            return {place: found_here}
    return {}


def _meanings(join: Join, left: Schema, right: Schema) -> tuple[dict[str, str], dict[str, str]]:
    """What the columns of the result are in terms of each side."""
    ours = {name: quoted(stored) for stored, name in join.left}
    theirs = {name: quoted(stored) for stored, name in join.right}
    for key in join.keys:
        for names, stored, schema in ((ours, key.left, left), (theirs, key.right, right)):
            given = schema.column(stored).type
            if given is not None and given == key.type:
                names[key.left] = quoted(stored)
            elif given is not None and key.type is not None:
                names[key.left] = f"CAST({quoted(stored)} AS {key.type})"
    return ours, theirs
