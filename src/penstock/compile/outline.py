"""The content of a plan in any format: the cut query, its channels and routers, and notes."""

from dataclasses import dataclass

from penstock.compile.channels import channels_of, is_single
from penstock.compile.rewrite import optimise
from penstock.compile.stages import Stage, Subqueries, cut
from penstock.errors import BadRouting
from penstock.query import Query

__all__ = ["Outline", "outline", "router_kind", "router_words"]


@dataclass(frozen=True)
class Outline:
    """A cut query, the channels of each stage (None: one per core) and notes on the rewritings."""

    subqueries: Subqueries
    channels: tuple[int | None, ...]
    notes: tuple[str, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages."""
        return self.subqueries.stages


def outline(query: Query, strategy: str, channels: int | None) -> Outline:
    """Rewrite and cut the query as a run would."""
    if channels is not None and channels < 1:
        raise BadRouting(f"channels={channels}; give 1 or more, or leave it out for one per core")
    optimised = optimise(query)
    subqueries = cut(optimised.query, strategy)
    return Outline(subqueries, _counts(subqueries, channels), optimised.notes + subqueries.notes)


def _counts(subqueries: Subqueries, channels: int | None) -> tuple[int | None, ...]:
    if channels is None:
        return tuple(1 if is_single(stage) else None for stage in subqueries.stages)
    hosts = sum(stage.host is None for stage in subqueries.stages)
    return channels_of(subqueries, max(channels, hosts))


def router_kind(stage: Stage) -> str:
    """One of beside, one channel, grid and hash."""
    if stage.host is not None:
        return "beside"
    return "one channel" if is_single(stage) else stage.operator.route


def router_words(stage: Stage) -> str:
    """How the tuples of a stage find their channel, and the reason for it ([002] §III.D)."""
    if stage.host is not None:
        return f"none: its tuples are in the channels of stage {stage.host} already"
    if reason := stage.operator.why_single():
        return f"one channel: {reason}"
    return stage.operator.route_words()
