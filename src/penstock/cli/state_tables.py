"""State for people: tables on standard output."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from penstock.runtime.state_view import KeyState, StateView
    from penstock.state.view import StageChange

__all__ = ["changes", "key_rows", "key_state", "listing"]

_MOST_ROWS = 200  # rows of a key on the screen; --json has all


def listing(listed: Mapping[str, Any]) -> None:
    """Operators, channels, keys and bytes."""
    console = _console()
    drained = ", drained" if listed["drained"] else ""
    console.print(
        f"{listed['checkpoint']}\nepoch {listed['epoch']}{drained}; kept: {', '.join(listed['kept'])}"
    )
    counts = ", ".join(f"{listed[name]:,} {name}" for name in ("tuples", "late", "rejected", "results"))
    console.print(f"since the beginning: {counts}")
    for stage in listed["stages"]:
        promise = (
            "nothing promised yet" if stage["promise"] is None else f"promise {_instant(stage['promise'])}"
        )
        console.print(f"\nstage {stage['stage']}: {stage['operator'] or 'not described'}; {promise}")
        if stage["partitioning"] is not None:
            console.print(f"keys placed by: {stage['partitioning']}")
        if stage["split"] is not None:
            console.print(f"hot keys formed by sub-keys: {stage['split']}")
        names = ("channel", "segments", "rows", "keys", "bytes")
        table = _table(names)
        for each in stage["channels"]:
            table.add_row(*(f"{each[name]:,}" for name in names))
        sums = [f"{sum(each[name] for each in stage['channels']):,}" for name in names[1:]]
        table.add_row("all", *sums, style="bold")
        console.print(table)


def key_rows(found: Sequence["KeyState"]) -> list[dict[str, Any]]:
    """The rows of a key as plain values, each with its stage and channel."""
    return [
        {"stage": each.stage, "channel": each.channel, **row}
        for each in found
        for row in each.rows.to_pylist()
    ]


def key_state(view: "StateView", found: Sequence["KeyState"]) -> None:
    """The rows of a key, a table for each stage, channel and segment."""
    console = _console()
    for each in found:
        operator = view.note(each.stage).operator
        console.print(f"\nstage {each.stage}{': ' if operator else ''}{operator}, channel {each.channel}")
        table = _table(each.rows.column_names)
        for row in each.rows.slice(0, _MOST_ROWS).to_pylist():
            table.add_row(*map(_shown, row.values()))
        console.print(table)
        if each.rows.num_rows > _MOST_ROWS:
            console.print(f"… {each.rows.num_rows - _MOST_ROWS:,} more rows; --json has all")


def changes(found: Sequence["StageChange"]) -> None:
    """The segments that every channel gained and lost."""
    console = _console()
    for stage in found:
        console.print(f"\nstage {stage.stage}")
        for port, (before, after) in enumerate(stage.frontiers):
            console.print(f"frontier of port {port}: {_instant(before)} to {_instant(after)}")
        table = _table(("channel", "added", "removed", "kept", "rows", "bytes"))
        for each in stage.channels:
            segments = (f"{len(each.added)}", f"{len(each.removed)}", f"{each.kept}")
            table.add_row(f"{each.channel}", *segments, f"{each.rows:+,}", f"{each.bytes:+,}")
        console.print(table)
        for each in stage.channels:
            for sign, names in (("+", each.added), ("-", each.removed)):
                for name in names:
                    console.print(f"  {sign} channel {each.channel}: {name}")


def _console() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False)


def _table(names: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return "null" if value is None else str(value)


def _instant(micros: int | None) -> str:
    if micros is None:
        return "none"
    try:
        return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{micros} µs"
