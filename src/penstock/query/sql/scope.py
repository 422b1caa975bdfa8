"""The names that the expressions of a SELECT may use, and the columns that they refer to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.errors import BadExpression, UnknownColumn
from penstock.expressions.parsing import Tree, dotted, marked, place_of
from penstock.expressions.scalar import is_unit
from penstock.query.relation import Relation
from penstock.query.sql.windows import TableFunction

__all__ = ["Found", "FromTable", "Read", "Scope", "find", "mark", "one", "reads"]

Read = tuple[int, str]


@dataclass(frozen=True)
class FromTable:
    """One table of FROM: its names, the alias first, and the relation behind it.

    A table function may be around it, and ``after`` are conditions on the bounds of its windows.
    """

    names: tuple[str, ...]
    relation: Relation
    function: TableFunction | None = None
    after: tuple[Tree, ...] = ()

    @property
    def name(self) -> str:
        """The name that the statement uses for it."""
        return self.names[0] if self.names else ""

    def __contains__(self, name: str) -> bool:
        return name.lower() in {each.lower() for each in self.names}


@dataclass(frozen=True, slots=True)
class Found:
    """A column as written: the sources that it may belong to, its name, and fields of it."""

    owners: tuple[int, ...]
    column: str
    fields: tuple[str, ...]
    qualified: bool

    @property
    def read(self) -> Read | None:
        """The source and the column, None unless there is exactly one."""
        return (self.owners[0], self.column.lower()) if len(self.owners) == 1 else None


@dataclass(frozen=True)
class Scope:
    """The tables of FROM as one relation.

    ``places`` gives, for each column of a source, the column of the relation that it has become. ``whole``
    has the names of the joined row itself: its event time and the keys of USING. ``hidden`` columns exist
    only for the statement's own use, and no ``*`` shows them.
    """

    sources: tuple[FromTable, ...]
    relation: Relation
    places: Mapping[Read, str]
    written: str
    whole: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: FromTable, written: str) -> "Scope":
        """The scope of one table."""
        names = {(0, name.lower()): name for name in source.relation.schema.names}
        return cls((source,), source.relation, names, written)

    @property
    def visible(self) -> tuple[str, ...]:
        """The columns that ``*`` selects."""
        return tuple(name for name in self.relation.schema.names if name not in self.hidden)

    def __contains__(self, node: Tree) -> bool:
        return isinstance(node, exp.Column) and bool(find(node, self.sources).owners)

    def over(self, tree: Tree) -> Tree:
        """The tree with every column replaced by one of the relation."""
        return tree.copy().transform(self._resolved)

    def column(self, found: Found, node: Tree) -> str:
        """The column of the relation that a name refers to."""
        if not found.qualified and found.column.lower() in self.whole:
            return self.whole[found.column.lower()]
        return self.places[one(found, node, self.sources, self.written)]

    def _resolved(self, node: Tree) -> Tree:
        if not isinstance(node, exp.Column) or is_unit(node):
            return node
        found = find(node, self.sources)
        name = self.column(found, node)
        if name.lower() != found.column.lower():
            return dotted(name, *found.fields)
        # A name that needs no change stays as written, quotes or none.
        kept = node.parts[1:] if found.qualified else node.parts
        return dotted(*(exp.to_identifier(each.name, each.args.get("quoted")) for each in kept))


def find(node: exp.Column, sources: Iterable[FromTable]) -> Found:
    """The sources that a column may belong to; ``c.x`` is x of c if c has an x, else a field of column c."""
    first, *rest = [each.name for each in node.parts]
    numbered = list(enumerate(sources))
    if rest:
        owners = [place for place, each in numbered if first in each and rest[0] in each.relation.schema]
        # In "calls AS a JOIN calls", calls is the second table, since the first has its own name.
        called = [place for place in owners if numbered[place][1].name.lower() == first.lower()]
        if owners:
            return Found(tuple(called or owners), rest[0], tuple(rest[1:]), qualified=True)
    owners = [place for place, each in numbered if first in each.relation.schema]
    return Found(tuple(owners), first, tuple(rest), qualified=False)


def one(found: Found, node: Tree, sources: tuple[FromTable, ...], written: str) -> Read:
    """The one source and column that a name refers to; an error if there is none or more than one."""
    if found.read is not None:
        return found.read
    name = ".".join(each.name for each in node.parts) if isinstance(node, exp.Column) else found.column
    if not found.owners:
        known = [(source.name, column) for source in sources for column in source.relation.schema.names]
        shown = [f"{of}.{column}" if of and len(sources) > 1 else column for of, column in known]
        raise UnknownColumn(f"{UnknownColumn.among(name, shown)}{mark(node, written)}")
    owning = [sources[place].name for place in found.owners]
    ways = " or ".join(f"{each}.{found.column}" for each in owning)
    raise BadExpression(f"{name!r} is a column of {' and '.join(owning)}; write {ways}{mark(node, written)}")


def reads(trees: Iterable[Tree], sources: tuple[FromTable, ...], but: str | None = None) -> set[Read]:
    """The columns of sources that trees certainly read, without the bare name ``but``."""
    nodes = [node for tree in trees for node in tree.find_all(exp.Column) if not is_unit(node)]
    found = [find(node, sources) for node in nodes]
    named = [each for each in found if each.qualified or each.column.lower() != (but or "").lower()]
    return {each.read for each in named if each.read is not None}


def mark(node: Tree, written: str) -> str:
    """The line of the text with a caret under the node, empty if its position is not known."""
    place = place_of(node)
    return "" if place is None else f"\n{marked(written, place)}"
