"""A plan as text for people."""

from penstock.compile.graph_tree import graph_tree
from penstock.compile.outline import Outline, origin_of
from penstock.compile.router_words import router_words
from penstock.compile.stage_words import stage_words
from penstock.compile.stages import Feed, Port, Stage
from penstock.query import Join, Step, Stream, words

__all__ = ["plan_text"]


def plan_text(plan: Outline) -> str:
    """The graph, the streams, the stages, the outputs and what was done to get there."""
    lines = ["graph", *_indented(graph_tree(plan.subqueries))]
    lines += ["streams", *_indented([_stream(each) for each in plan.subqueries.query.streams])]
    for stage in plan.stages:
        lines += [f"stage {stage.number}: {stage.operator}", *_indented(_stage(plan, stage))]
    outputs = [f"output {place} ← {_port(port)}" for place, port in enumerate(plan.subqueries.outputs)]
    lines += ["outputs", *_indented(outputs)]
    if plan.notes:
        lines += ["optimisations", *_indented(list(plan.notes))]
    return "\n".join(lines)


def _stream(stream: Stream) -> str:
    return (
        f"{stream.name}: event time {stream.time}, delay {words(stream.delay)}"
        + (f", streams told apart by {stream.key}" if stream.key else "")
        + (f", idle after {words(stream.idle)}" if stream.idle is not None else "")
    )


def _stage(plan: Outline, stage: Stage) -> list[str]:
    names = ("left", "right") if isinstance(stage.operator, Join) else ("input",)
    lines = [f"{name} ← {_port(port)}" for name, port in zip(names, stage.ports, strict=True)]
    count = plan.channels[stage.number]
    lines += [
        f"input merger: {_merger(stage)}",
        f"route: {router_words(stage)}",
        f"channels: {'one per core' if count is None else count}",
    ]
    return [*lines, *stage_words(stage), *(f"load balancer: {each}" for each in _ways_out(plan, stage))]


def _merger(stage: Stage) -> str:
    feeds = sum(map(len, stage.ports))
    if feeds == 1:
        return "one feed, its frontier decides what is complete"
    return (
        f"{feeds} feeds by frontier: event order, not arrival order, decides, and the slowest is waited for"
    )


def _ways_out(plan: Outline, stage: Stage) -> list[str]:
    found = [
        f"to stage {other.number}{_inside(feed)}{', in its own channels' if other.beside is not None else ''}"
        for other in plan.stages
        for port in other.ports
        for feed in port
        if feed.origin == stage.number
    ]
    outputs = enumerate(plan.subqueries.outputs)
    return found + [
        f"to output {place}{_inside(feed)}"
        for place, port in outputs
        for feed in port
        if feed.origin == stage.number
    ]


def _inside(feed: Feed) -> str:
    return f" after {_steps(feed.inside)} (DuckDB on Arrow, in the channel)" if feed.inside else ""


def _port(port: Port) -> str:
    return " and ".join(_feed(feed) for feed in port)


def _feed(feed: Feed) -> str:
    told = origin_of(feed)
    if feed.outside:
        dealt = ", each step dealt round robin" if feed.exchanged else ""
        told += f": {_steps(feed.outside)} (Spark SQL{dealt})"
    return told


def _steps(steps: tuple[Step, ...]) -> str:
    return " → ".join(map(str, steps))


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
