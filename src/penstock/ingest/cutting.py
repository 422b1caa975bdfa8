"""Rows waiting to be sent: joined and cut into batches of bounded rows and bytes, none lost, in order."""

from collections import deque

import pyarrow as pa

__all__ = ["LooseRows"]


class LooseRows:
    """A queue of rows that come in pieces of any size and leave in batches.

    >>> loose = LooseRows()
    >>> loose.add(pa.record_batch({"a": [1, 2, 3]}))
    >>> loose.add(pa.record_batch({"a": [4, 5]}))
    >>> [loose.cut(4, 1000).to_pydict(), loose.cut(4, 1000).to_pydict(), loose.rows]
    [{'a': [1, 2, 3, 4]}, {'a': [5]}, 0]
    """

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self._pieces: deque[pa.RecordBatch] = deque()

    def add(self, piece: pa.RecordBatch) -> None:
        """Take rows in at the end."""
        self._pieces.append(piece)
        self.rows += piece.num_rows
        self.bytes += piece.nbytes

    def cut(self, rows: int, size: int) -> pa.RecordBatch:
        """Up to that many rows and bytes from the front; one row always, however large."""
        taken = [self._first(rows, size)]
        rows -= taken[0].num_rows
        size -= taken[0].nbytes
        while self._pieces and rows > 0 and self._pieces[0].nbytes <= size:
            taken.append(self._first(rows, size))
            rows -= taken[-1].num_rows
            size -= taken[-1].nbytes
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)

    def _first(self, rows: int, size: int) -> pa.RecordBatch:
        """The first piece, or as much of it as fits; halving finds that in a logarithm of its rows."""
        whole = self._pieces.popleft()
        part = whole.slice(0, rows)
        while part.nbytes > size and part.num_rows > 1:
            part = part.slice(0, part.num_rows // 2)
        self.rows -= part.num_rows
        self.bytes -= whole.nbytes
        if part.num_rows < whole.num_rows:
            rest = whole.slice(part.num_rows)
            self._pieces.appendleft(rest)
            self.bytes += rest.nbytes
        return part
