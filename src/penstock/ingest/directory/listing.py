"""What a controller tells people of its gates, streams and readers; the caller holds the registry's lock."""

from typing import Any

from penstock.ingest.directory.measuring import StreamMeasure
from penstock.ingest.directory.registry import GateMode, StreamRecord, StreamRegistry
from penstock.ingest.directory.steering import Steering

__all__ = ["list_gates", "list_readers", "list_streams"]


def list_gates(registry: StreamRegistry, steering: Steering, now: float) -> list[dict[str, Any]]:
    """All gates: state, load, forecast and capacity as admission counts them, why it last decided on them."""
    rates: dict[str, list[float]] = {}
    forecasts: dict[str, float] = {}
    ahead = steering.work_ahead
    for each in registry.streams():
        rates.setdefault(each.gate, []).append(steering.measure(each.stream).rate or 0.0)
        if each.stream in ahead:
            forecasts[each.gate] = forecasts.get(each.gate, 0.0) + ahead[each.stream]
    found = []
    for gate in registry.gates():
        address = gate.address
        view = steering.views.get(address)
        found.append(
            {
                "gate": address,
                "state": _state_of_gate(registry, address),
                "away": registry.is_away(address, now),
                "silent_seconds": round(now - gate.seen, 3),
                "streams": len(rates.get(address, ())),
                "rate": round(sum(rates.get(address, ())), 3),
                "load": None if view is None else round(view.load, 6),
                "forecast": round(forecasts[address], 6) if address in forecasts else None,
                "capacity": None if view is None else round(view.capacity, 6),
                "why": registry.kept_out(address) or steering.why.get(address),
                "info": dict(gate.info),
            }
        )
    return found


def _state_of_gate(registry: StreamRegistry, gate: str) -> str:
    mode = registry.mode(gate)
    return "drained" if mode is GateMode.FREE and registry.kept_out(gate) else str(mode)


def list_streams(
    registry: StreamRegistry, steering: Steering, inlet: str | None, now: float
) -> list[dict[str, Any]]:
    """All streams, or those of an inlet: gate, rate, forecast, frontier, metadata, and what waits."""
    forecasts = steering.forecasts
    return [
        _stream(registry, steering.measure(each.stream), each, forecasts.get(each.stream), now)
        for each in registry.streams(inlet)
    ]


def _stream(
    registry: StreamRegistry, measure: StreamMeasure, record: StreamRecord, forecast: float | None, now: float
) -> dict[str, Any]:
    return {
        "stream": record.stream,
        "gate": record.gate,
        "state": _state_of_stream(registry, record, now, connected=measure.connected),
        "rate": None if measure.rate is None else round(measure.rate, 3),
        "forecast": None if forecast is None else round(forecast, 3),
        "frontier": record.frontier,
        "next": record.high,
        "empty": record.empty or not record.gate,
        "client_rows": measure.client_rows,
        "oldest_seconds": measure.oldest_seconds,
        "lag": measure.lag,
        "metadata": dict(record.metadata or {}),
    }


def _state_of_stream(registry: StreamRegistry, record: StreamRecord, now: float, *, connected: bool) -> str:
    if not record.gate:
        return "declared"
    if registry.is_away(record.gate, now):
        return "away"
    return "connected" if connected else "quiet"


def list_readers(registry: StreamRegistry, now: float) -> list[dict[str, Any]]:
    """All readers: inlet, name, run, seconds of silence, rows that they have had."""
    return [
        {
            "inlet": each.inlet,
            "reader": each.reader,
            "run": each.run,
            "silent_seconds": None if each.seen is None else round(now - each.seen, 3),
            "rows": each.rows,
        }
        for each in registry.readers()
    ]
