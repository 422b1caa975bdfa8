"""Checks of user values: each returns the plain value or raises an error that says what to give.

The error class is an argument because a source, a sink and a run each raise their own.
"""

import os
from collections.abc import Sequence
from numbers import Integral
from typing import TypeVar

from penstock.errors import PenstockError

__all__ = ["flag", "one_of", "path_text", "printable", "session_or_none", "short", "whole_number"]

Word = TypeVar("Word", bound=str)

_LONGEST_SHOWN = 60
_TECHNICAL = 2**31 - 1  # larger limits are those of machine integers, which tell a reader nothing


def short(given: object) -> str:
    """A value as errors show it: its text, shortened if it is long."""
    text = repr(given)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def whole_number(  # noqa: PLR0913 -- a range, and the words of its error
    name: str, given: object, least: int, most: int, error: type[PenstockError], *, hint: str = ""
) -> int:
    """An int from `least` to `most`; a bool does not count, a numpy integer does.

    >>> from penstock.errors import BadSink
    >>> whole_number("rows", 2.5, 1, 10, BadSink)
    Traceback (most recent call last):
        ...
    penstock.errors.BadSink: rows=2.5; give a whole number, from 1 to 10
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or not least <= int(given) <= most:
        range_ = f"{least:,} or more" if most >= _TECHNICAL else f"from {least:,} to {most:,}"
        raise error(f"{name}={short(given)}; give a whole number, {range_}{hint}")
    return int(given)


def one_of(name: str, given: object, known: Sequence[Word], error: type[PenstockError]) -> Word:
    """One of the known words."""
    for each in known:
        if isinstance(given, str) and given == each:
            return each
    raise error(f"{name}={short(given)}; give one of {', '.join(known)}")


def flag(name: str, given: object, error: type[PenstockError]) -> bool:
    """True or False, but no value that is merely truthy or falsy."""
    if not isinstance(given, bool):
        raise error(f"{name}={short(given)}; give True or False")
    return given


def printable(name: str, given: object, error: type[PenstockError], *, longest: int = 200) -> str:
    """A text that is safe in a log, a file and a protocol."""
    if not isinstance(given, str) or not 1 <= len(given) <= longest or not given.isprintable():
        raise error(f"{name}={short(given)}; give a text of 1 to {longest} printable characters")
    return given


def path_text(given: object, error: type[PenstockError], *, name: str = "path") -> str:
    """A local path or a URI as text."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str) or not text.strip() or "\0" in text or not _encodes(text):
        raise error(f"{name} {short(given)}; give a path or a URI, such as 'out' or 's3://bucket/out'")
    return text


def session_or_none(name: str, given: object, error: type[PenstockError]) -> None:
    """Check that it is a Spark session of this process, or None."""
    if given is None:
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- declaring needs no Spark

    if not isinstance(given, SparkSession):
        raise error(
            f"{name}={short(given)} is {type(given).__name__}; give a pyspark.sql.SparkSession (not one of "
            "Spark Connect), or None"
        )


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
