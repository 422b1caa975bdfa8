"""A random program: tables with their rows, and a query over them as a tree that no product code knows.

The tree says what is meant; `text.py` writes it as SQL and Python for the product and for Spark in one of
many spellings, `oracle.py` evaluates it with DuckDB. Columns are named by the item of FROM that they belong
to, so a spelling may leave out, add or change aliases without a change of meaning.

An expression is a text with marks: `«f1.k»` is the column `k` of the item `f1`. Durations and times are
microseconds.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MARK = re.compile(r"«(\w+)\.([^»]+)»")
SECOND = 1_000_000


@dataclass(frozen=True)
class Column:
    """A column of a relation; one that is not `exact` may differ by rounding, and decides on nothing."""

    name: str
    type: str
    exact: bool = True


@dataclass(frozen=True)
class Expr:
    """An expression in Spark SQL and in DuckDB's, its type in Spark, and whether it is exact.

    `tags` name functions for the count of what is covered.
    """

    spark: str
    duck: str
    type: str
    exact: bool = True
    tags: tuple[str, ...] = ()

    def map(self, change: Callable[[str], str]) -> "Expr":
        return dataclasses.replace(self, spark=change(self.spark), duck=change(self.duck))

    @property
    def items(self) -> set[str]:
        return {found[1] for found in MARK.finditer(self.spark)}


def column_of(item: "Item", column: Column) -> Expr:
    text = f"«{item.id}.{column.name}»"
    return Expr(text, text, column.type, column.exact)


def combined(template: str | tuple[str, str], kind: str, *parts: Expr, tags: tuple[str, ...] = ()) -> Expr:
    """An expression of others; a pair of templates where the dialects differ."""
    spark, duck = (template, template) if isinstance(template, str) else template
    return Expr(
        spark.format(*(each.spark for each in parts)),
        duck.format(*(each.duck for each in parts)),
        kind,
        all(each.exact for each in parts),
        (*tags, *(tag for each in parts for tag in each.tags)),
    )


@dataclass(frozen=True)
class Table:
    """A stream: `rows` in the order of arrival; `delay` covers their disorder unless rows are late.

    With a `key` it is many streams, and the slowest of them tells how far event time is.
    """

    name: str
    columns: tuple[Column, ...]
    time: str
    delay: int
    rows: tuple[tuple, ...]
    key: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.columns)


@dataclass(frozen=True)
class Window:
    """Windows of time: `kind` is tumble, hop, cumulate or session; `slide` is also a step."""

    kind: str
    size: int
    slide: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Item:
    """A table in FROM under an id of its own; with a `window` it is a table function."""

    id: str
    relation: "Relation"
    window: Window | None = None
    partition: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        bounds = (Column("window_start", "timestamp"), Column("window_end", "timestamp"))
        return (*self.relation.columns, *(bounds if self.window else ()))

    @property
    def time(self) -> str | None:
        """The column that holds the event time, None if none in sight does."""
        return self.relation.time


@dataclass(frozen=True)
class Bound:
    """Right minus left event time is from `-back` to `ahead`; `by` is the left item whose time counts.

    `kind`: interval (a condition over two columns), within, keep, last (so many rows: `ahead`) or window.
    """

    kind: str
    back: int = 0
    ahead: int = 0
    by: str | None = None


@dataclass(frozen=True)
class Join:
    how: str
    item: Item
    keys: tuple[tuple[Expr, Expr], ...]
    bound: Bound
    conditions: tuple[Expr, ...] = ()
    using: bool = False


@dataclass(frozen=True)
class Sub:
    """A sub-query in WHERE: exists, not exists, in or not in, which compare the first pair of keys."""

    kind: str
    item: Item
    keys: tuple[tuple[Expr, Expr], ...]
    bound: Bound
    conditions: tuple[Expr, ...] = ()
    inner: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Aggregate:
    """An aggregate; templates take the arguments, `{t}` in that of DuckDB is the event time.

    `python` is what a call in Python has besides.
    """

    name: str
    spark: str
    duck: str
    type: str
    exact: bool
    arguments: tuple[Expr, ...]
    where: Expr | None = None
    distinct: bool = False
    python: str = ""


@dataclass(frozen=True)
class Grouping:
    """GROUP BY: keys under names, aggregates under names, sets of keys by their places, a window.

    `by` is the item by whose time windows go, None for the event time of what FROM gives. `rolled`: WITH
    ROLLUP over the keys and then the window.
    """

    keys: tuple[tuple[str, Expr], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    window: Window | None = None
    by: str | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    having: tuple[Expr, ...] = ()
    rolled: bool = False


@dataclass(frozen=True)
class Block:
    """A SELECT. Of a grouped one, `select` reads the marks of item `g`: keys, aggregates and bounds."""

    first: Item
    joins: tuple[Join, ...]
    where: tuple[Expr, ...]
    subs: tuple[Sub, ...]
    group: Grouping | None
    select: tuple[tuple[str, Expr], ...]
    form: str = "sql"
    distinct: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, each.type, each.exact) for name, each in self.select)

    @property
    def items(self) -> tuple[Item, ...]:
        return (self.first, *(each.item for each in self.joins))

    @property
    def time(self) -> str | None:
        """The selected column that is the event time."""
        wanted = self.time_mark
        return next((name for name, each in self.select if wanted and each.spark == wanted), None)

    @property
    def time_mark(self) -> str | None:
        if self.group is not None:
            window = self.group.window
            return window and ("«g.window_end»" if window.kind == "session" else "«g.window_start»")
        if any(each.how not in {"semi", "anti"} for each in self.joins):
            return None
        if self.first.window or self.first.time is None:
            return None
        return f"«{self.first.id}.{self.first.time}»"

    @property
    def updating(self) -> bool:
        return (self.group is not None and self.group.window is None) or any(
            each.relation.updating for each in self.items
        )


@dataclass(frozen=True)
class Union:
    """UNION ALL; columns are those of the first part."""

    parts: tuple["Relation", ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        exact = zip(*([each.exact for each in part.columns] for part in self.parts), strict=True)
        return tuple(
            dataclasses.replace(each, exact=all(all_exact))
            for each, all_exact in zip(self.parts[0].columns, exact, strict=True)
        )

    @property
    def time(self) -> str | None:
        return self.parts[0].time

    @property
    def updating(self) -> bool:
        return any(each.updating for each in self.parts)


@dataclass(frozen=True)
class Ranked:
    """The first rows of each window: of a table function, or of results that have windows.

    Only keys, what is ordered by and the rank are selected, so that ties make no difference. Ranks in `but`
    are left out.
    """

    item: Item
    partition: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    most: int
    ties: bool
    rank: str = "r"
    but: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        names = (*self.partition, *(name for name, _ in self.order))
        given = {each.name: each for each in self.item.columns}
        bounds = ("window_start", "window_end")
        return (*(given[name] for name in (*bounds, *names)), Column(self.rank, "int"))

    @property
    def time(self) -> str | None:
        return None

    @property
    def updating(self) -> bool:
        return False


@dataclass(frozen=True)
class Verb:
    """An operator that only Python has; `operators.py` says what each kind means over whole tables."""

    kind: str
    inputs: tuple["Relation", ...]
    options: tuple[tuple[str, object], ...]
    columns: tuple[Column, ...]
    time: str | None
    updating: bool = False

    def option(self, name: str):
        return dict(self.options)[name]


Relation = Table | Block | Union | Ranked | Verb

for _class in (Table,):
    _class.updating = property(lambda _self: False)


@dataclass(frozen=True)
class Program:
    """A query, where its tables are cut into epochs, and the seed of its spelling.

    `verbatim`: Spark understands the text as it stands. `zone` is the session's time zone.
    """

    query: Relation
    seed: int
    epochs: int
    channels: int
    style: int = 0
    verbatim: bool = False
    zone: str = "UTC"


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Block():
            subs = (each.item.relation for each in relation.subs)
            return (*(each.relation for each in relation.items), *subs)
        case Union():
            return relation.parts
        case Ranked():
            return (relation.item.relation,)
        case Verb():
            return relation.inputs
    return ()


def relations_of(relation: Relation) -> Iterator[Relation]:
    """It and all that it is made of."""
    yield relation
    for each in inputs_of(relation):
        yield from relations_of(each)


def tables_of(relation: Relation) -> dict[str, Table]:
    return {each.name: each for each in relations_of(relation) if isinstance(each, Table)}
