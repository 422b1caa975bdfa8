"""Aggregates that users define in Spark SQL: partial columns, a merge for each, and the result from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from penstock.aggregates.aggregate import DEFINITIONS, Aggregate, Definition, is_name
from penstock.aggregates.kinds import Fold
from penstock.aggregates.partials import Lowered, PaneColumns
from penstock.errors import BadAggregate, WrongType
from penstock.expressions import types
from penstock.expressions.duck import check, evaluate, translate
from penstock.expressions.functions import is_aggregate_name
from penstock.expressions.macros import expand
from penstock.expressions.parsing import Tree, call_name, parse_scalar, render
from penstock.expressions.scalar import Expression, of_tree, refuse, scalar
from penstock.expressions.schema import Column, Schema

__all__ = ["MERGES", "SqlAggregate", "sql_aggregate"]

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

    def __call__(self, *arguments: str) -> Aggregate:
        """The aggregate over these SQL texts, one for each input."""
        if len(arguments) != len(self.inputs):
            raise BadAggregate(f"got {len(arguments)} arguments; the inputs are ({', '.join(self.inputs)})")
        return Aggregate(self, tuple(arguments))

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

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Spark forms the partials and tells their types; DuckDB evaluates the finish in the channel."""
        partial_sql = self.partial_sql(tuple(arguments))
        described = pane.describe(list(partial_sql.values())) if pane.describe else []
        kinds = [types.arrow_type(each) for each in described] or [pa.null()] * len(partial_sql)
        schema = pa.schema(zip(partial_sql, kinds, strict=True))
        names = {}
        for name, sql in partial_sql.items():
            operation: Any = dict(self.merge)[name]
            names[name] = pane.partial(Fold(operation, schema.field(name).type), (sql,), None).name
        finish = Evaluated(translate(self.finish), names)
        if not described:
            return finish, pa.null()
        return finish, check(finish.select, schema, self.finish).field("value").type


@dataclass(frozen=True)
class Evaluated:
    """An SQL expression over partial columns."""

    sql: str
    columns: Mapping[str, str]

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Evaluated by DuckDB."""
        table = pa.table({name: columns[source] for name, source in self.columns.items()})
        return evaluate(self.select, table)["value"].combine_chunks()

    @property
    def select(self) -> str:
        """The statement to evaluate."""
        return f"SELECT {self.sql} AS value FROM input"


def sql_aggregate(
    partial: Mapping[str, str], merge: Mapping[str, str], finish: str, inputs: Sequence[str] = ("x",)
) -> SqlAggregate:
    """Define an aggregate in Spark SQL.

    ``partial`` gives aggregate expressions over the inputs, ``merge`` says for each of them how two
    partials become one, ``finish`` is a scalar expression over the merged partials.

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
