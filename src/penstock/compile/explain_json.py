"""A plan as one JSON object for programs."""

import json
from typing import Any

from penstock.compile.outline import Outline, path_words, router_kind, router_words
from penstock.compile.stages import Feed, Stage
from penstock.query import Stream

__all__ = ["explain_json"]


def explain_json(plan: Outline) -> str:
    """Streams, stages with their feeds, routers and channels, outputs and notes; times in microseconds.

    A feed comes from a stream, by name, or from a stage, by number. Null channels mean one per core.
    """
    subqueries = plan.subqueries
    found = {
        "strategy": subqueries.strategy,
        "streams": [_stream(each) for each in subqueries.query.streams],
        "stages": [_stage(each, plan.channels[each.number]) for each in subqueries.stages],
        "outputs": [
            {
                "relation": relation.label,
                "feeds": [_feed(feed) for feed in port],
                "path": list(path_words(port)),
            }
            for relation, port in zip(subqueries.query.outputs, subqueries.outputs, strict=True)
        ],
        "notes": list(plan.notes),
    }
    return json.dumps(found, ensure_ascii=False, indent=2)


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "time": stream.time,
        "delay": stream.delay,
        "idle": stream.idle,
        "key": stream.key,
        "columns": list(stream.schema.names),
    }


def _stage(stage: Stage, channels: int | None) -> dict[str, Any]:
    return {
        "number": stage.number,
        "operator": str(stage.operator),
        "kind": stage.operator.kind,
        "ports": [[_feed(feed) for feed in port] for port in stage.ports],
        "router": {"kind": router_kind(stage), "words": router_words(stage)},
        "channels": channels,
        "beside": stage.host,
        "columns": list(stage.relation.schema.names),
        "words": stage.operator.words(),
    }


def _feed(feed: Feed) -> dict[str, Any]:
    return {
        "origin": feed.origin.name if isinstance(feed.origin, Stream) else feed.origin,
        "inside": [str(step) for step in feed.inside],
        "outside": [str(step) for step in feed.outside],
        "beyond": [str(step) for step in feed.beyond],
        **({"why_outside": feed.why_outside} if feed.why_outside else {}),
    }
