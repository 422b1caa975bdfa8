"""What a checkpoint says of its stages, so that their state can be read without the query."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.compile import ROWS, WindowPlan
from penstock.compile.lifts import Accumulated
from penstock.compile.partials import Partial
from penstock.query import Join
from penstock.runtime.stage import StageRunner
from penstock.runtime.window_stage import WindowStage

__all__ = ["StageNote", "note_of"]


@dataclass(frozen=True)
class StageNote:
    """A stage in words and numbers: its operator, the names of its keys, what columns of its segments hold.

    Of windows, `pane` and `offset` say when a pane is; of a join within a distance, `distance` says how long
    rows live. Times are microseconds.
    """

    operator: str = ""
    keys: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    pane: int | None = None
    offset: int = 0
    distance: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "StageNote":
        """The note that plain values stand for."""
        return cls(**{**value, "keys": tuple(value["keys"])})


def note_of(runner: StageRunner) -> StageNote:
    """What to remember of a stage."""
    operator = runner.stage.operator
    if isinstance(operator, Join):
        keys = tuple(key.left for key in operator.keys)
        return StageNote(str(operator), keys, distance=operator.within)
    note = StageNote(str(operator), tuple(name for name, _ in operator.keys))
    if isinstance(runner, WindowStage):
        shape = runner.plan.shape
        note = replace(note, columns=_partials(runner.plan), pane=shape.pane, offset=shape.offset)
    return note


def _partials(plan: WindowPlan) -> dict[str, str]:
    return {
        column: text
        for partial in plan.partials
        for column, text in zip(partial.columns, _texts(partial), strict=True)
        if column != text
    }


def _texts(partial: Partial) -> list[str]:
    if isinstance(partial.lift, Accumulated):
        aggregate = partial.lift.aggregate
        return [f"{aggregate!r} known", *(f"{aggregate!r}.{name}" for name in aggregate.state)]
    if len(partial.columns) == 1 and partial.name != ROWS:
        return [partial.combine[0].replace("`", "")]
    return list(partial.columns)
