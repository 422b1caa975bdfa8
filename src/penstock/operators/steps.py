"""The stateless operators: where, split, select, explode, map and union, with the verbs that make them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from penstock.errors import BadMap, BadName, QueryError, WrongType
from penstock.expressions.scalar import Expression, column, predicate, scalar
from penstock.expressions.schema import TIME, Column, Schema, quoted
from penstock.functions import SqlSetting, Types, Uncertified, duck_name, passed_or_translated
from penstock.operators.blame import reason_of, unless_row_fault
from penstock.operators.names import Named, check_names, named_expressions, schema_of_columns
from penstock.operators.operator import (
    D,
    Derivable,
    Filter,
    InputRelation,
    Inputs,
    Operator,
    R,
    Step,
    lowered,
)
from penstock.operators.poison import Refuse, culprit, spared

__all__ = ["Branch", "Explode", "Map", "Select", "StepVerbs", "Union", "Where"]


@dataclass(frozen=True, slots=True)
class Where(Filter):
    """Keep the tuples for which the condition is true."""

    expression: Expression

    @property
    def condition(self) -> str:
        """The condition as SQL."""
        return self.expression.sql

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The condition."""
        return (self.expression,)

    def rewritten(self, change: Callable[[Expression], Expression]) -> "Where":
        """The same over another relation."""
        return Where(change(self.expression))

    def __str__(self) -> str:
        return f"where({self.expression})"


