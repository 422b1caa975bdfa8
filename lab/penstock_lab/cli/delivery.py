"""How a command delivers a report: a table or one JSON object, then the exit status."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from penstock_lab.reports import Report


def deliver(report: "Report", *, json: bool) -> None:
    """Print the report and end with its status."""
    from penstock_lab.reports import emit_json, show  # noqa: PLC0415 -- needed only after a measurement

    if json:
        emit_json(report)
    else:
        show(report)
    raise typer.Exit(report.status)
