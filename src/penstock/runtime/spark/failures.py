"""Why an epoch failed, in one sentence: Spark passes errors on in wrappers, with stack traces and plans.

A sentence names the place (epoch, stage or output), the cause, and what to do. Causes are of three kinds:

- an error of Penstock that a worker raised, which is raised again as what it is;
- another exception of Python in a worker, such as DuckDB's or one of a function of the user;
- an error of Spark: the innermost one that has a condition, such as ARITHMETIC_OVERFLOW, and the expression
  that it was evaluating.

The exception that Spark raised stays the `__cause__`, without its Java stack trace in the text;
`spark.sql.pyspark.jvmStacktrace.enabled` shows it.
"""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException, convert_exception
from pyspark.logger import PySparkLogger

from penstock import errors
from penstock.errors import PenstockError, RunError

__all__ = ["Failing", "hushed", "one_line", "raised", "translated"]

_TRACEBACK: Final = "Traceback (most recent call last)"
# Where Spark's own words begin after the last line of a worker's traceback.
_OWN_WORDS: Final = r"\n\s*\n|\n\s+at |\n\s*SQLSTATE: "
# That line, which Spark passes on as text.
_RAISED: Final = re.compile(rf"penstock\.errors\.(\w+): (.+?)(?:{_OWN_WORDS}|\Z)", re.DOTALL)
# The line of a traceback after its last frame: the exception and its message.
_PYTHON: Final = re.compile(r"^(?P<module>(?:\w+\.)*)(?P<name>[A-Za-z_]\w*)(?:: (?P<text>.*))?$")
_CONDITION: Final = re.compile(r"^\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*", re.DOTALL)
# Spark's hints that do not help here: a setting that the plan fixes, a code, where in a text it was.
_NOISE: Final = (
    re.compile(r"\n== (SQL|DataFrame).*", re.DOTALL),
    re.compile(r"\s*SQLSTATE: \w+"),
    re.compile(r'\s*If necessary,? set "?spark\.sql\.ansi\.enabled"? to "?false"?[^.]*\.'),
    re.compile(r"\s*It is possible the underlying files have been updated\..*", re.DOTALL),
)
# Conditions that only say that something below them failed.
_WRAPPERS: Final = ("STREAM_FAILED", "FAILED_EXECUTE_UDF", "TASK_WRITE_FAILED", "_LEGACY_ERROR_TEMP")
_LONGEST: Final = 500
_DEEPEST: Final = 20

_FILE: Final = "restore or replace the file, then start again with the same checkpoint"
_VALUE: Final = "leave such tuples out with where() before it, or use a function that gives null for them"
_MEMORY: Final = (
    "give Spark more memory (spark.driver.memory, spark.executor.memory) or epochs fewer tuples "
    "(bytes_per_epoch, files_per_epoch), then start again with the same checkpoint"
)
_ADVICE: Final = (
    ("FAILED_READ_FILE", _FILE),
    ("EOFException", f"a Python worker crashed or was killed, often for want of memory: {_MEMORY}"),
    ("Python worker exited", f"it crashed or was killed, often for want of memory: {_MEMORY}"),
    ("OutOfMemoryError", _MEMORY),
    ("ExecutorLostFailure", _MEMORY),
    ("MemoryError", _MEMORY),
)
_AGAIN: Final = "correct the cause, then start again with the same checkpoint"

_quiet = threading.local()