@dataclass(frozen=True, slots=True)
class Branch(Filter):
    """One output of a split: the tuples for which this condition is the first that is true.

    ``place`` counts from 0; the place after the last condition takes the tuples for which none is.
    """

    conditions: tuple[Expression, ...]
    place: int

    @property
    def condition(self) -> str:
        """The branch as one condition; null is not true, so it falls through."""
        before = [f"NOT coalesce({each.sql}, false)" for each in self.conditions[: self.place]]
        own = [f"({each.sql})" for each in self.conditions[self.place : self.place + 1]]
        return " AND ".join(before + own)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All conditions of the split."""
        return self.conditions

    def rewritten(self, change: Callable[[Expression], Expression]) -> "Branch":
        """The same over another relation."""
        return Branch(tuple(change(each) for each in self.conditions), self.place)

    def __str__(self) -> str:
        return f"split({', '.join(map(str, self.conditions))})[{self.place}]"


@dataclass(frozen=True, slots=True)
class Select(Step):
    """Make these columns."""

    transparent: ClassVar[bool] = True

    columns: Named

    def schema(self, inputs: Inputs) -> Schema:
        """The columns that it makes."""
        return schema_of_columns(self.columns)

    def meaning(self) -> list[object]:
        """Names and expressions."""
        return ["select", [[name, each.sql] for name, each in self.columns]]

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """What each column is made of."""
        return {name: each.sql for name, each in self.columns}

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """What the wanted columns are made of."""
        made = [each for name, each in self.columns if name.lower() in wanted]
        return lowered(name for each in made for name in each.columns)

    def narrowed(self, wanted: frozenset[str], inputs: Inputs) -> tuple[Operator, tuple[str, ...]]:
        """The wanted columns alone."""
        return Select(tuple(each for each in self.columns if each[0].lower() in wanted)), ()

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """The columns that are one of these under another name or the same."""
        texts = {quoted(name) for name in names}
        return frozenset(name for name, each in self.columns if each.sql in texts)

    def select(self, source: str, *carried: str) -> str:
        """Its columns over the source."""
        columns = [f"{each.sql} AS {quoted(name)}" for name, each in self.columns]
        return f"(SELECT {', '.join([*columns, *carried])} FROM {source})"

    def in_channel(self, source: str, given: Types, setting: SqlSetting, *carried: str) -> tuple[str, Types]:
        """Its columns over the source."""
        made = {name: passed_or_translated(each.sql, given, setting) for name, each in self.columns}
        columns = [f"{each.sql} AS {duck_name(name)}" for name, each in made.items()]
        types = {name: each.type for name, each in made.items()}
        return f"(SELECT {', '.join([*columns, *carried])} FROM {source})", types

    def renamed(self, names: Sequence[str]) -> dict[str, str] | None:
        """Its columns, if each is one of the input."""
        bare = {quoted(name): name for name in names}
        found = {name: bare.get(each.sql) for name, each in self.columns}
        known = {name: each for name, each in found.items() if each is not None}
        return known if len(known) == len(found) else None

    def __str__(self) -> str:
        return f"select({', '.join(name for name, _ in self.columns)})"


@dataclass(frozen=True, slots=True)
class Explode(Step):
    """One tuple for each element of an array, with the element as a column; other columns pass by.

    A tuple without elements gives none, or with ``outer`` one with null. A condition on columns that pass by
    holds for all tuples of one or for none, so it may go below. Spark evaluates it.
    """

    multiplies: ClassVar[bool] = True

    name: str
    expression: Expression
    kept: tuple[str, ...]
    outer: bool = False

    def schema(self, inputs: Inputs) -> Schema:
        """What passes by, then the element."""
        kept = tuple(inputs[0].schema.column(name) for name in self.kept)
        return Schema((*kept, Column(self.name, _element(self.expression.type))))

    def meaning(self) -> list[object]:
        """The array, the name of its elements, and what becomes of tuples without one."""
        return ["explode", self.name, self.expression.sql, self.outer]

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """What passes by."""
        return {name: quoted(name) for name in self.kept}

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """The array, and what is wanted of what passes by."""
        return (wanted & lowered(self.kept)) | lowered(self.expression.columns)

    def narrowed(self, wanted: frozenset[str], inputs: Inputs) -> tuple[Operator, tuple[str, ...]]:
        """Without columns that nobody wants, such as the array."""
        return replace(self, kept=tuple(name for name in self.kept if name.lower() in wanted)), ()

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """The columns that pass by."""
        return names & frozenset(self.kept)

    def select(self, source: str, *carried: str) -> str:
        """A tuple for each element."""
        function = "explode_outer" if self.outer else "explode"
        element = f"{function}({self.expression.sql}) AS {quoted(self.name)}"
        columns = [*map(quoted, self.kept), element, *carried]
        return f"(SELECT {', '.join(columns)} FROM {source})"

    def in_channel(self, source: str, given: Types, setting: SqlSetting, *carried: str) -> tuple[str, Types]:
        """Left to Spark."""
        raise Uncertified(f"{self} makes several tuples of one")

    def __str__(self) -> str:
        return f"explode({self.name}={self.expression}{', outer' if self.outer else ''})"


def _element(type_: str | None) -> str | None:
    return None if type_ is None else type_.removeprefix("array<").removesuffix(">")


@dataclass(frozen=True, slots=True)
class Map(Step):
    """Call a function with record batches of ``given`` columns; it makes ``made`` ones, row by row.

    ``kept`` columns pass by unchanged. The function may look at every column, so it reads them all.
    """

    calls: ClassVar[bool] = True

    function: Callable[[Any], Any]
    given: Schema
    made: Schema
    kept: tuple[str, ...]

    def schema(self, inputs: Inputs) -> Schema:
        """What passes by, then what it makes."""
        return Schema(tuple(inputs[0].schema.column(name) for name in self.kept) + self.made.columns)

    def meaning(self) -> list[object]:
        """The function's name and what it makes."""
        made = [[each.name, each.type] for each in self.made.columns]
        return ["map", getattr(self.function, "__qualname__", type(self.function).__qualname__), made]

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """What passes by."""
        return {name: quoted(name) for name in self.kept}

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """The columns that pass by."""
        return names & frozenset(self.kept)

    def declared(self, type_of: Callable[[str], str]) -> str:
        """What passes by, then what the function makes."""
        kept = [f"{quoted(name)} {type_of(name)}" for name in self.kept]
        return ", ".join([*kept, *(f"{quoted(each.name)} {each.type}" for each in self.made.columns)])

    def called(self, schema: Any) -> Any:
        """What passes by, what the function makes, and the event time."""
        carried = [TIME] if TIME in schema.names else []
        kept = [schema.field(name) for name in self.kept]
        return pa.schema([*kept, *self.made.arrow(), *(schema.field(name) for name in carried)])

    def call(self, table: Any, refuse: Refuse | None = None, *more: str) -> Any:
        """The columns that pass by, those that the function makes, the event time, and `more` of the table.

        The function does not see the latter.
        """
        carried = [*([TIME] if TIME in table.column_names else []), *more]
        passing = [*self.kept, *carried]
        # One table, so that the columns that pass by are cut where the function's own are.
        names = [*self.given.names, *(name for name in passing if name not in self.given.names)]
        batches = table.select(names).combine_chunks().to_batches()
        batches = batches or [pa.RecordBatch.from_pylist([], schema=table.select(names).schema)]
        parts = [self._part(batch, passing, refuse) for batch in batches]
        found = pa.concat_tables(parts)
        return found.select([*self.kept, *self.made.names, *carried])

    def _part(self, batch: Any, passing: list[str], refuse: Refuse | None) -> Any:
        """One batch after the function; `refuse` takes the rows for which it raises, None raises."""
        if refuse is None:
            taken, made = batch, [self._made(batch)]
        else:
            taken, made = spared(str(self), self._given, batch, self.given.names, refuse)
        own = pa.Table.from_batches(made, self.made.arrow())
        for name in passing:
            own = own.append_column(name, taken[name])
        return own

    def _given(self, batch: Any) -> Any:
        given = batch.select(list(self.given.names))
        return self._checked(self.function(given), given)

    def _made(self, batch: Any) -> Any:
        """What the function makes; if it raises, the error names the function and the row."""
        try:
            return self._given(batch)
        except Exception as error:
            unless_row_fault(str(self), error)
            where = culprit(str(self), self.function, batch.select(list(self.given.names)))
            raise BadMap(
                f"{reason_of(str(self), error)} for {where}; correct the function, leave such rows out with "
                'where() before it, or set them aside with start(on_error="set aside")'
            ) from error

    def _checked(self, made: Any, batch: Any) -> Any:
        if not isinstance(made, pa.RecordBatch):
            raise BadMap(f"{self} returned {type(made).__name__}; return a pyarrow.RecordBatch")
        if made.num_rows != batch.num_rows:
            raise BadMap(
                f"{self} returned {made.num_rows} rows for {batch.num_rows}; return one for each, in order, "
                "and leave rows out with where()"
            )
        schema = self.made.arrow()
        lacking = [name for name in schema.names if name not in made.schema.names]
        if lacking:
            raise BadMap(
                f"{self} returned no column {lacking[0]!r}; its schema has {', '.join(schema.names)}"
            )
        try:
            return made.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadMap(
                f"{self} returned {made.schema}, which cannot be held as declared: {error}"
            ) from error

    def __str__(self) -> str:
        return f"map({getattr(self.function, '__name__', type(self.function).__name__)})"


