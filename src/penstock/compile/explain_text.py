"""A plan as text for people."""

from penstock.compile.outline import Outline, path_words, router_words
from penstock.compile.stages import Feed, Port, Stage, Subqueries, origin_of
from penstock.operators import Step
from penstock.query import Relation, Stream, words

__all__ = ["explain_text"]


def explain_text(plan: Outline) -> str:
    """The graph, the streams, the stages, the outputs and the rewritings that led to them."""
    lines = ["graph", *_indented(_graph(plan.subqueries))]
    lines += ["streams", *_indented([_stream(each) for each in plan.subqueries.query.streams])]
    for stage in plan.stages:
        lines += [f"stage {stage.number}: {stage.operator}", *_indented(_stage(plan, stage))]
    lines += ["outputs", *_indented(_outputs(plan.subqueries))]
    if plan.notes:
        lines += ["optimisations", *_indented(list(plan.notes))]
    return "\n".join(lines)


def _outputs(subqueries: Subqueries) -> list[str]:
    lines = []
    for place, port in enumerate(subqueries.outputs):
        lines.append(f"output {place} ← {_port(port)}")
        lines += _indented(list(path_words(port)))
    return lines


def _graph(subqueries: Subqueries) -> list[str]:
    """The graph as a tree: each output with its inputs below it, down to the streams.

    A relation that is read twice is drawn once; the second time only its stage is named.
    """
    numbers: dict[Relation, int] = {stage.relation: stage.number for stage in subqueries.stages}
    lines: list[str] = []
    drawn: set[Relation] = set()

    def draw(relation: Relation, first: str, later: str) -> None:
        number = numbers.get(relation)
        label = f"   [stage {number}]" if number is not None else ""
        again = relation in drawn and bool(relation.inputs)
        lines.append(f"{first}{relation.label}{label}{', drawn above' if again else ''}")
        if again:
            return
        drawn.add(relation)
        for place, each in enumerate(relation.inputs):
            last = place + 1 == len(relation.inputs)
            draw(each, f"{later}{'└─ ' if last else '├─ '}", f"{later}{'   ' if last else '│  '}")

    for place, output in enumerate(subqueries.query.outputs):
        lines.append(f"output {place}")
        draw(output, "└─ ", "   ")
    return lines


def _stream(stream: Stream) -> str:
    return (
        f"{stream.name}: event time {stream.time}, delay {words(stream.delay)}"
        + (f", streams told apart by {stream.key}" if stream.key else "")
        + (f", idle after {words(stream.idle)}" if stream.idle is not None else "")
    )


def _stage(plan: Outline, stage: Stage) -> list[str]:
    ports = zip(stage.operator.ports, stage.ports, strict=True)
    lines = [f"{name} ← {_port(port)}" for name, port in ports]
    count = plan.channels[stage.number]
    lines += [
        f"input merger: {_merger(stage)}",
        f"route: {router_words(stage)}",
        f"channels: {'one per core' if count is None else count}",
    ]
    return [*lines, *stage.operator.words(), *(f"load balancer: {each}" for each in _ways_out(plan, stage))]


def _merger(stage: Stage) -> str:
    feeds = sum(map(len, stage.ports))
    if feeds == 1:
        return "one feed, its frontier decides what is complete"
    return (
        f"{feeds} feeds by frontier: event order, not arrival order, decides, and the slowest is waited for"
    )


def _ways_out(plan: Outline, stage: Stage) -> list[str]:
    found = [
        f"to stage {other.number}{_inside(feed)}{', in its own channels' if other.host is not None else ''}"
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
    shown = (
        [f"{_steps(feed.inside)} (DuckDB on Arrow, as it is read)"] if _is_read(feed) and feed.inside else []
    )
    if feed.outside:
        shown.append(f"{_steps(feed.outside)} (Spark SQL, because {feed.why_outside})")
    if feed.beyond:
        shown.append(f"{_steps(feed.beyond)} (DuckDB on Arrow)")
    return f"{origin_of(feed)}: {' → '.join(shown)}" if shown else origin_of(feed)


def _is_read(feed: Feed) -> bool:
    return isinstance(feed.origin, Stream)


def _steps(steps: tuple[Step, ...]) -> str:
    return " → ".join(map(str, steps))


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
