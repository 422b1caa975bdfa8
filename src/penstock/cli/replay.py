"""`penstock replay`: what another policy would have decided in a recorded run or controller."""

import json as json_text
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from penstock.control.recording import Recorded, Recording
    from penstock.control.setup import Setup
    from penstock.routing import HashPair
    from penstock.state.storage import Location

__all__ = ["replay"]


def replay(  # noqa: PLR0913 -- each is one option of the command
    folder: Annotated[
        str,
        typer.Argument(help="The folder of start(checkpoint=...), a path or a URI, or that of a controller."),
    ],
    *,
    policy: Annotated[str, typer.Option(help="layout, off, or recorded for those of the run.")] = "recorded",
    strategy: Annotated[
        str,
        typer.Option(
            help="Of a controller: penstock, drf-m, drf, ard, ari, par, or recorded for the one it had."
        ),
    ] = "recorded",
    cpu_price: Annotated[
        float | None,
        typer.Option(min=0.0, help="Seconds that a second of the processor is worth, such as 0.1."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say where the recorded policies decide another thing now.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Run a policy over recorded observations, and print both decisions side by side.

    Spark does not run, and nothing is written. Observations are those of the run or the controller: they do
    not follow what the other policy decides.

    Example: penstock replay checkpoint --policy layout --cpu-price 0.5

    Example: penstock replay checkpoint --check

    Example: penstock replay controller --strategy drf-m
    """
    from penstock.control.recording import differences, replayed  # noqa: PLC0415 -- numpy is slow to import
    from penstock.state.storage import Location  # noqa: PLC0415

    root = Location.of(folder)
    if (root / "admission").kind == "folder":
        return _admission(root, strategy, check=check, json=json)
    recordings = _recordings(root)

    def find(name: str) -> "HashPair":
        return _router(root / "routers", name)

    if check:
        found = [each for recording in recordings for each in differences(recording, find)]
        return _checked(found, sum(len(each.epochs) for each in recordings), json=json)
    rows = []
    for recording in recordings:
        rulings = replayed(recording, _setup(recording, policy, cpu_price), find)
        for each, other in zip(recording.epochs, rulings, strict=True):
            told = [ruling.to_json() for ruling in other]
            if each.rulings or told:
                rows.append({"epoch": each.seen.epoch, "recorded": list(each.rulings), "replayed": told})
    if json:
        value = {"policy": policy, "epochs": sum(len(each.epochs) for each in recordings), "decisions": rows}
        sys.stdout.write(json_text.dumps(value) + "\n")
    else:
        _print(rows, policy, sum(len(each.epochs) for each in recordings))
    return None


def _admission(root: "Location", strategy: str, *, check: bool, json: bool) -> None:
    from penstock.checks import one_of  # noqa: PLC0415
    from penstock.cli.replay_admission import replay_admission  # noqa: PLC0415
    from penstock.control.admission import STRATEGY_NAMES  # noqa: PLC0415 -- numpy is slow to import
    from penstock.errors import BadOption  # noqa: PLC0415
    from penstock.ingest.directory.journal import recordings  # noqa: PLC0415

    one_of("--strategy", strategy, ("recorded", *STRATEGY_NAMES), BadOption)
    replay_admission(recordings(root), strategy, check=check, json=json)


def _recordings(root: "Location") -> "list[Recording]":
    from penstock.control.recording import Recording  # noqa: PLC0415 -- numpy is slow to import
    from penstock.errors import BadRecording, NoCheckpoint  # noqa: PLC0415

    if root.kind != "folder":
        raise NoCheckpoint(f"{root.uri} is no folder; give the one that you gave to start(checkpoint=...)")
    control = root / "control"
    names = [name for name in control.names() if name.endswith(".jsonl")] if control.kind == "folder" else []
    if not names:
        raise BadRecording(
            f"{root.uri} has no recording; a run records its observations in the folder control of its "
            "checkpoint unless it is started with control='off'"
        )
    return [
        Recording.parse(control.read(name).decode().splitlines(), f"{control.uri}/{name}")
        for name in sorted(names)
    ]


def _router(folder: "Location", name: str) -> "HashPair":
    from penstock.errors import DamagedCheckpoint  # noqa: PLC0415
    from penstock.routing import HashPair, router_name  # noqa: PLC0415

    data = folder.read(name) if folder.has(name) else b""
    if router_name(data) != name:
        raise DamagedCheckpoint(
            f"router {folder.uri}/{name} is missing or altered ({len(data)} bytes); restore it from a backup"
        )
    return HashPair.from_bytes(data)


def _setup(recording: "Recording", policy: str, cpu_price: float | None) -> "Setup":
    from dataclasses import replace  # noqa: PLC0415

    from penstock.checks import one_of  # noqa: PLC0415
    from penstock.errors import BadOption  # noqa: PLC0415

    one_of("--policy", policy, ("recorded", "layout", "off"), BadOption)
    setup = recording.setup
    if policy == "off":
        return replace(setup, policies={})
    if policy == "layout":
        setup = replace(setup, policies={"layout": setup.policies.get("layout", {})})
    return setup if cpu_price is None else replace(setup, cpu_price=cpu_price)


def _print(rows: list[dict[str, Any]], policy: str, epochs: int) -> None:
    from rich.console import Console  # noqa: PLC0415 -- slow to import
    from rich.table import Table  # noqa: PLC0415

    table = Table("epoch", "as recorded", f"under {policy}", box=None)
    # Every epoch has a pace; the JSON has them all.
    rows = [{**row, **{side: [each for each in row[side] if not _is_pace(each)] for side in _SIDES}}
            for row in rows]  # fmt: skip
    rows = [row for row in rows if any(row[side] for side in _SIDES)]
    for row in rows:
        table.add_row(f"{row['epoch']:,}", *("\n".join(map(_words, row[side])) for side in _SIDES))
    console = Console()
    if rows:
        console.print(table)
    counts = ", ".join(f"{sum(len(row[side]) for row in rows)} {side}" for side in _SIDES)
    console.print(f"{epochs:,} epochs; decisions: {counts}")


_SIDES = ("recorded", "replayed")


def _is_pace(ruling: dict[str, Any]) -> bool:
    return ruling["decision"] is not None and ruling["decision"]["kind"] == "pace"


def _words(ruling: dict[str, Any]) -> str:
    decision, held = ruling["decision"], ruling["held"]
    if decision is None:
        return f"{ruling['policy']}: {held}"
    end = f" (held back: {held})" if held else ""
    if decision["kind"] == "scale":
        what = f"{decision['before']} to {decision['units']} {decision['pool']}"
        return f"{ruling['policy']}, {what}: {decision['reason']}{end}"
    kind = decision["kind"]
    what = f"{decision['channels']} channels" if kind == "rescale" else decision.get("shown", kind)
    return f"{ruling['policy']}, stage {decision['stage']}, {what}: {decision['reason']}{end}"


def _checked(found: "list[tuple[Recorded, list[str], list[str]]]", epochs: int, *, json: bool) -> None:
    if json:
        told = [
            {
                "epoch": each.seen.epoch,
                "recorded": [*map(json_text.loads, then)],
                "now": [*map(json_text.loads, now)],
            }
            for each, then, now in found
        ]
        sys.stdout.write(json_text.dumps({"epochs": epochs, "differences": told}) + "\n")
    else:
        for each, then, now in found:
            typer.echo(f"epoch {each.seen.epoch:,}:\n  recorded {then}\n  now      {now}")
        typer.echo(
            f"{epochs:,} epochs: {len(found)} decided otherwise" if found else f"{epochs:,} epochs agree"
        )
    if found:
        raise typer.Exit(1)
