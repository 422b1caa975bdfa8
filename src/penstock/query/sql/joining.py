"""The joins of a FROM clause, one after the other, and the columns that each table becomes.

Equalities between the two sides of a JOIN are its keys; everything else is a condition over the pair. A join
delivers two equal keys as one column, the time of an input that is a pair itself not at all. If the statement
reads what a join does not deliver, a copy passes through it under a hidden name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.errors import BadJoin, UnknownColumn
from penstock.expressions.durations import microseconds
from penstock.expressions.pairs import LEFT, RIGHT
from penstock.expressions.parsing import Tree, dotted, parse_scalar, render
from penstock.expressions.scalar import scalar
from penstock.expressions.schema import quoted
from penstock.operators import Join, join_of
from penstock.operators.joins.node import PAIR_TIME
from penstock.operators.windows import window_of
from penstock.query.relation import Derived, Relation
from penstock.query.sql.clauses import BoundClause
from penstock.query.sql.reach import Reach, reach_of, unknown_lengths
from penstock.query.sql.scope import MERGED, USUAL, FromTable, Names, Read, Scope, found_in, reads
from penstock.query.sql.windows import WINDOW_BOUNDS, conjuncts

__all__ = ["JoinClause", "equal_reads", "joined"]

_FLOATS = ("float", "double")


@dataclass(frozen=True)
class JoinClause:
    """One JOIN as written, names resolved; ``how`` and ``time`` as in ``Relation.join``.

    Without a bound the condition has to imply one, or the join is refused with ``unbound``.
    """

    right: FromTable
    how: str
    on: Tree | None
    using: tuple[str, ...]
    bound: BoundClause | None
    unbound: str
    time: str | None = None

    @property
    def one_sided(self) -> bool:
        """Whether the result is rows of the left side, which have a partner or have none."""
        return self.how in {"semi", "anti"}

    @property
    def by_pair_time(self) -> bool:
        """Whether its bound is a distance from the time of what is on its left."""
        bound = self.bound
        return bound is not None and bound.distance is not None


@dataclass(frozen=True)
class _OnClause:
    """Pairs of expressions, one over the left side and one over the right, and the remaining conditions."""

    keys: tuple[tuple[Tree, Tree], ...]
    condition: Tree | None


def joined(scope: Scope, joins: Sequence[JoinClause], read: set[Read]) -> Scope:
    """The scope joined with more tables; ``read`` are the columns that the rest of the statement reads."""
    for number, clause in enumerate(joins, start=1):
        later = reads(each.on for each in joins[number:] if each.on is not None)
        using = {name.lower() for each in joins[number:] for name in each.using}
        named = {place for place in scope.places if place[1] in using}
        usual = any(each.by_pair_time for each in joins[number:])
        scope = _Step(scope, clause.right, clause, read | later | named, usual).scope()
    return scope


@dataclass
class _Step:
    """One join under construction; ``added`` columns are computed on each side before it.

    If a later join needs the ``usual`` time of pairs and these carry another, it is a column of the result.
    """

    left: Scope
    right: FromTable
    clause: JoinClause
    later: set[Read]
    usual: bool
    added: dict[str, dict[str, str]] = field(default_factory=lambda: {LEFT: {}, RIGHT: {}})

    def scope(self) -> Scope:
        on = self._on()
        bound, reach = self._bound()
        keys = {self._key(LEFT, one): self._key(RIGHT, other) for one, other in on.keys}
        copies = {read: self._copy(read) for read in sorted(self._lost(keys) & self.later)}
        timed = self.usual and self.clause.time is not None
        times = [self._time_of(side) for side in (LEFT, RIGHT)] if timed else []
        join, relation = self._joined(keys, on, bound)
        hidden = self.left.hidden.union(*self.added.values())
        if self.clause.one_sided:
            # The other side only says which rows stay; nothing of it can be named afterwards.
            places = {**self.left.places, **copies}
            return Scope(self.left.tables, relation, places, self.left.written, hidden, self.left.spans)
        places = {**self._places(keys, join), **copies}
        tables = (*self.left.tables, self.right)
        ours = {USUAL[0]: (0, 0), **self.left.spans} if timed else self.left.spans
        spans = {} if reach is None else reach.spans(ours, self.right.number, join.how, join.times)
        found = Scope(tables, relation, places, self.left.written, hidden, spans)
        return self._with_usual(found, times) if timed else found

    def _with_usual(self, found: Scope, times: Sequence[str]) -> Scope:
        """The scope with a column more, made of these times of both sides."""
        name = _free("_usual", {each.lower() for each in found.relation.schema.names})
        # A row without a partner has one time alone, and these functions skip nulls.
        bound = self.clause.bound
        function = "least" if bound is None or bound.within is not None else "greatest"
        made = {name: f"{function}({', '.join(map(quoted, times))})"}
        both = [found.spans[each] for each in (USUAL[0], self.right.number) if found.spans]
        span = {USUAL[0]: (min(low for low, _ in both), max(high for _, high in both))} if both else {}
        return replace(
            found,
            relation=_with(found.relation, made),
            places={**found.places, USUAL: name},
            hidden=found.hidden | {name},
            spans={**found.spans, **span},
        )

    def _time_of(self, side: str) -> str:
        """A column with the event time of a side, of pairs their usual one."""
        if side == LEFT and USUAL in self.left.places:
            return self.left.places[USUAL]
        return self._add(side, "_time", dotted(self._own_time(side)))

    def _own_time(self, side: str) -> str:
        relation = self._of(side)
        if relation.time not in relation.schema:
            raise BadJoin(
                f"the bound of a join goes by {PAIR_TIME} and windows by the time of a table, so all times "
                f"are needed, and a sub-query leaves {relation.time!r} out; select it there"
            )
        return relation.time

    def _bound(self) -> tuple[BoundClause, Reach | None]:
        """The bound of the join, and how far apart the times of its sides are if that is bounded."""
        implied = reach_of(self.left, self.right, self.clause.on)
        bound = self.clause.bound
        if bound is None and implied is not None:
            return BoundClause(within=f"{implied.apart} microseconds"), implied
        if bound is None:
            lengths = unknown_lengths(self.clause.on)
            why = f"; {', '.join(lengths)} has no fixed length that is known" if lengths else ""
            raise BadJoin(f"{self.clause.unbound}{why}")
        if bound.window is not None:
            size = microseconds(bound.window.size)
            return bound, Reach(1 - size, size - 1)
        if bound.distance is None:
            return bound, implied
        far = microseconds(bound.distance)
        reach = Reach(-far, far)
        if USUAL in self.left.places:
            # Pairs carry another time, so it reaches farther and a condition compares with the usual one.
            if USUAL[0] not in self.left.spans:
                raise BadJoin(
                    f"JOIN {self.right.name} goes by {PAIR_TIME}, which may be any time away from the one "
                    "that windows go by; bound the joins before it in time, or let windows go by pair_time"
                )
            low, high = self.left.spans[USUAL[0]]
            reach = Reach(low - far, high + far)
            bound = BoundClause(within=f"{reach.apart} microseconds")
        least, most = (reach.least, reach.most) if implied is None else (implied.least, implied.most)
        return bound, Reach(max(reach.least, least), min(reach.most, most))

    def _key(self, side: str, tree: Tree) -> str:
        """The key column of a side; an expression is computed before, since keys are columns."""
        if isinstance(tree, exp.Column) and len(tree.parts) == 1:
            return str(tree.name)
        return self._add(side, "_key", tree)

    def _copy(self, read: Read) -> str:
        number, column = read
        side = RIGHT if number == self.right.number else LEFT
        table = next((each.name for each in (*self.left.tables, self.right) if each.number == number), "both")
        stored = self.right.relation.schema.column(column).name if side == RIGHT else self.left.places[read]
        return self._add(side, f"{column}_of_{table}", dotted(stored))

    def _add(self, side: str, wanted: str, tree: Tree) -> str:
        name = _free(wanted, self._names())
        self.added[side][name] = render(tree)
        return name

    def _lost(self, keys: dict[str, str]) -> set[Read]:
        """The columns that the join does not deliver, or not as the side has them."""
        outer_left, outer_right = self.clause.how in {"right", "full"}, self.clause.how in {"left", "full"}
        ours, theirs = self.left.relation, self.right.relation
        gone = {name for name in ours.pinned if name == self._time}
        found = {(self.right.number, name.lower()) for name in theirs.pinned if name == self._time}
        for one, other in keys.items():
            types = [self._type(LEFT, one), self._type(RIGHT, other)]
            alike = types[0] == types[1] and types[0] not in _FLOATS
            if outer_left or types[0] != types[1]:
                gone.add(one)
            if not self.clause.one_sided and (outer_right or not alike):
                found.add((self.right.number, other.lower()))
        return found | {read for read, name in self.left.places.items() if name in gone}

    def _type(self, side: str, name: str) -> str | None:
        """The type of a key column, None if only Spark knows it."""
        schema = self._of(side).schema
        return scalar(self.added[side].get(name, quoted(name)), schema).type

    @property
    def _time(self) -> str:
        """The name of the event time of pairs."""
        own = {*self.left.relation.schema.names, *self.right.relation.schema.names}
        own -= {*self.left.relation.pinned, *self.right.relation.pinned}
        return _free(PAIR_TIME, {each.lower() for each in own})

    def _joined(self, keys: dict[str, str], on: _OnClause, bound: BoundClause) -> tuple[Join, Derived]:
        left, right = (_with(self._of(side), self.added[side]) for side in (LEFT, RIGHT))
        window = bound.window
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
            named=PAIR_TIME if self.clause.one_sided or window is not None else self._time,
        )
        return join, left.derive(join, right)

    def _suffix(self) -> str:
        names, suffix = self._names(), f"_{self.right.name}"
        while any(f"{name}{suffix}".lower() in names for name in self.right.relation.schema.names):
            suffix += "_"
        return suffix

    def _places(self, keys: dict[str, str], join: Join) -> dict[Read, str]:
        """Where the columns of both sides are, but for those that only a copy delivers."""
        given = {**dict(join.left), **{name: name for name in keys}}
        ours = {read: given[name] for read, name in self.left.places.items() if name in given}
        theirs = {(self.right.number, stored.lower()): name for stored, name in join.right}
        theirs |= {(self.right.number, other.lower()): one for one, other in keys.items()}
        bounds = [name for name in WINDOW_BOUNDS if join.window is not None]
        ours |= {read: name for read, name in self.left.places.items() if name in bounds}
        theirs |= {(self.right.number, name): name for name in bounds if name in self.right.relation.schema}
        merged = {(MERGED, name.lower()): given[self._using_column(name)] for name in self.clause.using}
        return {**ours, **theirs, **merged}

    def _of(self, side: str) -> Relation:
        return self.left.relation if side == LEFT else self.right.relation

    def _names(self) -> set[str]:
        """Every name of either side, in lower case."""
        both = (*self.left.relation.schema.names, *self.right.relation.schema.names)
        return {each.lower() for each in (*both, *self.added[LEFT], *self.added[RIGHT])}

    # -- ON and USING ----------------------------------------------------------------------------------

    def _on(self) -> _OnClause:
        """Keys and conditions of ON or USING; a left column is a key once, then equalities are conditions."""
        keys = [self._using(name) for name in self.clause.using]
        rest: list[Tree] = []
        for each in _conjuncts(self.clause.on):
            sided = each.transform(self._sided)
            pair = _pair(sided)
            if pair and not (isinstance(pair[0], exp.Column) and any(pair[0] == key for key, _ in keys)):
                keys.append(pair)
            else:
                rest.append(sided)
        if self.clause.by_pair_time and USUAL in self.left.places:
            rest.append(self._near())
        return _OnClause(tuple(keys), exp.and_(*rest) if rest else None)

    def _near(self) -> Tree:
        """That the usual time of the pair on the left is no farther from the right one than the bound."""
        bound = self.clause.bound
        length = f"INTERVAL '{microseconds((bound and bound.distance) or '')}' MICROSECOND"
        ours = f"{LEFT}.{quoted(self.left.places[USUAL])}"
        theirs = f"{RIGHT}.{quoted(self._own_time(RIGHT))}"
        return parse_scalar(f"{theirs} BETWEEN {ours} - {length} AND {ours} + {length}")

    def _using(self, name: str) -> tuple[Tree, Tree]:
        if name not in self.right.relation.schema:
            raise UnknownColumn.among(name, self.right.relation.schema.names)
        return dotted(self._using_column(name)), dotted(self.right.relation.schema.column(name).name)

    def _using_column(self, name: str) -> str:
        """The column of the left side that USING names."""
        if (MERGED, name.lower()) in self.left.places:
            return self.left.places[MERGED, name.lower()]
        node = exp.column(name)
        Names(self.left.tables, self.left.written).resolve([node])
        found = found_in(node)
        assert found is not None, "a name that no table has is refused"
        return self.left.places[found.read]

    def _sided(self, node: Tree) -> Tree:
        found = found_in(node)
        if found is None:
            return node
        number, column = found.read
        if number == self.right.number:
            return dotted(RIGHT, self.right.relation.schema.column(column).name, *found.fields)
        return dotted(LEFT, self.left.places[found.read], *found.fields)


def equal_reads(joins: Sequence[JoinClause]) -> set[Read]:
    """The columns of joined tables that equal one of the same name on the left: keys of inner joins."""
    found: set[Read] = set()
    for join in joins:
        found |= {(join.right.number, name.lower()) for name in join.using}
        for each in _conjuncts(join.on) if join.how == "inner" else ():
            both = [found_in(each.this), found_in(each.expression)] if isinstance(each, exp.EQ) else []
            columns = [one.read for one in both if one is not None and not one.fields]
            if len(columns) == 2 and columns[0][1] == columns[1][1]:
                found |= {read for read in columns if read[0] == join.right.number}
    return found


def _with(relation: Relation, added: dict[str, str]) -> Relation:
    return relation.select(*relation.schema.names, **added) if added else relation


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name.lower() in taken:
        number += 1
        name = f"{wanted}{number}"
    return name


def _conjuncts(tree: Tree | None) -> Iterator[Tree]:
    """The conditions of an ON clause; INNER JOIN without one parses as ON TRUE."""
    for each in conjuncts(tree) if tree is not None else ():
        plain = each.unnest()
        if not (isinstance(plain, exp.Boolean) and plain.this):
            yield plain if isinstance(plain, exp.EQ) else each


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
    return {each.parts[0].name for each in tree.find_all(exp.Column) if len(each.parts) > 1}


def _bare(tree: Tree) -> Tree:
    def without_side(node: Tree) -> Tree:
        if not isinstance(node, exp.Column) or len(node.parts) == 1:
            return node
        return dotted(*(each.name for each in node.parts[1:]))

    return tree.unnest().transform(without_side)
