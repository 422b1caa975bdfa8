"""Joins of the query language: the tables of FROM, from left to right, made one relation.

A join does not deliver the sides' own times, and the keys of an outer join only merged; where the
statement reads one of them after the join, a copy of it goes along under a hidden name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.expressions.pairs import LEFT, RIGHT
from penstock.expressions.parsing import Tree, dotted, render
from penstock.query.bound_clause import BoundClause
from penstock.query.joining import Join
from penstock.query.relation import Derived, Relation
from penstock.query.sql_on import OnClause, read_on, using_column
from penstock.query.sql_scope import Read, Scope, Source, reads

__all__ = ["JoinClause", "joined"]


@dataclass(frozen=True)
class JoinClause:
    """One JOIN as written; ``how`` as in ``Relation.join``."""

    how: str
    on: Tree | None
    using: tuple[str, ...]
    bound: BoundClause


def joined(sources: Sequence[Source], joins: Sequence[JoinClause], read: set[Read], written: str) -> Scope:
    """All tables joined; ``read`` is what the rest of the statement reads of them."""
    scope = Scope.of(sources[0], written)
    for number, clause in enumerate(joins, start=1):
        conditions = [each.on for each in joins[number:] if each.on is not None]
        later = read | reads(conditions, tuple(sources))
        scope = _Step(scope, sources[number], clause, later).scope()
    return scope


@dataclass
class _Step:
    """One join while it is put together; ``added`` columns are made on each side before it."""

    left: Scope
    right: Source
    clause: JoinClause
    later: set[Read]
    added: dict[str, dict[str, str]] = field(default_factory=lambda: {LEFT: {}, RIGHT: {}})

    def scope(self) -> Scope:
        on = read_on(self.left, self.right, self.clause.on, self.clause.using)
        keys = {self._key(LEFT, one): self._key(RIGHT, other) for one, other in on.keys}
        copies = {read: self._copy(read) for read in sorted(self._lost(keys) & self.later)}
        relation = self._relation(keys, on)
        whole = {name.lower(): using_column(name, self.left) for name in self.clause.using}
        whole = {**self.left.whole, relation.time.lower(): relation.time, **whole}
        return Scope(
            (*self.left.sources, self.right),
            relation,
            {**self._places(keys, relation), **copies},
            self.left.written,
            whole,
            self.left.hidden.union(*self.added.values()),
        )

    @property
    def _number(self) -> int:
        return len(self.left.sources)

    def _key(self, side: str, tree: Tree) -> str:
        """The column that is the key of a side; a time or an expression is copied, since keys are columns."""
        relation = self._of(side)
        plain = isinstance(tree, exp.Column) and len(tree.parts) == 1
        if plain and tree.name.lower() != relation.time.lower():
            return str(tree.name)
        return self._add(side, "_key", tree)

    def _copy(self, read: Read) -> str:
        number, column = read
        side = RIGHT if number == self._number else LEFT
        source = self.right if side == RIGHT else self.left.sources[number]
        stored = source.relation.schema.column(column).name if side == RIGHT else self.left.places[read]
        return self._add(side, f"{column}_of_{source.name}", dotted(stored))

    def _add(self, side: str, wanted: str, tree: Tree) -> str:
        name = _free(wanted, self._names())
        self.added[side][name] = render(tree)
        return name

    def _lost(self, keys: dict[str, str]) -> set[Read]:
        """What the join does not deliver, or not as the side has it."""
        found = {(self._number, self.right.relation.time.lower())}
        times = {self.left.relation.time}
        if self.clause.how in {"left", "full"}:
            found |= {(self._number, name.lower()) for name in keys.values()}
        if self.clause.how in {"right", "full"}:
            times |= keys.keys()
        return found | {read for read, name in self.left.places.items() if name in times}

    def _relation(self, keys: dict[str, str], on: OnClause) -> Derived:
        left, right = (_with(self._of(side), self.added[side]) for side in (LEFT, RIGHT))
        condition = None if on.condition is None else render(on.condition)
        suffixes = ("", self._suffix())
        bound, how = self.clause.bound, self.clause.how
        if not keys:
            return left.cross(
                right, condition, within=bound.within, last=bound.last, how=how, suffixes=suffixes
            )
        return left.join(
            right,
            keys,
            within=bound.within,
            last=bound.last,
            how=how,
            condition=condition,
            suffixes=suffixes,
        )

    def _suffix(self) -> str:
        names, suffix = self._names(), f"_{self.right.name}"
        while any(f"{name}{suffix}".lower() in names for name in self.right.relation.schema.names):
            suffix += "_"
        return suffix

    def _places(self, keys: dict[str, str], relation: Derived) -> dict[Read, str]:
        assert isinstance(relation.operator, Join)
        time = self.left.relation.time
        ours = {read: name for read, name in self.left.places.items() if name != time}
        theirs = {(self._number, stored.lower()): name for stored, name in relation.operator.right}
        return {**ours, **theirs, **{(self._number, other.lower()): one for one, other in keys.items()}}

    def _of(self, side: str) -> Relation:
        return self.left.relation if side == LEFT else self.right.relation

    def _names(self) -> set[str]:
        """Every name of either side, in lower case."""
        both = (*self.left.relation.schema.names, *self.right.relation.schema.names)
        return {each.lower() for each in (*both, *self.added[LEFT], *self.added[RIGHT])}


def _with(relation: Relation, added: dict[str, str]) -> Relation:
    return relation.select(*relation.schema.names, **added) if added else relation


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name.lower() in taken:
        number += 1
        name = f"{wanted}{number}"
    return name
