"""Joins of the query language: the tables of FROM, from left to right, become one relation.

Equalities between the two sides of a JOIN are its keys; everything else is a condition over the pair. A join
does not deliver the event times of its sides, and it delivers the keys of an outer join only merged. If the
statement reads one of these after the join, a copy passes through it under a hidden name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.errors import BadDuration, BadJoin, UnknownColumn
from penstock.expressions.durations import signed_microseconds
from penstock.expressions.pairs import LEFT, RIGHT
from penstock.expressions.parsing import Tree, dotted, render
from penstock.expressions.scalar import is_unit
from penstock.operators import Join, join_of
from penstock.operators.windows import window_of
from penstock.query.relation import Derived, Relation
from penstock.query.sql.clauses import BoundClause
from penstock.query.sql.scope import FromTable, Read, Scope, find, one, reads
from penstock.query.sql.windows import WINDOW_BOUNDS

__all__ = ["JoinClause", "implied", "joined", "joined_with"]


@dataclass(frozen=True)
class JoinClause:
    """One JOIN as written; ``how`` and ``time`` as in ``Relation.join``."""

    how: str
    on: Tree | None
    using: tuple[str, ...]
    bound: BoundClause
    time: str | None = None


@dataclass(frozen=True)
class _OnClause:
    """Pairs of expressions, one over the left side and one over the right, and the remaining conditions."""

    keys: tuple[tuple[Tree, Tree], ...]
    condition: Tree | None


def joined(sources: Sequence[FromTable], joins: Sequence[JoinClause], read: set[Read], written: str) -> Scope:
    """All tables joined; ``read`` are the columns that the rest of the statement reads."""
    scope = Scope.of(sources[0], written)
    for number, clause in enumerate(joins, start=1):
        conditions = [each.on for each in joins[number:] if each.on is not None]
        later = read | reads(conditions, tuple(sources))
        scope = _Step(scope, sources[number], clause, later).scope()
    return scope


def joined_with(scope: Scope, right: FromTable, clause: JoinClause, read: set[Read]) -> Scope:
    """A scope joined with one more table."""
    return _Step(scope, right, clause, read).scope()


def implied(
    left: Sequence[FromTable], right: FromTable, on: Tree | None
) -> tuple[BoundClause, Tree | None] | None:
    """The bound that a condition implies, and the rest of it; None if it implies none.

    Tables with the same windows whose bounds are equal are joined by window. Conditions that compare the
    event times of both sides, from below and from above, say how far apart these are.
    """
    conditions = list(_conjuncts(on))
    equal = [(each, _equal_columns(each)) for each in conditions]
    (first, *more) = left
    if right.function is not None and not more and first.function is not None:
        shared = {name for _, pair in equal for name in WINDOW_BOUNDS if pair == (name, name)}
        if shared != set(WINDOW_BOUNDS):
            return None
        if first.function.clause != right.function.clause or right.function.clause.kind != "window":
            raise BadJoin(
                f"{first.name} and {right.name} are joined by the bounds of their windows, which differ or "
                "are neither tumbling nor sliding; give both the same TUMBLE or HOP"
            )
        rest = [each for each, pair in equal if pair is None or pair[0] not in WINDOW_BOUNDS]
        return BoundClause(window=right.function.clause), exp.and_(*rest) if rest else None
    apart = _apart(conditions, left, right)
    return None if apart is None else (BoundClause(within=f"{apart} microseconds"), on)


def _apart(conditions: Sequence[Tree], left: Sequence[FromTable], right: FromTable) -> int | None:
    """How far apart conditions let the event times of two rows be, in microseconds; None if without bound."""
    found: dict[bool, list[int]] = {True: [], False: []}
    for each in conditions:
        for first, second, least, most in _comparisons(each.unnest()):
            ours, theirs = _moment(first, left, right), _moment(second, left, right)
            if ours is None or theirs is None or ours[0] == theirs[0]:
                continue
            of_left = ours[0]
            distance = theirs[1] - ours[1] if of_left else ours[1] - theirs[1]
            for bounded, lower in ((least, of_left), (most, not of_left)):
                if bounded:
                    found[lower].append(distance)
    if not found[True] or not found[False]:
        return None
    return max(abs(max(found[True])), abs(min(found[False])))


def _comparisons(node: Tree) -> Iterator[tuple[Tree, Tree, bool, bool]]:
    """Two sides, whether the first is at least the second, and whether it is at most that."""
    if isinstance(node, exp.Between):
        yield node.this, node.args["low"], True, False
        yield node.this, node.args["high"], False, True
    elif isinstance(node, (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)):
        equal = isinstance(node, exp.EQ)
        greater = isinstance(node, (exp.GT, exp.GTE))
        yield node.this, node.expression, equal or greater, equal or not greater


def _moment(tree: Tree, left: Sequence[FromTable], right: FromTable) -> tuple[bool, int] | None:
    """Whether an expression is the event time of the left side, or that of the right, plus how much."""
    node, plus = tree.unnest(), 0
    if isinstance(node, (exp.Add, exp.Sub)) and isinstance(node.expression.unnest(), exp.Interval):
        try:
            length = signed_microseconds(render(node.expression.unnest()))
        except BadDuration:
            return None
        plus = length if isinstance(node, exp.Add) else -length
        node = node.this.unnest()
    if not isinstance(node, exp.Column):
        return None
    owners = [
        each
        for each in (*left, right)
        if each.relation.time.lower() == node.name.lower() and (not node.table or node.table in each)
    ]
    return (owners[0] is not right, plus) if len(owners) == 1 else None


def _equal_columns(tree: Tree) -> tuple[str, str] | None:
    """The names of the columns of two tables that a condition says are equal."""
    node = tree.unnest()
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    if not sides or not all(isinstance(each, exp.Column) for each in sides):
        return None
    one_table = bool(sides[0].table) and sides[0].table == sides[1].table
    return None if one_table else (sides[0].name.lower(), sides[1].name.lower())


@dataclass
class _Step:
    """One join under construction; ``added`` columns are computed on each side before it."""

    left: Scope
    right: FromTable
    clause: JoinClause
    later: set[Read]
    added: dict[str, dict[str, str]] = field(default_factory=lambda: {LEFT: {}, RIGHT: {}})

    def scope(self) -> Scope:
        on = _read_on(self.left, self.right, self.clause.on, self.clause.using)
        keys = {self._key(LEFT, one): self._key(RIGHT, other) for one, other in on.keys}
        copies = {read: self._copy(read) for read in sorted(self._lost(keys) & self.later)}
        join, relation = self._joined(keys, on)
        whole = {name.lower(): _using_column(name, self.left) for name in self.clause.using}
        whole = {**self.left.whole, relation.time.lower(): relation.time, **whole}
        whole |= {name: name for name in relation.pinned if name in WINDOW_BOUNDS}
        places = {**self._places(keys, join), **copies}
        sources = (*self.left.sources, self.right)
        if self.clause.how in {"semi", "anti"}:
            # The other side only says which rows stay; nothing of it can be named afterwards.
            sources = self.left.sources
            places = {read: name for read, name in places.items() if read[0] < self._number}
        return Scope(
            sources,
            relation,
            places,
            self.left.written,
            whole,
            self.left.hidden.union(*self.added.values()),
        )

    @property
    def _number(self) -> int:
        return len(self.left.sources)

    def _key(self, side: str, tree: Tree) -> str:
        """The key column of a side; a time or an expression is copied, since keys are columns."""
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
        """The columns that the join does not deliver, or not as the side has them."""
        windowed = self.clause.bound.window is not None
        found = set() if windowed else {(self._number, self.right.relation.time.lower())}
        times = set() if windowed else {self.left.relation.time}
        if self.clause.how in {"left", "full"}:
            found |= {(self._number, name.lower()) for name in keys.values()}
        if self.clause.how in {"right", "full"}:
            times |= keys.keys()
        return found | {read for read, name in self.left.places.items() if name in times}

    def _joined(self, keys: dict[str, str], on: _OnClause) -> tuple[Join, Derived]:
        left, right = (_with(self._of(side), self.added[side]) for side in (LEFT, RIGHT))
        bound, window = self.clause.bound, self.clause.bound.window
        join = join_of(
            left,
            right,
            keys,
            within=bound.within,
            last=bound.last,
            keep=bound.keep,
            window=None if window is None else window_of(window.size, window.slide, window.offset),
            how=self.clause.how,
            time=self.clause.time,
            condition=None if on.condition is None else render(on.condition),
            suffixes=("", self._suffix()),
        )
        return join, left.derive(join, right)

    def _suffix(self) -> str:
        names, suffix = self._names(), f"_{self.right.name}"
        while any(f"{name}{suffix}".lower() in names for name in self.right.relation.schema.names):
            suffix += "_"
        return suffix

    def _places(self, keys: dict[str, str], join: Join) -> dict[Read, str]:
        lost = None if self.clause.bound.window is not None else self.left.relation.time
        ours = {read: name for read, name in self.left.places.items() if name != lost}
        theirs = {(self._number, stored.lower()): name for stored, name in join.right}
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


def _read_on(left: Scope, right: FromTable, on: Tree | None, using: tuple[str, ...]) -> _OnClause:
    """Divide an ON or USING clause; a left column is a key once, more equalities with it are conditions."""
    keys = [_using(name, left, right) for name in using]
    rest: list[Tree] = []
    for each in _conjuncts(on):
        sided = each.copy().transform(lambda node: _sided(node, left, right))
        pair = _pair(sided)
        if pair and not (isinstance(pair[0], exp.Column) and any(pair[0] == key for key, _ in keys)):
            keys.append(pair)
        else:
            rest.append(sided)
    return _OnClause(tuple(keys), exp.and_(*rest) if rest else None)


def _using_column(name: str, left: Scope) -> str:
    """The column of the left side that USING names."""
    node = exp.column(name)
    return left.column(find(node, left.sources), node)


def _using(name: str, left: Scope, right: FromTable) -> tuple[Tree, Tree]:
    if name not in right.relation.schema:
        raise UnknownColumn.among(name, right.relation.schema.names)
    return dotted(_using_column(name, left)), dotted(right.relation.schema.column(name).name)


def _conjuncts(tree: Tree | None) -> Iterator[Tree]:
    # INNER JOIN without a condition parses as ON TRUE.
    if tree is None or (isinstance(tree, exp.Boolean) and tree.this):
        return
    if isinstance(tree, exp.Paren) and isinstance(tree.unnest(), (exp.And, exp.EQ)):
        yield from _conjuncts(tree.unnest())
    elif isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    else:
        yield tree


def _sided(node: Tree, left: Scope, right: FromTable) -> Tree:
    if not isinstance(node, exp.Column) or is_unit(node):
        return node
    sources = (*left.sources, right)
    found = find(node, sources)
    of_right = len(left.sources) in found.owners
    if not found.qualified and not of_right and found.column.lower() in left.whole:
        return dotted(LEFT, left.whole[found.column.lower()], *found.fields)
    owner, column = one(found, node, sources, left.written)
    if owner == len(left.sources):
        return dotted(RIGHT, right.relation.schema.column(column).name, *found.fields)
    return dotted(LEFT, left.places[owner, column], *found.fields)


def _pair(tree: Tree) -> tuple[Tree, Tree] | None:
    if not isinstance(tree, exp.EQ):
        return None
    sides = (_sides(tree.this), _sides(tree.expression))
    if sides == ({LEFT}, {RIGHT}):
        return _bare(tree.this), _bare(tree.expression)
    if sides == ({RIGHT}, {LEFT}):
        return _bare(tree.expression), _bare(tree.this)
    return None


def _sides(tree: Tree) -> set[str]:
    return {each.parts[0].name for each in tree.find_all(exp.Column) if not is_unit(each)}


def _bare(tree: Tree) -> Tree:
    def without_side(node: Tree) -> Tree:
        if not isinstance(node, exp.Column) or is_unit(node):
            return node
        return dotted(*(each.name for each in node.parts[1:]))

    return tree.unnest().copy().transform(without_side)
