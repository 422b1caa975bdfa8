"""Which tuples a run accepts, worked out tuple by tuple from the rule of lateness.

A stream promises nothing below its latest tuple minus the delay, counting every tuple with a time, also
those that a where() drops or that are late themselves; before its first tuple it promises nothing. A port
promises the least of its feeds. A window closes when its end is at or below its port's promise, and its
stage promises the start of the first window that is open; a join by time promises the least time that rows
to come and rows that wait can still carry, a join by window the start of the first window that both sides
leave open, a join with the last rows the lesser of its sides; sessions and windows of counts, whose results
have the time of their end, promise what their port does.

A tuple is late if a stateful operator that its stream feeds directly, through stateless operators and unions,
had passed it before the epoch began: a window if all windows of the tuple were closed (or one of them, where
tuples count in all or in none), windows of counts and a join the promise of that side, a join by window the
end of the last window that both sides have passed. It counts in those windows that were open before its
epoch. Sessions judge by key; what is late for them alone, the batch tells. A stream feeding several
operators has the largest of these bounds: what is late for one of them is taken by none, nor by outputs, so
that all of a graph sees the same tuples.
"""

from dataclasses import dataclass

from graphs.graph import Graph, Grouping, Joined, Node, Source

Latest = dict[int, int | None]


@dataclass(frozen=True)
class Judged:
    accepted: dict[str, list[dict]]
    late: int
    rejected: int


def judge(graph: Graph) -> Judged:
    """Part the tuples of all streams, epoch after epoch."""
    latest: Latest = dict.fromkeys(graph.sources.values())
    accepted = {name: [] for name in graph.sources}
    late = rejected = 0
    for number in range(len(next(iter(graph.epochs.values())))):
        bounds = {name: bound(graph, place, latest) for name, place in graph.sources.items()}
        for name, place in graph.sources.items():
            time = graph.nodes[place].time
            given = graph.epochs[name][number]
            held = [row for row in given if row[time] is not None]
            taken = [row for row in held if bounds[name] is None or row[time] >= bounds[name]]
            accepted[name] += [{**row, "_e": number} for row in taken]
            late += len(held) - len(taken)
            rejected += len(given) - len(held)
            times = [row[time] for row in held] + ([] if latest[place] is None else [latest[place]])
            latest[place] = max(times, default=None)
    return Judged(accepted, late, rejected)


def bound(graph: Graph, source: int, latest: Latest) -> int | None:
    """The time below which tuples of a stream are late."""
    passed = []
    for node in graph.nodes:
        for each in node.inputs if node.stateful else ():
            reached = port(graph, each, latest)
            if source in graph.origins(each) and reached is not None:
                passed.append(_floor(graph, node, reached, latest))
    return max((each for each in passed if each is not None), default=None)


def _floor(graph: Graph, node: Node, reached: int, latest: Latest) -> int | None:
    """The time below which a tuple is late for a node that a port has reached this time of."""
    if isinstance(node.operator, Grouping):
        return node.operator.late_below(reached)
    size = node.operator.size
    if size is None:
        return reached
    ports = [port(graph, each, latest) for each in node.inputs]
    return None if None in ports else min(ports) // size * size


def frontiers(graph: Graph) -> dict[int, list[int | None]]:
    """For every grouping of tuples how far its port was when each epoch began."""
    latest: Latest = dict.fromkeys(graph.sources.values())
    found = {place: [] for place, node in enumerate(graph.nodes) if isinstance(node.operator, Grouping)}
    for number in range(len(next(iter(graph.epochs.values()), []))):
        for place, reached in found.items():
            reached.append(port(graph, graph.nodes[place].inputs[0], latest))
        for name, place in graph.sources.items():
            held = [row[graph.nodes[place].time] for row in graph.epochs[name][number]]
            latest[place] = max((each for each in [*held, latest[place]] if each is not None), default=None)
    return found


def port(graph: Graph, place: int, latest: Latest) -> int | None:
    """The promise of the relation at a port: the least of its feeds."""
    promised = [_promise(graph, each, latest) for each in graph.origins(place)]
    return None if None in promised else min(promised)


def _promise(graph: Graph, place: int, latest: Latest) -> int | None:
    operator = graph.nodes[place].operator
    if isinstance(operator, Source):
        return None if latest[place] is None else latest[place] - operator.delay
    ports = [port(graph, each, latest) for each in graph.nodes[place].inputs]
    if None in ports:
        return None
    if isinstance(operator, Grouping):
        return operator.promise(ports[0])
    assert isinstance(operator, Joined)
    if operator.size is not None:
        return min(ports) // operator.size * operator.size
    if operator.last is not None:
        return min(ports)
    return _promised(operator, *ports)


def _promised(operator: Joined, left: int, right: int) -> int:
    """What comes is not before its frontier; what waits has a partner to come or stands alone."""
    ahead, back = operator.apart
    waits = {"left": min(left, right - ahead), "right": min(right, left - back)}
    if not operator.paired:
        return waits["left"]
    found = [waits[side] for side in waits if operator.how in {side, "full"}]
    pairs = {**waits, "earliest": min(waits.values()), "latest": min(left, right)}
    return min([*found, pairs[operator.times]])
