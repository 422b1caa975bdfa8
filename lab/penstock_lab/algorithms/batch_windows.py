"""Windows grouped into batches, and cut into panes, so that neighbours share their tuples ([004] §2.3).

Batch b holds the windows b·B to b·B + B - 1 and every tuple of each of them. It is itself a window
of size w + (B - 1)·s that slides by B·s, so the ids and closers of `window_ids` are its own too.
"""

from penstock.errors import BadRouting
from penstock.routing.window_ids import Ids
from penstock.routing.window_shape import WindowShape

__all__ = ["batch_of", "batch_shape", "copies_per_tuple", "pane_shape"]


def batch_shape(shape: WindowShape, batch: int) -> WindowShape:
    """The window that covers `batch` consecutive windows.

    >>> batch_shape(WindowShape(3, 1), 3)
    WindowShape(size=5, slide=3, offset=0)
    """
    if batch < 1:
        raise BadRouting(f"a batch of {batch} windows; give at least 1")
    return WindowShape(shape.size + (batch - 1) * shape.slide, batch * shape.slide, shape.offset)


def pane_shape(shape: WindowShape) -> WindowShape:
    """The tumbling window whose panes make up every window ([004] §2.4.1).

    >>> pane_shape(WindowShape(6, 4))
    WindowShape(size=2, slide=2, offset=0)
    """
    return WindowShape(shape.pane, shape.pane, shape.offset)


def batch_of(windows: Ids, batch: int) -> Ids:
    """The batch that computes each window."""
    return windows // batch


def copies_per_tuple(partition: WindowShape) -> float:
    """Into how many partitions of this shape a tuple is copied, on average.

    >>> copies_per_tuple(WindowShape(100, 1)), copies_per_tuple(batch_shape(WindowShape(100, 1), 50))
    (100.0, 2.98)
    """
    return partition.size / partition.slide
