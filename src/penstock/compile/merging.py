"""Neighbours that part tuples alike are merged: the second runs where its tuples are (002, section III.F).

An aggregation is merged with the stage that feeds it if its groups lie whole in one channel: its keys
contain, unchanged on the way, all columns by which that stage parts its tuples. Each merge saves one
exchange between stages. Not merged is what only Spark SQL can combine, such as a sketch, and what follows a
product without keys, which parts pairs by a grid, or an outer join that lets rows without a key through:
those may be in any channel.
"""

from dataclasses import replace

from penstock.compile.plan import compile_aggregation
from penstock.compile.stages import Stage, Subqueries
from penstock.query import Aggregation, Branch, Join, Select, Step, Where, quoted

__all__ = ["merged", "parted_by"]


def merged(subqueries: Subqueries) -> Subqueries:
    """The same stages, those that run beside another marked, with a note for each."""
    stages: list[Stage] = []
    parted: list[frozenset[str]] = []
    notes = list(subqueries.notes)
    for stage in subqueries.stages:
        beside = _beside(stage, parted)
        stages.append(replace(stage, beside=beside))
        if beside is None:
            parted.append(_parted(stage))
        else:
            by = ", ".join(sorted(parted[beside]))
            notes.append(f"stage {stage.number} merged with stage {beside}: both part tuples by {by}")
            parted.append(_still_parted(stage, parted[beside]))
    return replace(subqueries, stages=tuple(stages), notes=tuple(notes))


def parted_by(subqueries: Subqueries, number: int) -> tuple[str, ...]:
    """The keys of a stage by which its channels part tuples, in the order of the stage that routes them.

    Of a stage beside another, those that carry on the keys of that one.
    """
    stage = subqueries.stages[number]
    operator = stage.operator
    if stage.beside is None:
        if isinstance(operator, Aggregation):
            return tuple(name for name, _ in operator.keys)
        return tuple(key.left for key in operator.keys)
    return tuple(min(_carriers(stage, column)) for column in parted_by(subqueries, stage.beside))


def _beside(stage: Stage, parted: list[frozenset[str]]) -> int | None:
    if not isinstance(stage.operator, Aggregation) or len(stage.ports[0]) > 1:
        return None
    origin = stage.ports[0][0].origin
    if not isinstance(origin, int) or not parted[origin]:
        return None
    whole = all(_carriers(stage, column) for column in parted[origin])
    return origin if whole and "channel" in compile_aggregation(stage.relation).combinings else None


def _parted(stage: Stage) -> frozenset[str]:
    """The columns of its results that decide on the channel of each; none if something else does."""
    operator = stage.operator
    if isinstance(operator, Aggregation):
        return frozenset(name for name, _ in operator.keys)
    lost = any(_may_lack_a_key(stage, operator, place) for place in range(2))
    return frozenset() if lost else frozenset(key.left for key in operator.keys)


def _may_lack_a_key(stage: Stage, join: Join, place: int) -> bool:
    """Whether rows of a side with a null in their key are delivered."""
    if join.how not in {"full", ("left", "right")[place]}:
        return False
    schema = stage.relation.inputs[place].schema
    return any(schema.column((key.left, key.right)[place]).nullable for key in join.keys)


def _still_parted(stage: Stage, columns: frozenset[str]) -> frozenset[str]:
    """The keys of an aggregation beside a stage that carry on the columns by which that one parts."""
    return frozenset(name for column in columns for name in _carriers(stage, column))


def _carriers(stage: Stage, column: str) -> frozenset[str]:
    """The keys of an aggregation that are a column of the stage before it, unchanged."""
    assert isinstance(stage.operator, Aggregation)
    texts = {quoted(name) for name in _names(column, stage.ports[0][0].inside)}
    return frozenset(name for name, key in stage.operator.keys if key.sql in texts)


def _names(column: str, steps: tuple[Step, ...]) -> frozenset[str]:
    """The names under which a column comes out of the steps; a function may change all but what it keeps."""
    names = frozenset({column})
    for step in steps:
        if isinstance(step, Select):
            texts = {quoted(name) for name in names}
            names = frozenset(name for name, each in step.columns if each.sql in texts)
        elif not isinstance(step, (Where, Branch)):
            names &= frozenset(step.kept)
    return names
