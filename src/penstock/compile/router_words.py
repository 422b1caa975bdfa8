"""How the tuples of a stage find their channel, in words (002, section III.D)."""

from penstock.compile.channels import is_single
from penstock.compile.stages import Stage
from penstock.query import Aggregation, Join

__all__ = ["router_kind", "router_words"]


def router_kind(stage: Stage) -> str:
    """One of beside, one channel, grid and hash."""
    if stage.beside is not None:
        return "beside"
    if is_single(stage):
        return "one channel"
    return "hash" if stage.operator.keys else "grid"


def router_words(stage: Stage) -> str:
    """The router and the reason for it."""
    kind = router_kind(stage)
    if kind == "beside":
        return f"none: its tuples are in the channels of stage {stage.beside} already"
    if kind == "one channel":
        return f"one channel: {_why_one(stage)}"
    if kind == "grid":
        return "grid: each tuple goes to about √channels of them, each pair meets in exactly one"
    names = ", ".join(_keys(stage))
    native = "a native expression: no Python touches a row to route it"
    if isinstance(stage.operator, Join) and stage.operator.within and stage.operator.how != "full":
        return f"xxhash64({names}) by ring and table, hot keys on grids of channels of their own; {native}"
    return f"xxhash64({names}) by ring and table, {native}"


def _keys(stage: Stage) -> list[str]:
    operator = stage.operator
    if isinstance(operator, Aggregation):
        return [name for name, _ in operator.keys]
    return [key.left if key.left == key.right else f"{key.left} or {key.right}" for key in operator.keys]


def _why_one(stage: Stage) -> str:
    operator = stage.operator
    if isinstance(operator, Aggregation):
        return "without a key there is one group, and its partials are few"
    if operator.last is not None:
        return "without a key the last rows are those of the whole stream"
    return "a row without a partner is known only where all rows of the other side are"
