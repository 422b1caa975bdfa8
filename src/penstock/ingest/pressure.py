"""Why a batch has to wait, and how long: memory and disk are bounded, and clients are told so."""

from typing import TYPE_CHECKING, Final

from penstock.errors import GateError, LogFull
from penstock.ingest.flow import Flow

if TYPE_CHECKING:
    from penstock.ingest.intake import Intake

__all__ = ["LATER", "reason_to_wait"]

LATER: Final = 1.0
"""Seconds to wait where it does not depend on the speed of the disk: suspended, draining, disk full."""
_SOON: Final = 0.005


def reason_to_wait(intake: "Intake", flow: Flow, size: int, *, roomy: bool) -> tuple[float, GateError] | None:
    """Seconds and the reason, or None if a batch of `size` bytes can be taken now."""
    limits = intake.limits
    if intake.draining:
        return LATER, GateError("the gate is closing; send again later or to another gate")
    if flow.suspended:
        return LATER, GateError(f"stream {flow.stream!r} is suspended; send again later")
    if intake.log.bytes >= limits.store_bytes:
        return LATER, LogFull(
            f"the gate stores {intake.log.bytes:,} bytes, its limit; send again when readers have committed"
        )
    if flow.pending_bytes and flow.pending_bytes + size > limits.stream_bytes:
        return _delay(flow.pending_bytes, intake.log.speed), LogFull(
            f"stream {flow.stream!r} has {flow.pending_bytes:,} bytes on their way to the disk, of "
            f"{limits.stream_bytes:,}; keep to the credit"
        )
    if not roomy:
        return _delay(intake.pending_bytes, intake.log.speed), LogFull(
            f"{intake.pending_bytes:,} bytes are on their way to the disk, of {limits.gate_bytes:,}; "
            "send again later"
        )
    return None


def _delay(ahead: int, speed: float) -> float:
    return round(min(max(ahead / speed, _SOON), LATER), 4)
