"""The plan of a query: stages, tools chosen and why."""

from penstock.compile.subqueries import cut
from penstock.compile.window_words import window_words
from penstock.query import Aggregation, Query

__all__ = ["explain"]


def explain(query: Query, form: str = "text", strategy: str = "subquery", channels: int | None = None) -> str:
    """What will run, stage by stage, with the reason for every choice."""
    assert form == "text", form
    lines = []
    for stage in cut(query, strategy).stages:
        lines.append(f"stage {stage.number}: {stage.operator}, {channels or 'all'} channels")
        if isinstance(stage.operator, Aggregation):
            lines += window_words(stage.relation)
    return "\n".join(lines)
