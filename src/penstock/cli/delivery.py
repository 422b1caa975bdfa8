"""How a command hands a report over: a table or one JSON object, then the exit status."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from penstock.reports import Report


def deliver(report: "Report", *, json: bool) -> None:
    """Hand the report over, and end with its status."""
    from penstock.reports import emit_json, show  # noqa: PLC0415 -- needed only after a measurement

    if json:
        emit_json(report)
    else:
        show(report)
    raise typer.Exit(report.status)