class _Hush(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        # Py4J logs what an epoch raised after the thread has left it; the run raises the same.
        own = record.exc_info is not None and isinstance(record.exc_info[1], PenstockError)
        return not (own or getattr(_quiet, "now", False))


_HUSH: Final = _Hush()
# Got once, and early: while PySpark makes a logger of its own class, a logger that another thread makes is of
# that class too.
_LOGGERS: Final = (
    PySparkLogger.getLogger("SQLQueryContextLogger"),
    PySparkLogger.getLogger("DataFrameQueryContextLogger"),
    logging.getLogger("py4j.clientserver"),
)


@dataclass(frozen=True)
class Failing:
    """What is under way, for the sentence: an epoch, and a stage or an output of it."""

    epoch: int
    part: str = ""

    def __str__(self) -> str:
        return f"epoch {self.epoch}, {self.part}" if self.part else f"epoch {self.epoch}"


@contextmanager
def translated(place: Failing | None = None) -> Iterator[None]:
    """Raise a sentence about what failed in place of Spark's wrappers of it."""
    try:
        with hushed():
            yield
    except PenstockError:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever it is, a person reads it
        found = raised(error, place)
        raise found from found.__cause__


@contextmanager
def hushed() -> Iterator[None]:
    """Let PySpark not log errors of this thread, which it does with their Java stack traces."""
    before = getattr(_quiet, "now", False)
    for each in _LOGGERS:
        each.addFilter(_HUSH)
    _quiet.now = True
    try:
        yield
    finally:
        _quiet.now = before


def raised(error: BaseException, place: Failing | None = None) -> PenstockError:
    """The error in one sentence; one that is Penstock's stays as it is."""
    if isinstance(error, PenstockError):
        return error
    prefix = "the run failed" if place is None else str(place)
    cause = error
    try:
        java = _java(error)
        if isinstance(error, Py4JJavaError):
            # PySpark's exception for it: its text is a message, not a stack trace.
            with hushed():
                cause = convert_exception(error.java_exception)
        kind, sentence = _sentence(cause, java)
    except (Py4JError, OSError):  # the JVM cannot be asked
        kind, sentence = RunError, _advised(f"Spark's JVM has ended: {one_line(str(error))}")
    found = kind(f"{prefix}: {sentence}")
    found.__cause__ = cause
    return found


def _sentence(error: BaseException, java: Any) -> tuple[type[PenstockError], str]:
    """The class of the error, and what it says."""
    # The traceback of a worker may stand in any of the errors that wrap each other.
    texts = [str(error), *(str(each.getMessage() or "") for each in _chain(java))]
    text = next((each for each in texts if _TRACEBACK in each), texts[0])
    known = _RAISED.search(text)
    kind = getattr(errors, known.group(1), None) if known else None
    if known is not None and kind is not None:
        return kind, known.group(2).strip()
    if java is None:
        return RunError, _advised(f"{type(error).__name__}: {one_line(text)}" if text else repr(error))
    if _TRACEBACK in text:
        return RunError, _advised(_python(text))
    return RunError, _advised(*_spark(java))


def _java(error: BaseException) -> Any:
    """The throwable of Java behind an error, None if it comes from Python."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return error._origin if isinstance(error, CapturedException) else None  # noqa: SLF001


def _python(text: str) -> str:
    """The exception at the end of a worker's traceback."""
    lines = text.rpartition(_TRACEBACK)[2].splitlines()
    for place, line in enumerate(lines[1:], 1):
        found = _PYTHON.match(line)
        if found:
            # A message goes on until Spark's own words begin.
            more = re.split(_OWN_WORDS, "\n".join(lines[place:]))[0]
            message = more.partition(": ")[2]
            if "duckdb" in found["module"]:
                return f"DuckDB: {one_line(message)}"
            return f"{found['name']}: {one_line(message)}" if message else found["name"]
    return one_line(text)


def _spark(java: Any) -> tuple[str, str]:
    """What Spark says: the innermost error with a condition, else the innermost of all; and a hint."""
    chain = list(_chain(java))
    texts = [str(each.getMessage() or each.getClass().getName()) for each in chain]
    told = [place for place, each in enumerate(texts) if _condition(each) and not _wraps(each)]
    if not told:
        kind = chain[-1].getClass().getSimpleName()
        return f"{kind}: {one_line(texts[-1])}".removeprefix("SparkException: "), ""
    place = told[-1]
    condition, fragment = _condition(texts[place]), _fragment(chain[place])
    # What is wrong with a file stands below the error that names it.
    below = (
        f" ({one_line(texts[-1])})" if condition == "FAILED_READ_FILE.NO_HINT" and chain[place + 1 :] else ""
    )
    about = f"{fragment}: " if fragment else ""
    return f"{about}[{condition}] {one_line(texts[place])}{below}", _VALUE if fragment else ""


def _chain(java: Any) -> Iterator[Any]:
    """A throwable of Java and its causes, outermost first."""
    for _ in range(_DEEPEST):
        if java is None:
            return
        yield java
        java = java.getCause()


def _condition(text: str) -> str:
    found = _CONDITION.match(text)
    return found["name"] if found else ""


def _wraps(text: str) -> bool:
    return _condition(text).startswith(_WRAPPERS)


def _fragment(java: Any) -> str:
    """The expression that a throwable of Spark says it was evaluating, or nothing."""
    try:
        contexts = java.getQueryContext()
        return one_line(contexts[0].fragment()) if len(contexts) else ""
    except (Py4JError, TypeError):  # not every throwable has a context, nor every context a text
        return ""


def one_line(text: str) -> str:
    r"""A message of Spark without its condition, its codes, and the place in the text of a query.

    >>> one_line("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\na / b")
    'Division by zero'
    """
    text = _CONDITION.sub("", text)
    for each in _NOISE:
        text = each.sub("", text)
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _advised(text: str, hint: str = "") -> str:
    advice = next((words for mark, words in _ADVICE if mark in text), hint or _AGAIN)
    return f"{text}; {advice}"
