"""Which column of which table a name means, found once, before anything of a statement is rewritten.

A SELECT sees the tables of its FROM by their aliases; an alias hides the table's own name. A sub-query of
EXISTS or IN sees its own table first, then those around it. ``Names.resolve`` notes its finding with each
name, and what rewrites the statement afterwards goes by these notes, never by names.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from penstock.errors import BadExpression, UnknownColumn
from penstock.expressions.parsing import Tree, dotted, marked, place_of
from penstock.expressions.scalar import is_unit
from penstock.query.relation import Relation
from penstock.query.sql.windows import TableFunction

__all__ = [
    "MERGED",
    "USUAL",
    "Found",
    "FromTable",
    "Names",
    "Read",
    "Scope",
    "found_in",
    "mark",
    "note",
    "reads",
]

Read = tuple[int, str]
"""The number of a table in its SELECT, and a column of it in lower case."""
MERGED: Final = -1
"""In place of a table's number: the column is a key of USING, which belongs to several tables."""
USUAL: Final[Read] = (-2, "")
"""The time of pairs without a GROUP BY, which bounds of later joins go by, where pairs carry another."""
_NOTE: Final = "column"


@dataclass(frozen=True)
class FromTable:
    """One table of FROM, or of a sub-query in WHERE: its name in the statement, and the relation behind it.

    A table function may be around it, and ``after`` are conditions on the bounds of its windows.
    """

    name: str
    relation: Relation
    function: TableFunction | None = None
    after: tuple[Tree, ...] = ()
    number: int = 0

    def is_called(self, name: str) -> bool:
        """Whether a name before a dot means this table."""
        return bool(self.name) and self.name.lower() == name.lower()


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: a column, or fields of it; ``qualified`` if the name of its table is before it."""

    read: Read
    fields: tuple[str, ...] = ()
    qualified: bool = False


@dataclass(frozen=True)
class Names:
    """The tables that a part of a statement sees, and ``outer``, what the statement around it sees.

    ``merged`` are the keys of USING, with the tables that share each of them.
    """

    tables: tuple[FromTable, ...]
    written: str
    merged: Mapping[str, frozenset[int]] = field(default_factory=dict)
    outer: "Names | None" = None

    def resolve(self, trees: Iterable[Tree], but: Container[str] = ()) -> None:
        """Note with every name what it means; one of ``but`` that no table has stays without a note."""
        for node in _columns(trees):
            found = self._find(node)
            if found is not None:
                note(node, found)
            elif node.table or node.name.lower() not in but:
                raise self._unknown(node)

    def _find(self, node: exp.Column) -> Found | None:
        """``c.x`` is column x of table c if c has an x, else field x of column c."""
        first, *rest = [each.name for each in node.parts]
        owners = [each for each in self.tables if rest and each.is_called(first)]
        owners = [each for each in owners if rest[0] in each.relation.schema]
        if owners:
            return Found((self._one(owners, node).number, rest[0].lower()), tuple(rest[1:]), qualified=True)
        owners = [each for each in self.tables if first in each.relation.schema]
        shared = self.merged.get(first.lower(), frozenset())
        if shared and {each.number for each in owners} <= shared:
            return Found((MERGED, first.lower()), tuple(rest))
        if owners:
            return Found((self._one(owners, node).number, first.lower()), tuple(rest))
        return self.outer._find(node) if self.outer else None  # noqa: SLF001 -- another of this class

    def _one(self, owners: list[FromTable], node: exp.Column) -> FromTable:
        if len(owners) == 1:
            return owners[0]
        name, column = ".".join(each.name for each in node.parts), node.parts[-1].name
        called = [each.name for each in owners]
        if not all(called):
            raise BadExpression(
                f"{name!r} is a column of {len(owners)} tables, of which some have no name; give each one "
                f"with AS{mark(node, self.written)}"
            )
        ways = " or ".join(f"{each}.{column}" for each in called)
        raise BadExpression(
            f"{name!r} is a column of {' and '.join(called)}; write {ways}{mark(node, self.written)}"
        )

    def _unknown(self, node: exp.Column) -> UnknownColumn:
        around: list[Names] = [self]
        while around[-1].outer is not None:
            around.append(around[-1].outer)
        tables = [each for names in around for each in names.tables]
        known = [(table.name, column) for table in tables for column in table.relation.schema.names]
        shown = [f"{of}.{column}" if of and len(tables) > 1 else column for of, column in known]
        name = ".".join(each.name for each in node.parts)
        return UnknownColumn(f"{UnknownColumn.among(name, shown)}{mark(node, self.written)}")


@dataclass(frozen=True)
class Scope:
    """The tables of FROM as one relation.

    ``places`` gives, for each column of a table, the column of the relation that it has become. ``hidden``
    columns exist only for the statement's own use, and no ``*`` shows them. ``spans`` say for a table how far
    its event time may lie after that of the relation, in microseconds from and to, if that is bounded.
    """

    tables: tuple[FromTable, ...]
    relation: Relation
    places: Mapping[Read, str]
    written: str
    hidden: frozenset[str] = frozenset()
    spans: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: FromTable, written: str) -> "Scope":
        """The scope of one table."""
        places = {(table.number, name.lower()): name for name in table.relation.schema.names}
        return cls((table,), table.relation, places, written, spans={table.number: (0, 0)})

    @property
    def visible(self) -> tuple[str, ...]:
        """The columns that ``*`` selects."""
        return tuple(name for name in self.relation.schema.names if name not in self.hidden)

    def over(self, tree: Tree) -> Tree:
        """The tree with every name that has a note replaced by a column of the relation."""
        return tree.transform(self._placed)

    def _placed(self, node: Tree) -> Tree:
        found = found_in(node)
        if found is None or not isinstance(node, exp.Column):
            return node
        name = self.places[found.read]
        if name.lower() != found.read[1]:
            return dotted(name, *found.fields)
        # A name that needs no change stays as written, quotes or none.
        kept = node.parts[1:] if found.qualified else node.parts
        return dotted(*(exp.to_identifier(each.name, each.args.get("quoted")) for each in kept))


def note(node: exp.Column, found: Found) -> exp.Column:
    """The name with what it means."""
    node.meta[_NOTE] = found
    return node


def found_in(node: Tree) -> Found | None:
    """What a name means, None for anything that is not a column of a table."""
    return node.meta.get(_NOTE) if isinstance(node, exp.Column) else None


def reads(trees: Iterable[Tree]) -> set[Read]:
    """The columns of tables that trees read."""
    found = (found_in(node) for tree in trees for node in tree.find_all(exp.Column))
    return {each.read for each in found if each is not None}


def mark(node: Tree, written: str) -> str:
    """The line of the text with a caret under the node, empty if its position is not known."""
    place = place_of(node)
    return "" if place is None else f"\n{marked(written, place)}"


def _columns(trees: Iterable[Tree]) -> Iterator[exp.Column]:
    for tree in trees:
        for node in tree.find_all(exp.Column):
            if not is_unit(node) and not isinstance(node.this, exp.Star) and found_in(node) is None:
                yield node
