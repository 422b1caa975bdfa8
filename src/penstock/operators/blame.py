"""Which exceptions under a function of the user are a row's fault, and which are the machine's.

A row's fault is what the function raises because of values: it can be told, and set aside with the row. The
rest could hit any row at that moment: to set rows aside for it would lose good ones, so it fails the task,
and the run if no attempt succeeds. In doubt it is the machine's, because then nothing is lost; a function
that knows better catches the exception and raises ValueError.

The machine's are:

- MemoryError, with those of Arrow and numpy. A huge row may be the reason, but nobody can tell.
- OSError: disks, files, networks, time-outs, interrupted calls. A file that is not there may be missing on
  this machine alone. Not among them are numbers that the C library cannot take, and damaged gzip data, which
  Python reports as OSError, too.
- ImportError: a package that this worker lacks.
- SystemError, time-outs of subprocesses, broken pools of processes, cancelled calls of Arrow.
- what DuckDB, SQLite and PyTorch raise for memory, disks and interrupts, if the function uses them.

RecursionError is a row's: the depth of its values decides, and the next attempt would be as deep. Exceptions
that are not an Exception (KeyboardInterrupt, SystemExit) are never caught. Errors of Penstock are no row's.
"""

import errno
import sys
from concurrent.futures import BrokenExecutor
from gzip import BadGzipFile
from subprocess import TimeoutExpired
from typing import Final

import pyarrow as pa

from penstock.errors import MachineFault, PenstockError

__all__ = ["is_row_fault", "reason_of", "unless_row_fault"]

_MACHINE: Final = (
    MemoryError,
    OSError,
    ImportError,
    SystemError,
    TimeoutExpired,
    BrokenExecutor,
    pa.lib.ArrowCancelled,
)
# By module, because a worker imports these only if a function does.
_MACHINE_OF: Final = {
    "duckdb": ("OperationalError", "InternalError", "FatalException", "InterruptException"),
    "sqlite3": ("OperationalError", "InternalError"),
    "torch": ("OutOfMemoryError",),
}
_OF_VALUES: Final = (errno.EDOM, errno.ERANGE, errno.EOVERFLOW)


def is_row_fault(error: BaseException) -> bool:
    """Whether values of a row are to blame for an exception.

    >>> is_row_fault(ZeroDivisionError()), is_row_fault(MemoryError()), is_row_fault(TimeoutError())
    (True, False, False)
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_row_fault, error.exceptions))
    if isinstance(error, PenstockError) or not isinstance(error, Exception):
        return False
    if isinstance(error, OSError):
        return isinstance(error, BadGzipFile) or error.errno in _OF_VALUES
    return not isinstance(error, (*_MACHINE, *_loaded()))


def unless_row_fault(name: str, error: Exception) -> None:
    """Raise if no row is to blame for what the function of this name raised."""
    if isinstance(error, PenstockError):
        raise error
    if not is_row_fault(error):
        raise MachineFault(
            f"{reason_of(name, error)}; that is no row's fault: give the workers what they lack, or let the "
            "function raise ValueError where a row is to blame"
        ) from error


def reason_of(name: str, error: Exception) -> str:
    """What a function raised, in one line."""
    text = " ".join(str(error).split())
    return f"{name} raised {type(error).__name__}{f': {text}' if text else ''}"


def _loaded() -> tuple[type[BaseException], ...]:
    """The classes of `_MACHINE_OF` whose modules are imported."""
    found = [
        getattr(sys.modules[module], name, None)
        for module, names in _MACHINE_OF.items()
        if module in sys.modules
        for name in names
    ]
    return tuple(each for each in found if each is not None)
