"""What there is to tell of a plan, whatever the form: the cut query, its channels, how it came about."""

from dataclasses import dataclass

from penstock.compile.channels import channels_of, is_single
from penstock.compile.optimise import optimise
from penstock.compile.stages import Feed, Stage, Subqueries
from penstock.compile.subqueries import cut
from penstock.errors import BadRouting
from penstock.query import Query

__all__ = ["Outline", "origin_of", "outline"]


@dataclass(frozen=True)
class Outline:
    """A cut query, the channels of each stage (None: one for each core) and what was done to it."""

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
    hosts = sum(stage.beside is None for stage in subqueries.stages)
    return channels_of(subqueries, max(channels, hosts))


def origin_of(feed: Feed) -> str:
    """Where a feed comes from, by name."""
    return f"stage {feed.origin}" if isinstance(feed.origin, int) else feed.origin.name
