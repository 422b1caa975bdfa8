"""`penstock state`: shows a checkpoint without running its query."""

import json as json_text
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from penstock.runtime.records import Manifest
    from penstock.runtime.state_view import StateView

__all__ = ["state"]


def state(  # noqa: PLR0913 -- each is one option of the command
    folder: Annotated[
        str, typer.Argument(help="The folder that you gave to start(checkpoint=...), a path or a URI.")
    ],
    *,
    key: Annotated[
        list[str] | None,
        typer.Option(help="Print the state of a key; repeat for each key column, in order. Null is \\N."),
    ] = None,
    stage: Annotated[int | None, typer.Option(min=0, help="Only this stage.")] = None,
    epoch: Annotated[
        str | None, typer.Option(help="A kept epoch, such as 12 or 12-drain; by default the newest.")
    ] = None,
    compare: Annotated[
        tuple[str, str] | None, typer.Option(metavar="EPOCH EPOCH", help="Compare two kept epochs.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the state of a stage to this Parquet file.")
    ] = None,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up an epoch that was planned and can never finish.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """List what a checkpoint keeps, print the state of a key, compare two epochs, or export a stage.

    Spark does not run. Nothing is written to the checkpoint, and the query may run at the same time. The
    exception is --abandon: the plan of the epoch after the last one is set aside, so that the next start
    plans it anew, with the limits that it has then.

    Example: penstock state checkpoint --key berlin

    Example: penstock state checkpoint --compare 41 42

    Example: penstock state checkpoint --stage 0 --export state.parquet
    """
    from penstock.cli import state_tables as tables  # noqa: PLC0415 -- Arrow is slow to import
    from penstock.runtime.state_view import StateView, changes  # noqa: PLC0415

    if sum(each is not None for each in (key or None, compare, export, abandon or None)) > 1:
        raise typer.BadParameter("give one of --key, --compare, --export and --abandon")
    if abandon:
        return _abandoned(folder, json=json)
    view = StateView(folder)
    if compare is not None:
        before, after = (view.manifest(each) for each in compare)
        found = [each for each in changes(before, after) if stage in {None, each.stage}]
        return _give(json, {"stages": [asdict(each) for each in found]}, tables.changes, found)
    manifest = view.manifest(epoch)
    if key:
        rows = view.of_key(manifest, key, stage)
        return _give(json, {"rows": tables.key_rows(rows)}, tables.key_state, view, rows)
    if export is not None:
        return _exported(view, manifest, stage, export, json=json)
    listed = _listed(view, manifest, stage)
    return _give(json, listed, tables.listing, listed)


def _give(json: bool, value: dict[str, Any], show: Any, *shown: Any) -> None:  # noqa: FBT001 -- one option
    if json:
        sys.stdout.write(json_text.dumps(value, default=str) + "\n")
    else:
        show(*shown)


def _abandoned(folder: str, *, json: bool) -> None:
    from penstock.runtime.going_back import abandon  # noqa: PLC0415 -- Arrow is slow to import
    from penstock.state.storage import Location  # noqa: PLC0415

    epoch = abandon(Location.of(folder))
    words = "no epoch is planned: there is nothing to abandon"
    if epoch is not None:
        words = (
            f"epoch {epoch} is abandoned: its plan is in {folder}/aside; the next start plans it "
            "anew, with the limits that it has then"
        )
    _give(json, {"abandoned": epoch}, typer.echo, words)


def _exported(view: "StateView", manifest: "Manifest", stage: int | None, file: Path, *, json: bool) -> None:
    if stage is None and len(manifest.stages) > 1:
        raise typer.BadParameter(f"the query has {len(manifest.stages)} stages; choose one with --stage")
    rows = view.export(manifest, stage or 0, file)
    value = {"stage": stage or 0, "rows": rows, "file": str(file)}
    _give(json, value, typer.echo, f"{rows:,} rows of stage {stage or 0} in {file}")


def _listed(view: "StateView", manifest: "Manifest", stage: int | None) -> dict[str, Any]:
    """The listing of a checkpoint as plain values."""
    stages = range(len(manifest.stages)) if stage is None else [stage]
    return {
        "checkpoint": view.checkpoint.root.uri,
        "query": view.query["query"],
        "epoch": manifest.epoch_id.epoch,
        "drained": manifest.epoch_id.drain,
        "kept": [str(each.epoch) + ("-drain" if each.drain else "") for each in view.epochs],
        "tuples": manifest.total.rows,
        "late": manifest.total.late,
        "rejected": manifest.total.rejected,
        "results": manifest.total.results,
        "stages": [_listed_stage(view, manifest, number) for number in stages],
    }


def _listed_stage(view: "StateView", manifest: "Manifest", number: int) -> dict[str, Any]:
    channels = view.channels(manifest, number)
    note, record, plan = view.note(number), manifest.stages[number], manifest.plan.stages[number]
    return {
        "stage": number,
        "operator": note.operator,
        "keys": list(note.keys),
        "promise": record.position.promise,
        "partitioning": None if plan.layout is None else plan.layout.partitioning,
        "split": None if plan.layout is None else plan.layout.words().get("split"),
        "channels": [asdict(each) for each in channels],
    }
