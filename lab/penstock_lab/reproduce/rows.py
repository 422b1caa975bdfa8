"""One line of a table with a published figure next to ours."""

from collections.abc import Mapping

from penstock_lab.reports import Value

__all__ = ["Row", "row"]

Row = Mapping[str, Value]

_COLUMNS = ("figure", "algorithm", "setting", "measure", "ours", "paper", "note")


def row(*cells: Value) -> Row:
    """The line with these cells: figure, algorithm, setting, measure, ours, paper, note.

    >>> row("4", "panes", "3 nodes", "w2 on", "node 2", "node 2", "")["paper"]
    'node 2'
    """
    return dict(zip(_COLUMNS, cells, strict=True))
