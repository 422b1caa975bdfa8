"""The content of a plan in any format: the cut query, its channels and routers, and notes."""

from dataclasses import dataclass

from penstock.compile.channels import channels_of, is_single
from penstock.compile.rewrite import optimise
from penstock.compile.stages import Port, Stage, Subqueries, cut
from penstock.errors import BadRouting
from penstock.query import Query, Stream

__all__ = ["Outline", "outline", "path_words", "router_kind", "router_words"]


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


def path_words(port: Port) -> tuple[str, ...]:
    """How results of an output that no stage computes are made, and why; nothing if a stage computes some.

    The rule is one for all: the tasks that read a stream write the results, on Arrow. Plain Spark SQL was
    never the cheaper reader and writer where both were measured, filter and project and the NEXMark queries
    without state: it builds and plans rows that these tasks do not. So Spark SQL gets the steps that only it
    can evaluate, and no others.
    """
    if not all(isinstance(feed.origin, Stream) for feed in port):
        return ()
    why = "Arrow from the source to the sink takes less processor time than Spark SQL"
    if any(feed.outside for feed in port):
        why = "Spark SQL gets the steps that only it can evaluate"
    return ("path: our own, no channel and no state; the tasks that read write the results", f"why: {why}")


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
