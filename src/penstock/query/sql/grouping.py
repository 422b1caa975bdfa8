"""GROUPING SETS, CUBE and ROLLUP: one aggregation of tuples that are repeated for each set of keys.

As Spark does it, each tuple is there once for every set, with the keys that the set leaves out as nulls. The
number of the set is a key more, so that a null of the data is not mistaken for a key that is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from penstock.errors import BadExpression
from penstock.expressions.parsing import Tree, call_name, parse_scalar, render
from penstock.expressions.schema import quoted
from penstock.query.sql.windows import window_name

__all__ = ["Grouping", "is_grouping_call", "sets_of", "windows_apart"]

_Set = tuple[Tree, ...]
_MOST_SETS = 1024
_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)


def windows_apart(group: exp.Group) -> None:
    """Write the windows of a GROUP BY beside its sets of keys, and WITH ROLLUP as ROLLUP(…).

    Raises BadExpression if a set leaves the window out: the results of windows are final, and a total over
    all of them never is.
    """
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(name):
            written = render(group).strip()
            group.set("expressions", [kind(expressions=list(group.expressions))])
            group.set(name, None)
            break
    else:
        written = render(group).strip()
    parts = [each for each in group.expressions if isinstance(each, _SEVERAL)]
    windows = {render(each): each for part in parts for each in part.walk() if window_name(each)}
    if not windows:
        return
    sets = [_flat(each) for each in product(*map(_alternatives, parts))]
    if any(not windows.keys() <= set(map(render, held)) for held in sets):
        (window, *_), keys = windows, dict.fromkeys(render(each) for held in sets for each in held)
        rest = ", ".join(each for each in keys if each not in windows)
        raise BadExpression(
            f"{written} has sets of keys without the window; their totals are never final, so they cannot "
            f"stand beside the results of windows. For totals within each window write GROUP BY {window}"
            f"{f', ROLLUP({rest})' if rest else ''}; ask for those over all windows in a query of their own"
        )
    apart = [exp.Tuple(expressions=[each for each in held if render(each) not in windows]) for held in sets]
    others = [each for each in group.expressions if not isinstance(each, _SEVERAL)]
    group.set("expressions", [*windows.values(), *others, exp.GroupingSets(expressions=apart)])


def sets_of(group: exp.Group | None) -> list[_Set] | None:
    """The sets of keys that a GROUP BY asks for, None if it has keys only."""
    if group is None or not any(isinstance(each, _SEVERAL) for each in group.expressions):
        return None
    found = [_flat(each) for each in product(*map(_alternatives, group.expressions))]
    if len(found) > _MOST_SETS:
        raise BadExpression(
            f"{render(group).strip()} has {len(found)} sets of keys; {_MOST_SETS} are the most"
        )
    return found


def _alternatives(part: Tree) -> list[_Set]:
    if isinstance(part, exp.Rollup):
        keys = [_members(each) for each in part.expressions]
        return [_flat(keys[:count]) for count in range(len(keys), -1, -1)]
    if isinstance(part, exp.Cube):
        keys = [_members(each) for each in part.expressions]
        counts = range(len(keys), -1, -1)
        return [_flat(each) for count in counts for each in combinations(keys, count)]
    if isinstance(part, exp.GroupingSets):
        return [found for each in part.expressions for found in _alternatives(each)]
    return [_members(part)]


def _members(part: Tree) -> _Set:
    """The keys of (a, b), which stand or fall together, or of a key alone."""
    if isinstance(part, exp.Tuple):
        return tuple(each.unnest() for each in part.expressions)
    return (part.unnest(),)


def _flat(parts: Iterable[_Set]) -> _Set:
    return tuple(each for part in parts for each in part)


def is_grouping_call(node: Tree) -> bool:
    """Whether the node asks which keys a result leaves out."""
    return call_name(node) in {"grouping", "grouping_id"}


@dataclass(frozen=True)
class Grouping:
    """The sets of a statement: for each the names of its keys; ``column`` has the number of the set.

    The number has a bit for each key, the first key the highest, which is 1 if the set leaves it out: Spark's
    grouping_id().
    """

    column: str
    keys: tuple[str, ...]
    sets: tuple[frozenset[str], ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of each set."""
        return tuple(sum(1 << self._bit(key) for key in self.keys if key not in held) for held in self.sets)

    def array(self) -> str:
        """The numbers as SQL, of which each makes one copy of a tuple."""
        return f"array({', '.join(f'{number}L' for number in self.numbers)})"

    def keyed(self, keys: Mapping[str, str]) -> dict[str, str]:
        """The number, and each key where its set has it."""
        found = {self.column: quoted(self.column)}
        for name, sql in keys.items():
            numbers = [str(n) for n, held in zip(self.numbers, self.sets, strict=True) if name in held]
            whole = len(numbers) == len(self.sets)
            inside = f"{quoted(self.column)} IN ({', '.join(numbers)})"
            found[name] = sql if whole else f"CASE WHEN {inside} THEN {sql} END"
        return found

    def call(self, node: Tree, names: Sequence[str]) -> Tree:
        """GROUPING(key) or GROUPING_ID(keys) over the results."""
        column = quoted(self.column)
        if call_name(node) == "grouping":
            if len(names) != 1:
                raise BadExpression(f"{render(node)}: GROUPING() takes one key, GROUPING_ID() several")
            return parse_scalar(f"CAST(shiftright({column}, {self._bit(names[0])}) & 1L AS TINYINT)")
        if not names or list(names) == list(self.keys):
            return parse_scalar(column)
        places = range(len(names) - 1, -1, -1)
        bits = [
            f"(shiftright({column}, {self._bit(name)}) & 1L) * {1 << place}L"
            for name, place in zip(names, places, strict=True)
        ]
        return exp.paren(parse_scalar(" + ".join(bits)))

    def _bit(self, key: str) -> int:
        return len(self.keys) - 1 - self.keys.index(key)
