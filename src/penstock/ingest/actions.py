"""What can be asked of a gate beside pushing and reading, and who may ask it."""

import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from penstock.errors import BadMessage
from penstock.ingest import steering
from penstock.ingest.rights import Rights
from penstock.ingest.serving import Asked, need, text
from penstock.ingest.wire import PROTOCOL, check_stream

if TYPE_CHECKING:
    from penstock.ingest.gate import Gate

__all__ = ["ABOUT", "act"]

ABOUT: Final = {
    "status": "the gate, its log, its inlets and streams",
    "statistics": "counts since the start, for the gate and each stream",
    "next": "the next sequence of streams: {streams}",
    "schema": "the schema of an inlet: {inlet}",
    "committed": "what a reader needs no more: {inlet, reader, upto}",
    "forget-reader": "wait for a reader no more: {inlet, reader}",
    "suspend": "let streams wait: {streams}",
    "resume": "take rows of streams again: {streams}",
    "redirect": "send streams to another gate: {streams, to}",
    "drain": "send all streams away and take no more: {to}",
}


def act(gate: "Gate", name: str, asked: Asked, rights: Rights) -> Asked:
    """Do what an action asks; the answer is a JSON object."""
    if name not in _ACTIONS:
        raise BadMessage(f"no action {name[:40]!r}; the actions are: {', '.join(ABOUT)}")
    return _ACTIONS[name](gate, asked, rights)


def _status(gate: "Gate", _: Asked, rights: Rights) -> Asked:
    need(rights.administer, "look at the gate")
    intake, log = gate.intake, gate.intake.log
    return {
        "gate": gate.address,
        "protocol": PROTOCOL,
        "started_ms": int(gate.started * 1000),
        "draining": intake.draining,
        "trouble": intake.trouble,
        "pending_bytes": intake.pending_bytes,
        "limits": asdict(intake.limits),
        "log": {
            "bytes": log.bytes,
            "segments": len(log.held.segments),
            "torn_bytes": log.torn_bytes,
            "damaged": [str(each) for each in log.damage],
            "discarded_segments": log.discarded,
        },
        "inlets": sorted(log.catalogue.schemas),
        "readers": [{"inlet": inlet, "reader": reader} for inlet, reader in log.readers()],
        "streams": {stream: _stream(gate, stream) for stream in sorted({*log.held.streams, *intake.flows})},
    }


def _stream(gate: "Gate", stream: str) -> Asked:
    log, flow = gate.intake.log, gate.intake.flows.get(stream)
    held = log.held.streams.get(stream)
    return {
        "next": flow.durable if flow else log.next(stream),
        "ranges": held.positions.ranges() if held else [],
        "frontier": held.frontier if held else None,
        "bytes": held.bytes if held else 0,
        "last_ms": held.arrived if held else None,
        "connected": bool(flow and flow.call),
        "suspended": bool(flow and flow.suspended),
        "redirected": flow.redirected_to if flow else None,
        "metadata": log.catalogue.declared.get(stream, {}),
    }


def _statistics(gate: "Gate", _: Asked, rights: Rights) -> Asked:
    need(rights.administer, "look at the gate")
    intake = gate.intake
    flows, held = list(intake.flows.values()), intake.log.held.streams
    return {
        "gate": gate.address,
        "seconds": round(time.time() - gate.started, 3),
        "counts": dict(intake.counts),
        "groups": intake.log.groups,
        "sync_seconds": round(intake.log.sync_seconds, 3),
        "pending_bytes": intake.pending_bytes,
        "store_bytes": intake.log.bytes,
        "streams": {
            each.stream: {
                "rows": each.rows,
                "bytes": each.bytes,
                "batches": each.batches,
                "next": each.durable,
                "frontier": held[each.stream].frontier if each.stream in held else None,
                "pending_bytes": each.pending_bytes,
                "connected": each.call is not None,
            }
            for each in flows
        },
    }


def _next(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    streams = _streams(asked)
    for each in streams:
        need(rights.may_push(each) or rights.may_read(each), f"ask for stream {each!r}")
    flows, log = gate.intake.flows, gate.intake.log
    return {"next": {each: flows[each].durable if each in flows else log.next(each) for each in streams}}


def _schema(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    inlet = text(asked, "inlet")
    need(rights.may_read_some(inlet), f"read inlet {inlet!r}")
    schema = gate.intake.inlets.schema(inlet)
    return {"inlet": inlet, "schema": b64encode(schema.serialize()).decode()}


def _committed(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    inlet, reader, upto = text(asked, "inlet"), text(asked, "reader"), asked.get("upto")
    need(rights.may_read_some(inlet), f"read inlet {inlet!r}")
    if not isinstance(upto, dict) or not all(type(each) is int for each in upto.values()):
        raise BadMessage(f"upto is {str(upto)[:80]}; give an object of streams with their next sequences")
    gate.intake.log.committed(inlet, reader, upto)
    return {"store_bytes": gate.intake.log.bytes}


def _forget_reader(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "forget a reader")
    gate.intake.log.forget_reader(text(asked, "inlet"), text(asked, "reader"))
    return {}


def _suspend(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "suspend streams")
    return {"suspended": steering.suspend(gate.intake, _streams(asked))}


def _resume(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "resume streams")
    return {"resumed": steering.resume(gate.intake, _streams(asked))}


def _redirect(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "redirect streams")
    return {"redirected": steering.redirect(gate.intake, _streams(asked), text(asked, "to"))}


def _drain(gate: "Gate", asked: Asked, rights: Rights) -> Asked:
    need(rights.administer, "drain the gate")
    return {"redirected": steering.drain(gate.intake, text(asked, "to") if asked.get("to") else None)}


def _streams(asked: Asked) -> list[str]:
    streams = asked.get("streams")
    if not isinstance(streams, list):
        raise BadMessage(f"streams is {str(streams)[:80]!r}; give a list of stream ids")
    for each in streams:
        check_stream(each)
    return streams


_ACTIONS: Final[dict[str, Callable[["Gate", Asked, Rights], Asked]]] = {
    "status": _status,
    "statistics": _statistics,
    "next": _next,
    "schema": _schema,
    "committed": _committed,
    "forget-reader": _forget_reader,
    "suspend": _suspend,
    "resume": _resume,
    "redirect": _redirect,
    "drain": _drain,
}
