"""Aggregates that users define in Spark SQL: partial columns, a merge for each, and the result from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from penstock.aggregates.aggregate import DEFINITIONS, Aggregate, Definition, is_name
from penstock.aggregates.kinds import Fold
from penstock.aggregates.modifiers import Filtered, modified
from penstock.aggregates.partials import Lowered, PaneColumns, Taken
from penstock.errors import BadAggregate, WrongType
from penstock.expressions import types
from penstock.expressions.functions import is_aggregate_name
from penstock.expressions.macros import expand
from penstock.expressions.parsing import Tree, call_name, parse_scalar, render, shared_scalar
from penstock.expressions.scalar import Expression, of_tree, refuse, scalar
from penstock.expressions.schema import Column, Schema

__all__ = ["MERGES", "SqlAggregate", "sql_aggregate", "taken_apart"]

MERGES: Final = ("sum", "min", "max", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or")


@dataclass(frozen=True, slots=True)
class SqlAggregate(Definition):
    """An aggregate in Spark SQL: partial columns per pane, how each merges, and the result from them.

    Made by ``sql_aggregate``; calling it with SQL texts, one for each input, gives the aggregate.
    """

    name = "sql"

    inputs: tuple[str, ...]
    partial: tuple[tuple[str, str], ...]
    merge: tuple[tuple[str, str], ...]
    finish: str

    def __call__(self, *arguments: str, where: str | None = None) -> Aggregate:
        """The aggregate over these SQL texts, one for each input, of the tuples for which `where` is true."""
        if len(arguments) != len(self.inputs):
            raise BadAggregate(f"got {len(arguments)} arguments; the inputs are ({', '.join(self.inputs)})")
        return modified(Aggregate(self, tuple(arguments)), where, distinct=False)

    def partial_sql(self, arguments: tuple[Expression, ...]) -> dict[str, str]:
        """The Spark SQL of each partial column, the inputs replaced by what they stand for."""
        values = dict(zip(self.inputs, arguments, strict=True))
        return {name: render(_substituted(parse_scalar(text), values)) for name, text in self.partial}

    @property
    def options(self) -> tuple[tuple[str, object], ...]:
        """None: the fields are the definition itself."""
        return ()

    def check(self, arguments: Sequence[Expression], _written: Sequence[str]) -> None:
        """Plain values, whatever the SQL makes of them."""
        for each in arguments:
            if each.type and not types.is_atomic(each.type):
                raise WrongType(f"{each.sql} is {each.type}; an aggregate in SQL needs plain values")

    def meaning(self) -> object:
        """The whole definition."""
        return [self.inputs, self.partial, self.merge, self.finish]

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """The type of the finish over the types of the partials."""
        inputs = Schema(tuple(Column(name, type_) for name, type_ in zip(self.inputs, given, strict=True)))
        partial = Schema(tuple(Column(name, _partial_type(text, inputs)) for name, text in self.partial))
        return scalar(self.finish, partial).type

    def lower(self, _arguments: Sequence[Expression], _pane: PaneColumns) -> Lowered:
        """Nothing is kept of the whole: `taken_apart` makes aggregates of its partials."""
        raise NotImplementedError(f"{self.name}() is taken apart before it is lowered")


@dataclass(frozen=True, slots=True)
class SqlPartial(Definition):
    """One partial column of an aggregate in SQL, an aggregate by itself."""

    name = "sql_partial"

    whole: SqlAggregate
    column: str

    @property
    def options(self) -> tuple[tuple[str, object], ...]:
        """None: the whole is the definition."""
        return ()

    def check(self, arguments: Sequence[Expression], written: Sequence[str]) -> None:
        """As the whole."""
        self.whole.check(arguments, written)

    def meaning(self) -> object:
        """The whole without its finish, which is a step behind the windows."""
        return [self.whole.inputs, dict(self.whole.partial)[self.column], dict(self.whole.merge)[self.column]]

    def shown(self, arguments: Sequence[object]) -> str:
        """As the Spark SQL that forms it."""
        return _with_texts(dict(self.whole.partial)[self.column], self.whole.inputs, map(str, arguments))

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """What is known of Spark's type."""
        inputs = zip(self.whole.inputs, given, strict=True)
        schema = Schema(tuple(Column(name, type_) for name, type_ in inputs))
        return _partial_type(dict(self.whole.partial)[self.column], schema)

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Spark forms the partial and tells its type."""
        sql = self.whole.partial_sql(tuple(arguments))[self.column]
        type_ = types.arrow_type(pane.describe([sql])[0]) if pane.describe else pa.null()
        operation: Any = dict(self.whole.merge)[self.column]
        return Taken(pane.partial(Fold(operation, type_), (sql,), None).name), type_


def taken_apart(aggregates: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, str]]:
    """Aggregates with those in SQL replaced by their partials, and how these are finished, by name.

    The finish is an expression over results like any other, so it has one meaning wherever it is evaluated.
    """
    parts: dict[str, Any] = {}
    finishes = {}
    for name, each in aggregates.items():
        given = each.definition if isinstance(each, Aggregate) else None
        filtered = isinstance(given, Filtered)
        whole = given.inner if isinstance(given, Filtered) else given
        if not isinstance(each, Aggregate) or not isinstance(whole, SqlAggregate):
            parts[name] = each
            continue
        hidden = {column: _free(f"_{name}_{column}", {*aggregates, *parts}) for column, _ in whole.partial}
        for column, under in hidden.items():
            part = SqlPartial(whole, column)
            parts[under] = Aggregate(Filtered(part) if filtered else part, each.arguments)
        finishes[name] = _with_texts(whole.finish, hidden, (f"`{under}`" for under in hidden.values()))
    return parts, finishes


def _free(name: str, taken: set[str]) -> str:
    """The name, or with more underscores one that is not taken."""
    known = {each.lower() for each in taken}
    while name.lower() in known:
        name = f"_{name}"
    return name


def _with_texts(text: str, names: Iterable[str], texts: Iterable[str]) -> str:
    """An expression with other expressions in the place of some columns."""
    wanted = {name.lower(): shared_scalar(each) for name, each in zip(names, texts, strict=True)}

    def replaced(node: Tree) -> Tree:
        found = wanted.get(node.name.lower()) if isinstance(node, exp.Column) else None
        return (
            node
            if found is None
            else exp.paren(found.copy())
            if not isinstance(found, exp.Column)
            else found.copy()
        )

    return render(shared_scalar(text).transform(replaced))


def sql_aggregate(
    partial: Mapping[str, str], merge: Mapping[str, str], finish: str, inputs: Sequence[str] = ("x",)
) -> SqlAggregate:
    """Define an aggregate in Spark SQL.

    ``partial`` gives aggregate expressions over the inputs, ``merge`` says for each of them how two
    partials become one, ``finish`` is a scalar expression over the merged partials. It is evaluated like
    every other expression over the results of windows.

    >>> spread = sql_aggregate(
    ...     partial={"lo": "min(x)", "hi": "max(x)"}, merge={"lo": "min", "hi": "max"}, finish="hi - lo"
    ... )
    >>> str(spread("speed"))
    'sql(speed)'
    """
    if isinstance(inputs, str) or not inputs or not all(is_name(each) for each in inputs):
        raise BadAggregate(f"inputs {inputs!r}; give one or more identifiers, such as ('x',)")
    if not partial or set(partial) != set(merge):
        raise BadAggregate(
            f"partial has the columns {sorted(partial)}, merge has {sorted(merge)}; "
            "give both for the same columns"
        )
    given = Schema(tuple(Column(each, None) for each in inputs))
    columns = Schema(tuple(Column(_checked_name(each), None) for each in partial))
    return SqlAggregate(
        inputs=tuple(inputs),
        partial=tuple((name, _partial(name, text, given)) for name, text in partial.items()),
        merge=tuple((name, _merge(name, merge[name])) for name in partial),
        finish=scalar(finish, columns).sql,
    )


def _partial(name: str, text: str, inputs: Schema) -> str:
    tree = expand(parse_scalar(text))
    calls = [each for each in tree.walk() if is_aggregate_name(call_name(each))]
    inside = {id(each) for call in calls for each in call.walk()}
    outside = [each for each in tree.walk() if id(each) not in inside]
    loose = [each.sql("spark") for each in outside if isinstance(each, exp.Column)]
    if not calls or loose:
        what = f"{', '.join(loose)} outside of any" if loose else "no"
        raise BadAggregate(f"partial {name!r} is {text!r} with {what} aggregate; write one such as 'sum(x)'")
    for call in calls:
        for argument in call.expressions:
            _check_argument(argument, inputs)
    for each in outside:
        refuse(each)
    return render(tree.transform(lambda node: _lowered(node, inputs)))


def _check_argument(argument: Tree, inputs: Schema) -> None:
    if isinstance(argument, exp.Distinct):
        raise BadAggregate(
            "DISTINCT partials cannot be merged; use ps.count_distinct() as an aggregate of its own"
        )
    if not isinstance(argument, exp.Star):
        of_tree(argument, inputs)


def _lowered(node: Tree, inputs: Schema) -> Tree:
    return exp.column(inputs.column(node.name).name, quoted=True) if isinstance(node, exp.Column) else node


def _merge(name: str, text: str) -> str:
    spelled = text.lower().replace(" ", "").removesuffix(f"({name.lower()})")
    if spelled in MERGES:
        return spelled
    hint = "; counts merge by sum" if spelled.startswith("count") else ""
    raise BadAggregate(f"partial {name!r} cannot merge by {text!r}; the merges are {', '.join(MERGES)}{hint}")


def _substituted(tree: Tree, values: dict[str, Expression]) -> Tree:
    def argument(node: Tree) -> Tree:
        return exp.paren(parse_scalar(values[node.name].sql)) if isinstance(node, exp.Column) else node

    return tree.transform(argument)


def _partial_type(text: str, inputs: Schema) -> str | None:
    call = parse_scalar(text)
    name = call_name(call)
    if name == "count":
        return "bigint"
    if name not in {"sum", "min", "max", "avg"} or len(call.expressions) != 1:
        return None
    definition = DEFINITIONS[name].construct("x").definition
    argument = of_tree(call.expressions[0], inputs)
    definition.check([argument], [call.expressions[0].sql("spark")])
    kind = definition.result_type([argument.type])
    # Spark decides how wide a sum of sums of decimals is.
    return None if kind and kind.startswith("decimal") and name == "sum" else kind


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise BadAggregate(f"partial column {name!r} is not an identifier; rename it")
    return name
