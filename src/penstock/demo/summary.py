"""What the demo prints at its end: totals, the busiest areas, where the files are and what to do next."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.demo.results import Area, DemoFolder, Tally

__all__ = ["conclude"]

SHOWN_AREAS = 10
LOOK = "SELECT * FROM 'RESULTS/**/*.parquet' WHERE jam ORDER BY window_end DESC, reports DESC"


def conclude(console: Console, tally: Tally, areas: Sequence[Area], folder: DemoFolder) -> None:
    """Print the closing words of the demo."""
    console.print()
    console.print(_totals(tally))
    if areas:
        queues = sum(each.jam for each in areas)
        heading = f"The hour to {areas[0].end:%H:%M}: {len(areas):,} areas, {queues} with the end of a queue"
        console.print()
        console.print(Text(heading, style="bold"))
        console.print(_busiest(areas[:SHOWN_AREAS]))
    console.print()
    # Paths and commands are meant to be copied, so they are never wrapped.
    console.print(_files(folder), soft_wrap=True)
    console.print(_next(folder), soft_wrap=True)


def _totals(tally: Tally) -> Text:
    return Text(
        f"{tally.rows:,} reports in {tally.epoch + 1:,} epochs at {tally.rows_per_second:,.0f} rows/s, "
        f"{tally.results:,} results delivered, {tally.late:,} late, {tally.rejected:,} rejected."
    )


def _busiest(areas: Sequence[Area]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("area")
    for heading in ("reports", "mean km/h", "top km/h"):
        table.add_column(heading, justify="right")
    table.add_column("jam")
    for each in areas:
        jam = Text("queue ends here", style="red") if each.jam else Text()
        table.add_row(each.area, f"{each.reports:,}", f"{each.mean:.1f}", f"{each.top:.1f}", jam)
    return table


def _files(folder: DemoFolder) -> Text:
    lines = {
        "results": folder.results,
        "chart": folder.chart,
        "late reports": folder.late,
        "rejected reports": folder.rejects,
    }
    return _lines("Files", {name: str(path) for name, path in lines.items()})


def _next(folder: DemoFolder) -> Text:
    sql = LOOK.replace("RESULTS", str(folder.results))
    lines = {
        "query the results": f'python -c "import duckdb; duckdb.sql(\\"{sql}\\").show()"',
        "write your own": "README.md",
        "see how it works": "docs/architecture.md",
        "measure it here": "penstock bench windows --quick",
    }
    return _lines("Next", lines)


def _lines(heading: str, lines: dict[str, str]) -> Text:
    text = Text(f"{heading}\n", style="bold")
    for name, what in lines.items():
        text.append(f"  {name:<18}", style="not bold dim").append(f"{what}\n", style="not bold")
    return text
