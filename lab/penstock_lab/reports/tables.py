"""Reports for people: tables on standard output, progress on standard error."""

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.reports.report import Check, Report, Value


def emit_json(report: Report) -> None:
    """Write the report as one JSON object, and nothing else, to standard output."""
    sys.stdout.write(report.to_json() + "\n")
    sys.stdout.flush()


def show(report: Report, console: Console | None = None) -> None:
    """Print the rows and the checks as tables, below a line that says where they were measured.

    Consecutive rows of one `section` are a table of their own under its name.
    """
    console = console or Console()
    machine = report.machine
    console.print(
        f"{report.name} · penstock {report.version} · {report.date} · seed {report.seed}\n"
        f"{machine.cores} cores, {machine.cpu}, {machine.memory:,} MB · "
        f"Python {machine.python}, Spark {machine.spark}",
        highlight=False,
    )
    for section, rows in groupby(report.rows, key=lambda row: row.get("section")):
        if section is not None:
            console.print(f"\n{section}", highlight=False)
        console.print(_rows([{name: row[name] for name in row if name != "section"} for row in rows]))
    if report.checks:
        console.print(_checks(report.checks))


def say(text: str) -> None:
    """One line of progress on standard error."""
    Console(stderr=True, soft_wrap=True).print(text, highlight=False, markup=False)


def _rows(rows: Sequence[Mapping[str, Value]]) -> Table:
    # Parts of one report may measure different things, so the columns are the union in order of appearance.
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(box=None, pad_edge=False)
    for column in columns:
        numeric = all(not isinstance(row.get(column), str) for row in rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_figure(row.get(column)) for column in columns))
    return table


def _checks(checks: tuple[Check, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("check")
    table.add_column("value", justify="right")
    table.add_column("bound", justify="right")
    table.add_column("")
    table.add_column("source")
    for check in checks:
        bound = f"≥ {_figure(check.floor)}" if check.floor is not None else f"≤ {_figure(check.ceiling)}"
        source = f"{check.source}; {check.reason}" if check.reason else check.source
        table.add_row(check.name, _figure(check.value), bound, _verdict(check), source)
    return table


def _verdict(check: Check) -> Text:
    style = "yellow" if check.ok is None else "green" if check.ok else "bold red"
    return Text(check.verdict, style=style)


def _figure(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
