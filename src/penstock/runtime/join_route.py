"""The channels of a join's rows as native Spark expressions over the columns that a side sends."""

from dataclasses import dataclass

from penstock.compile import TIME, JoinPlan

__all__ = ["Route", "route"]


@dataclass(frozen=True)
class Route:
    """The channel of a row, and the condition that leaves out rows which can match nothing."""

    column: str
    where: str = ""


def route(plan: JoinPlan, side: int, channels: int) -> Route:
    """Equal keys go to one channel; rows of a Cartesian product to every channel that forms their pairs."""
    keys = plan.join.left.keys
    if not keys:
        return Route("0")
    known = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    hashed = _modulo(", ".join(keys), channels)
    if not plan.join.keeps_unmatched[side]:
        return Route(hashed, f" WHERE {known}")
    # A null is equal to nothing, so these rows may be anywhere; all in one place they would be a hot key.
    return Route(f"CASE WHEN {known} THEN {hashed} ELSE {_modulo(TIME, channels)} END")


def _modulo(values: str, channels: int) -> str:
    return f"cast(pmod(xxhash64({values}), {channels}L) AS int)"
