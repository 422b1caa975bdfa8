"""Unions before a stage are its input merger's, filters after it its load balancer's (002, section III.F)."""

from dataclasses import replace

from penstock.compile.stages import Feed, Port, Subqueries
from penstock.query import Branch, Where

__all__ = ["folding_notes", "trailing_filters"]


def folding_notes(subqueries: Subqueries) -> Subqueries:
    """The same, with a note for each union and each filter that costs no step of its own."""
    ports: list[tuple[str, Port]] = [
        (f"stage {stage.number}", port) for stage in subqueries.stages for port in stage.ports
    ]
    ports += [(f"output {place}", port) for place, port in enumerate(subqueries.outputs)]
    notes = list(subqueries.notes)
    for where, port in ports:
        if len(port) > 1:
            notes.append(f"union of {len(port)} feeds folded into the input merger of {where}")
    for where, port in ports:
        for feed in port:
            if filters := trailing_filters(feed):
                shown = " and ".join(map(str, filters))
                notes.append(f"{shown} folded into the load balancer of {_origin(feed)} towards {where}")
    return replace(subqueries, notes=tuple(dict.fromkeys(notes)))


def trailing_filters(feed: Feed) -> tuple[Where | Branch, ...]:
    """The filters after the last other step; none where every step is dealt to channels of its own."""
    found: list[Where | Branch] = []
    for step in () if feed.exchanged else reversed(feed.inside + feed.outside):
        if not isinstance(step, (Where, Branch)):
            break
        found.insert(0, step)
    return tuple(found)


def _origin(feed: Feed) -> str:
    return f"stage {feed.origin}" if isinstance(feed.origin, int) else feed.origin.name