@dataclass(frozen=True, slots=True)
class Union(Operator):
    """All tuples of all inputs."""

    transparent: ClassVar[bool] = True
    merges: ClassVar[bool] = True

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of the first input; those of the others are the same, in any order."""
        return inputs[0].schema

    def meaning(self) -> list[object]:
        """Its name."""
        return [str(self)]

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """The columns of the same names, as that input spells them."""
        theirs = inputs[place].schema
        return {name: quoted(theirs.column(name).name) for name in inputs[0].schema.names}

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """What is wanted."""
        return wanted

    def __str__(self) -> str:
        return "union"


class StepVerbs(Derivable[R, D]):
    """The verbs of a relation that keep no state."""

    def where(self, condition: str) -> D:
        """Keep the tuples for which the condition is true."""
        return self.derive(Where(predicate(condition, self.schema)))

    def select(self, /, *names: str, **expressions: str) -> D:
        """Go on with these columns and these expressions, the latter under the names given."""
        pinned = tuple((name, column(name, self.schema)) for name in self.pinned)
        taken = [name.lower() for name in self.pinned]
        for name in expressions:
            if name.lower() in taken:
                raise BadName(f"{name!r} is a column of every result; choose another name")
        chosen = [name for name in names if name.lower() not in taken]
        columns = pinned + named_expressions(chosen, expressions, self.schema)
        if not columns:
            raise BadName("select() needs at least one column")
        _check_time(self, columns)
        return self.derive(Select(columns))

    def explode(self, *, outer: bool = False, **arrays: str) -> D:
        """One tuple for each element of an array, under the name given; a tuple without elements gives none.

        With ``outer`` such a tuple stays, with null. All other columns pass by, the array among them, unless
        its elements take its name.

        >>> from penstock.query import stream
        >>> posts = stream("posts", "time timestamp, author string, tags array<string>", time="time")
        >>> posts.explode(tag="tags").schema.names
        ('time', 'author', 'tags', 'tag')
        """
        if len(arrays) != 1:
            raise QueryError(f"explode() got {len(arrays)} arrays; give one, such as explode(tag='tags')")
        ((name, text),) = arrays.items()
        found = scalar(text, self.schema)
        if found.type is not None and not found.type.startswith("array<"):
            raise WrongType(f"explode() needs an array, got {text} {found.type}")
        # Elements may take the name of the array.
        own = found.sql == quoted(name)
        kept = tuple(each for each in self.schema.names if not (own and each == name))
        if name.lower() in {each.lower() for each in (*kept, self.time)}:
            raise BadName(f"{name!r} is a column already; choose another name for the elements")
        check_names([name])
        return self.derive(Explode(name, found, kept, outer))

    def split(self, *conditions: str) -> tuple[D, ...]:
        """Part the tuples: one relation for each condition, of the tuples for which it is the first true one.

        A last relation has the tuples for which none is true, so there is one more than conditions.

        >>> from penstock.query import stream
        >>> reports = stream("reports", "time timestamp, speed double", time="time")
        >>> fast, slow, rest = reports.split("speed > 100", "speed < 5")
        >>> rest
        reports.split(`speed` > 100, `speed` < 5)[2]
        """
        if not conditions:
            raise QueryError("split() needs at least one condition")
        found = tuple(predicate(each, self.schema) for each in conditions)
        return tuple(self.derive(Branch(found, place)) for place in range(len(found) + 1))

    def union(self, *others: R) -> D:
        """All tuples of this and the others, which have columns of the same names and types."""
        if not others:
            raise QueryError("union() needs another relation")
        for other in others:
            _check_union(self, other)
        return self.derive(Union(), *(_spelled(other, self) for other in others))


def _check_time(relation: InputRelation, columns: Named) -> None:
    for name, expression in columns:
        own = relation.time in relation.schema and expression == column(relation.time, relation.schema)
        if name.lower() == relation.time.lower() and not own:
            raise BadName(f"{relation.time!r} is carried on as the event time; choose another name")


def _spelled(relation: Any, model: InputRelation) -> Any:
    """The relation with its columns in the letter case of those of another one."""
    theirs = {each.lower(): each for each in relation.schema.names}
    if {*theirs.values()} == {*model.schema.names}:
        return relation
    return relation.select(**{name: quoted(theirs[name.lower()]) for name in model.schema.names})


def _check_union(one: InputRelation, other: InputRelation) -> None:
    ours = {each.name.lower(): each.type for each in one.schema.columns}
    theirs = {each.name.lower(): each.type for each in other.schema.columns}
    if ours.keys() != theirs.keys() or one.time_type != other.time_type or one.time != other.time:
        raise QueryError(
            f"union of ({', '.join(one.schema.names)}) with time {one.time!r} and "
            f"({', '.join(other.schema.names)}) with time {other.time!r}; give both the same columns "
            "with select()"
        )
    for name, type_ in ours.items():
        if type_ and theirs[name] and type_ != theirs[name]:
            raise WrongType(
                f"union: column {name!r} is {type_} in one and {theirs[name]} in the other; cast one"
            )
