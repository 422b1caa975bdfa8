"""An epoch's pieces dealt to tasks of equal rows, such that a stream's rows stay in their order.

All pieces are laid on one line, those of one gate and then of one stream side by side, and the line is cut
into equal parts. A task so asks few gates, and a stream is in one task or in neighbouring ones.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.ingest.coverage import Pieces

__all__ = ["dealt"]


def dealt(
    given: Pieces, gate: NDArray[np.int64], most: int, rows_each: int
) -> list[tuple[NDArray[np.int64], Pieces]]:
    """The gates and pieces of every task: at most so many tasks, and no more than rows are worth.

    `gate` is the number of the gate for each piece, `rows_each` how many rows are worth a task.
    """
    if not len(given.range):
        return []
    order = np.lexsort((given.first, given.stream, _home(given.stream, gate)))
    length = (given.last - given.first)[order]
    ends = np.cumsum(length)
    total = int(ends[-1])
    tasks = max(1, min(most, -(-total // rows_each)))
    cuts = np.linspace(0, total, tasks + 1).astype(np.int64)
    # Between two neighbouring marks lie rows of one piece that go to one task.
    marks = np.unique(np.concatenate((cuts[:-1], ends - length)))
    piece = np.searchsorted(ends, marks, side="right")
    task = np.searchsorted(cuts, marks, side="right") - 1
    first = given.first[order][piece] + marks - (ends - length)[piece]
    last = first + np.diff(marks, append=total)
    whole = order[piece]
    return [
        (gate[whole[own]], Pieces(given.range[whole[own]], given.stream[whole[own]], first[own], last[own]))
        for own in (np.flatnonzero(task == number) for number in range(tasks))
        if len(own)
    ]


def _home(stream: NDArray[np.int64], gate: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each piece the gate of its stream's first piece."""
    streams, first, back = np.unique(stream, return_index=True, return_inverse=True)
    del streams
    return gate[first][back]
