"""A plan as one JSON object for programs."""

import json
from typing import Any

from penstock.compile.naming import named
from penstock.compile.outline import Outline
from penstock.compile.router_words import router_kind, router_words
from penstock.compile.stage_words import stage_kind, stage_words
from penstock.compile.stages import Feed, Stage
from penstock.query import Stream

__all__ = ["plan_json"]


def plan_json(plan: Outline) -> str:
    """Streams, stages with their feeds, routers and channels, outputs and notes; times in microseconds.

    A feed comes from a stream, by name, or from a stage, by number. Channels are null for one per core.
    """
    subqueries = plan.subqueries
    found = {
        "strategy": subqueries.strategy,
        "streams": [_stream(each) for each in subqueries.query.streams],
        "stages": [_stage(each, plan.channels[each.number]) for each in subqueries.stages],
        "outputs": [
            {"relation": named(relation), "feeds": [_feed(feed) for feed in port]}
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
        "kind": stage_kind(stage),
        "ports": [[_feed(feed) for feed in port] for port in stage.ports],
        "router": {"kind": router_kind(stage), "words": router_words(stage)},
        "channels": channels,
        "beside": stage.beside,
        "columns": list(stage.relation.schema.names),
        "words": stage_words(stage),
    }


def _feed(feed: Feed) -> dict[str, Any]:
    return {
        "origin": feed.origin.name if isinstance(feed.origin, Stream) else feed.origin,
        "inside": [str(step) for step in feed.inside],
        "outside": [str(step) for step in feed.outside],
        "exchanged": feed.exchanged,
    }
