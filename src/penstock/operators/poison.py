"""Rows for which a function of the user raises: found by halving, then told in an error or refused.

A row that is refused is left out as if it had never come; its values go with the reason to the rejects.
"""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from penstock.operators.blame import reason_of, unless_row_fault

__all__ = ["Refuse", "culprit", "record_of", "spared"]

Refuse = Callable[[str, str], None]
"""Takes the reason and the record, the values as text, of a row that a function cannot take."""

_LONGEST_ROW = 200


def record_of(row: Any) -> str:
    """The values of a row by column, as JSON.

    >>> record_of({"n": 7, "day": date(2024, 1, 1)})
    '{"n": 7, "day": "2024-01-01"}'
    """
    return json.dumps(row, default=_plain, ensure_ascii=False)


def spared(
    name: str, function: Callable[[Any], Any], batch: Any, columns: Sequence[str], refuse: Refuse
) -> tuple[Any, list[Any]]:
    """The rows of a batch that a function can take, and what it makes of them.

    A batch for which it raises is halved, down to single rows, which are refused; their records have the
    values of `columns`. A refused row costs about two calls for each halving. Rows that fail only together
    are taken apart, since a function works row by row. An error that is no row's fault is raised.
    """
    taken: list[Any] = []
    made: list[Any] = []
    pending = [batch]
    while pending:
        part = pending.pop()
        try:
            found = function(part)
        except Exception as error:
            unless_row_fault(name, error)
            if not part.num_rows:
                raise
            if part.num_rows == 1:
                refuse(reason_of(name, error), record_of(part.select(list(columns)).to_pylist()[0]))
                continue
            middle = part.num_rows // 2
            pending += [part.slice(middle), part.slice(0, middle)]
            continue
        taken.append(part)
        made.append(found)
    return pa.Table.from_batches(taken, batch.schema), made


def culprit(name: str, function: Callable[[Any], Any], batch: Any) -> str:
    """The row for which a function raises, found by halving the batch; two calls for each halving."""
    while batch.num_rows > 1:
        middle = batch.num_rows // 2
        halves = (batch.slice(0, middle), batch.slice(middle))
        failing = next((half for half in halves if _fails(name, function, half)), None)
        if failing is None:
            return f"{batch.num_rows} rows together, but for neither half of them"
        batch = failing
    text = str(batch.to_pylist()[0]) if batch.num_rows else ""
    shown = text if len(text) <= _LONGEST_ROW else f"{text[:_LONGEST_ROW]}…"
    return f"the row {shown}" if text else "a batch without rows"


def _fails(name: str, function: Callable[[Any], Any], batch: Any) -> bool:
    try:
        function(batch)
    except Exception as error:  # noqa: BLE001 -- whatever a user's function raises
        unless_row_fault(name, error)
        return True
    return False


def _plain(value: Any) -> Any:
    """A value that JSON has no form for: times as ISO 8601, bytes as base64, others as text."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
