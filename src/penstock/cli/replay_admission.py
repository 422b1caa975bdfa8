"""`penstock replay` for a controller: what another strategy of admission would have decided."""

import json as json_text
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from penstock.control.admission import AdmissionRecording, RecordedAdmission

__all__ = ["replay_admission"]

_SIDES = ("recorded", "replayed")
_MOST_LINES = 6


def replay_admission(
    recordings: "Sequence[AdmissionRecording]", strategy: str, *, check: bool, json: bool
) -> None:
    """Print decisions side by side, or where the recorded strategy decides another thing now."""
    from penstock.control.admission import (  # noqa: PLC0415 -- numpy is slow to import
        admission_differences,
        replayed_admission,
    )

    looks = sum(len(each.periods) for each in recordings)
    if check:
        found = [each for recording in recordings for each in admission_differences(recording)]
        return _checked(found, looks, json=json)
    rows = []
    for recording in recordings:
        used = recording.setup.strategy if strategy == "recorded" else strategy
        for each, other in zip(recording.periods, replayed_admission(recording, used), strict=True):
            if each.decisions or other:
                told = [dict(decision) for decision in each.decisions]
                rows.append({"at": each.seen.at, "recorded": told, "replayed": other})
    if json:
        counts = {side: _counts(rows, side) for side in _SIDES}
        value = {"strategy": strategy, "observations": looks, "counts": counts, "decisions": rows}
        sys.stdout.write(json_text.dumps(value) + "\n")
    else:
        _print(rows, strategy, looks)
    return None


def _counts(rows: Sequence[Mapping[str, Any]], side: str) -> dict[str, int]:
    return dict(Counter(each["kind"] for row in rows for each in row[side]))


def _print(rows: Sequence[Mapping[str, Any]], strategy: str, looks: int) -> None:
    from rich.console import Console  # noqa: PLC0415 -- slow to import
    from rich.table import Table  # noqa: PLC0415

    table = Table("time", "as recorded", f"under {strategy}", box=None)
    for row in rows:
        at = datetime.fromtimestamp(row["at"], UTC).strftime("%H:%M:%S")
        table.add_row(at, *(_lines(row[side]) for side in _SIDES))
    console = Console()
    if rows:
        console.print(table)
    for side in _SIDES:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(_counts(rows, side).items()))
        console.print(f"{side}: {counts or 'nothing decided'}")
    console.print(f"{looks:,} periods and arrivals")


def _lines(decisions: Sequence[Mapping[str, Any]]) -> str:
    told = [_words(each) for each in decisions[:_MOST_LINES]]
    rest = len(decisions) - len(told)
    return "\n".join([*told, *([f"and {rest:,} more"] if rest else [])])


def _words(told: Mapping[str, Any]) -> str:
    match told["kind"]:
        case "redirect":
            return f"{told['stream']} from {told['source']} to {told['target']}: {told['reason']}"
        case "admit":
            return f"{told['stream']} enters {told['gate']}: {told['reason']}"
        case kind:
            return f"{kind} {told['gate']}: {told['reason']}"


def _checked(
    found: "Sequence[tuple[RecordedAdmission, list[str], list[str]]]", looks: int, *, json: bool
) -> None:
    if json:
        told = [
            {
                "at": each.seen.at,
                "recorded": [*map(json_text.loads, then)],
                "now": [*map(json_text.loads, now)],
            }
            for each, then, now in found
        ]
        sys.stdout.write(json_text.dumps({"observations": looks, "differences": told}) + "\n")
    else:
        for each, then, now in found:
            typer.echo(f"at {each.seen.at}:\n  recorded {then}\n  now      {now}")
        agree = f"{looks:,} periods and arrivals: {len(found)} decided otherwise" if found else ""
        typer.echo(agree or f"{looks:,} periods and arrivals agree")
    if found:
        raise typer.Exit(1)
