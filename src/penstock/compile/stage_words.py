"""A stage in words, whatever its operator."""

from penstock.compile.join_words import join_words
from penstock.compile.process_words import process_words
from penstock.compile.stages import Stage
from penstock.compile.window_words import window_words
from penstock.query import Join, Process

__all__ = ["stage_kind", "stage_words"]


def stage_kind(stage: Stage) -> str:
    """One of join, cross, process and aggregation."""
    operator = stage.operator
    if isinstance(operator, Join):
        return "join" if operator.keys else "cross"
    return "process" if isinstance(operator, Process) else "aggregation"


def stage_words(stage: Stage) -> list[str]:
    """What its channels do, with the reason for every choice."""
    operator = stage.operator
    if isinstance(operator, Join):
        return join_words(operator)
    return process_words(operator) if isinstance(operator, Process) else window_words(stage.relation)
