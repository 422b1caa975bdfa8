"""Where streams go: suspend, resume and redirect them, or drain the whole gate (000, section 3.3)."""

from collections.abc import Iterable

from penstock.ingest.flow import Flow
from penstock.ingest.intake import Intake

__all__ = ["drain", "redirect", "resume", "suspend"]


def suspend(intake: Intake, streams: Iterable[str]) -> list[str]:
    """Let these streams wait; the names of those that are known. A restart of the gate resumes them."""
    return _switch(intake, streams, suspended=True)


def resume(intake: Intake, streams: Iterable[str]) -> list[str]:
    """Take rows of these streams again; the names of those that are known."""
    return _switch(intake, streams, suspended=False)


def redirect(intake: Intake, streams: Iterable[str], to: str) -> list[str]:
    """Send these streams elsewhere once what was taken of them is durable; the names of those known.

    It holds until the client connects the stream anew here, which it does when it was sent back.
    """
    with intake.room:
        known = _known(intake, streams)
        for flow in known:
            flow.redirect(to)
        intake.counts["redirected"] += len(known)
    return [each.stream for each in known]


def drain(intake: Intake, to: str | None) -> list[str]:
    """Take nothing more; clients are sent to `to`, or told to wait where it is None."""
    with intake.room:
        intake.draining, intake.drained_to = True, to
        connected = [each.stream for each in intake.flows.values() if each.call]
    return redirect(intake, connected, to) if to else []


def _switch(intake: Intake, streams: Iterable[str], *, suspended: bool) -> list[str]:
    with intake.room:
        known = _known(intake, streams)
        for flow in known:
            flow.suspended = suspended
    return [each.stream for each in known]


def _known(intake: Intake, streams: Iterable[str]) -> list[Flow]:
    return [intake.flows[each] for each in streams if each in intake.flows]
