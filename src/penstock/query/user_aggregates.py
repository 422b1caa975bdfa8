"""Aggregates that users define: in Spark SQL, or in Python over Arrow."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from sqlglot import exp

from penstock.errors import BadAggregate, QueryError
from penstock.expressions import types
from penstock.expressions.functions import AGGREGATES
from penstock.expressions.inference import type_of
from penstock.expressions.macros import expand
from penstock.expressions.parsing import Tree, call_name, parse_scalar, render
from penstock.expressions.scalar import Expression, of_tree, refuse, scalar
from penstock.expressions.schema import Column, Schema
from penstock.query.aggregate_call import Aggregate
from penstock.query.result_types import result_type

if TYPE_CHECKING:
    import numpy as np

__all__ = ["MERGES", "ArrowAggregate", "SqlAggregate", "sql_aggregate"]

MERGES: Final = ("sum", "min", "max", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or")


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """An aggregate in Spark SQL: partial columns per pane, how each merges, and the result from them.

    Made by ``sql_aggregate``; calling it with SQL texts, one for each input, gives the aggregate.
    """

    inputs: tuple[str, ...]
    partial: tuple[tuple[str, str], ...]
    merge: tuple[tuple[str, str], ...]
    finish: str

    def __call__(self, *arguments: str) -> Aggregate:
        """The aggregate over these SQL texts, one for each input."""
        if len(arguments) != len(self.inputs):
            raise BadAggregate(f"got {len(arguments)} arguments; the inputs are ({', '.join(self.inputs)})")
        return Aggregate("sql", tuple(arguments), definition=self)

    def partial_sql(self, arguments: tuple[Expression, ...]) -> dict[str, str]:
        """The Spark SQL of each partial column, the inputs replaced by what they stand for."""
        values = dict(zip(self.inputs, arguments, strict=True))
        return {name: render(_substituted(parse_scalar(text), values)) for name, text in self.partial}

    def result_type(self, arguments: tuple[Expression, ...]) -> str | None:
        """The type of the result, None where only Spark can tell."""
        given = Schema(
            tuple(Column(name, each.type) for name, each in zip(self.inputs, arguments, strict=True))
        )
        partial = Schema(tuple(Column(name, _partial_type(text, given)) for name, text in self.partial))
        return scalar(self.finish, partial).type


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
    if isinstance(inputs, str) or not inputs or not all(_is_name(each) for each in inputs):
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


class ArrowAggregate(ABC):
    """An aggregate in Python over Arrow; subclass it, and call the subclass with SQL texts.

    A subclass names the columns of its ``state`` and the type of its ``result`` in SQL types.
    ``accumulate`` sees the rows of a group in event-time order, ``merge`` gets the state of the earlier
    pane on the left. Tuples of one pane that arrive in different epochs are merged in the order of the
    epochs, so a result that depends on the order within a pane depends on where epochs were cut.

    Rows of a hot key are dealt out over several channels, which accumulate their shares apart; the shares of
    one pane are then merged in any order. Set ``split = False`` where that order would change the result;
    a hot key then stays the work of one channel.

    >>> class Seen(ArrowAggregate):
    ...     state = {"rows": "bigint"}
    ...     result = "bigint"
    ...     def accumulate(self, groups, n, *columns): ...
    ...     def merge(self, left, right): ...
    ...     def finish(self, state): ...
    >>> Seen("speed")
    Seen('speed')
    """

    state: ClassVar[Mapping[str, str]]
    result: ClassVar[str]
    split: ClassVar[bool] = True
    arguments: tuple[str, ...]

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "state"):
            _check_state(cls.__qualname__, cls.state)
        if hasattr(cls, "result"):
            _check_type(f"{cls.__qualname__}.result", cls.result)

    def __init__(self, *arguments: str) -> None:
        for wanted in ("state", "result"):
            if not hasattr(self, wanted):
                raise BadAggregate(f"{type(self).__qualname__} has no {wanted}; set it as a class attribute")
        if not arguments or not all(isinstance(each, str) for each in arguments):
            raise BadAggregate(
                f"{type(self).__qualname__}{arguments!r}; give one or more SQL texts, such as 'speed'"
            )
        self.arguments = arguments

    @abstractmethod
    def accumulate(
        self, groups: "np.ndarray[tuple[int], np.dtype[np.int64]]", n: int, *columns: pa.Array
    ) -> pa.RecordBatch:
        """State of n groups from rows, of which row i belongs to group groups[i]."""

    @abstractmethod
    def merge(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """State of both sides, row by row; the left is the earlier."""

    @abstractmethod
    def finish(self, state: pa.RecordBatch) -> pa.Array:
        """The result of each row of state."""

    def state_schema(self) -> pa.Schema:
        """The state's columns as Arrow holds them."""
        return pa.schema([(name, types.arrow_type(kind)) for name, kind in self.state.items()])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.arguments))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.arguments))})"


def _partial(name: str, text: str, inputs: Schema) -> str:
    tree = expand(parse_scalar(text))
    calls = [each for each in tree.walk() if call_name(each) in AGGREGATES]
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
            "DISTINCT partials cannot be merged; use ps.count_distinct() beside this aggregate"
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
    kind = result_type(name, type_of(call.expressions[0], inputs), call.expressions[0].sql("spark"))
    # A sum of sums of decimals is wider than either, and how wide is Spark's affair.
    return None if kind and kind.startswith("decimal") and name == "sum" else kind


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _checked_name(name: str) -> str:
    if not _is_name(name):
        raise BadAggregate(f"partial column {name!r} is not an identifier; rename it")
    return name


def _check_state(owner: str, state: object) -> None:
    if not isinstance(state, Mapping) or not state:
        raise BadAggregate(f"{owner}.state is {state!r}; give its columns, such as {{'total': 'double'}}")
    for name, kind in state.items():
        if not _is_name(name):
            raise BadAggregate(f"{owner}.state has the column {name!r}; names have to be identifiers")
        _check_type(f"{owner}.state[{name!r}]", kind)


def _check_type(where: str, kind: object) -> None:
    if not isinstance(kind, str):
        raise BadAggregate(f"{where} is {kind!r}; give a SQL type, such as 'double'")
    try:
        types.normalise(kind)
    except QueryError as error:
        raise BadAggregate(f"{where}: {error}") from error
