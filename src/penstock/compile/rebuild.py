"""The same operator over other inputs: schema, event time and pinned columns follow from what it is given."""

from collections.abc import Iterable, Sequence

from penstock.query import (
    Aggregation,
    Branch,
    Derived,
    Join,
    Map,
    Process,
    Relation,
    Schema,
    Select,
    Step,
    Union,
    Where,
)
from penstock.query.joining import joined_schema
from penstock.query.steps import schema_of_columns

__all__ = ["filtered", "rebuilt", "stepped"]


def stepped(step: Step, relation: Relation) -> Derived:
    """The relation after a stateless step."""
    return Derived(
        step, (relation,), _schema(step, relation), relation.time, relation.time_type, relation.pinned
    )


def filtered(relation: Relation, filters: Iterable[Where | Branch]) -> Relation:
    """The relation after filters, the first of them first."""
    for each in filters:
        relation = stepped(each, relation)
    return relation


def rebuilt(relation: Derived, inputs: Sequence[Relation], operator: Join | None = None) -> Derived:
    """The relation over these inputs, itself if they are its own; a join may give fewer columns."""
    given, wanted = tuple(inputs), operator or relation.operator
    if given == relation.inputs and wanted == relation.operator:
        return relation
    first = given[0]
    if isinstance(wanted, Union):
        return Derived(wanted, given, first.schema, first.time, first.time_type, first.pinned)
    if isinstance(wanted, (Aggregation, Process)):
        schema = wanted.schema(first.time_type)
        return Derived(wanted, given, schema, relation.time, relation.time_type, relation.pinned)
    if isinstance(wanted, Join):
        schema = joined_schema(wanted, *given)
        return Derived(wanted, given, schema, relation.time, relation.time_type, relation.pinned)
    return stepped(wanted, first)


def _schema(step: Step, relation: Relation) -> Schema:
    if isinstance(step, Select):
        return schema_of_columns(step.columns)
    if isinstance(step, Map):
        return Schema(tuple(relation.schema.column(name) for name in step.kept) + step.made.columns)
    return relation.schema
