"""What the map side of a stage gives an epoch: routed rows, and what was seen on the way to them."""

from dataclasses import dataclass

from penstock.runtime.spark.plans import Shuffled
from penstock.runtime.spread import Spread

__all__ = ["EMPTY", "MapSide"]


@dataclass(frozen=True)
class MapSide:
    """Routed rows, if there are any; the last pane among rows of windows, the hot keys of a join.

    `dealt` are the raw rows behind partials that formers have formed.
    """

    shuffled: Shuffled | None = None
    taken: bool = False
    newest: int | None = None
    spread: Spread | None = None
    dealt: Shuffled | None = None

    def release(self) -> None:
        """Let go of the shuffled rows."""
        for each in (self.shuffled, self.dealt):
            if each is not None:
                each.release()


EMPTY = MapSide()
