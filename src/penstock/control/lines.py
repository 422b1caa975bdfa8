"""Lines of JSON, the form of every recording: one value a line, the last of which an end may have cut off."""

import json
from collections.abc import Mapping
from typing import Any

from penstock.errors import BadRecording

__all__ = ["line", "values"]


def line(value: Mapping[str, Any]) -> str:
    """A value as one line, always the same for the same value.

    >>> line({"kind": "epoch", "n": 1})
    '{"kind":"epoch","n":1}'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def values(lines: list[str], name: str) -> list[dict[str, Any]]:
    """The values of the lines of a file; a torn last line is left out."""
    if not lines:
        raise BadRecording(f"{name} is empty; a recording begins with the control that it records")
    found = []
    for number, each in enumerate(lines):
        try:
            found.append(json.loads(each))
        except ValueError as error:
            if number == len(lines) - 1 and number:
                break
            raise BadRecording(f"{name}, line {number + 1}: no JSON: {error}") from error
    return found
