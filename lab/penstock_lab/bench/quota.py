"""A part of a core for the Python of each executor, by control groups of Linux: the clock decides, no rival.

Spark starts the Python of an executor by the command in PYSPARK_PYTHON. Here that is a script which puts
itself into a control group of its own before it becomes Python; all workers are its children. The quota
holds some seconds later: an executor on a machine of its own has a whole core to load Python.
"""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import RunError

__all__ = ["capped_python"]

_PERIOD_US = 50_000
_ROOT = Path("/sys/fs/cgroup")
_PYTHON = "PYSPARK_PYTHON"
_PATIENCE_S = 20.0
_LOADING_S = 4


@contextmanager
def capped_python(share: float) -> Iterator[None]:
    """While it is open, each executor that starts has so much of a core for all of its Python."""
    unified = (_ROOT / "cgroup.controllers").exists()
    own = (_ROOT if unified else _ROOT / "cpu") / f"penstock-{os.getpid()}"
    quota = int(share * _PERIOD_US)
    limits = {"cpu.max": f"{quota} {_PERIOD_US}"}
    if not unified:
        limits = {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota)}
    try:
        own.mkdir()
        if unified:
            (_ROOT / "cgroup.subtree_control").write_text("+cpu")
            (own / "cgroup.subtree_control").write_text("+cpu")
    except OSError as error:
        raise RunError(
            f"no executor can be held to {share:g} of a core: {error}; run as root on Linux, or give a share "
            "of 1 on a machine with a core for each executor"
        ) from error
    before = os.environ.get(_PYTHON)
    with tempfile.TemporaryDirectory(prefix="penstock-python-") as folder:
        script = Path(folder, "python")
        script.write_text(_script(own, limits))
        script.chmod(0o755)
        os.environ[_PYTHON] = str(script)
        try:
            yield
        finally:
            os.environ.pop(_PYTHON)
            if before is not None:
                os.environ[_PYTHON] = before
            _remove(own)


def _script(own: Path, limits: dict[str, str]) -> str:
    group = f"{shlex.quote(str(own))}/$$"
    lines = ["#!/bin/sh", f"mkdir {group}"]
    capped = "; ".join(f"echo {value} > {group}/{name}" for name, value in limits.items())
    # Spark talks to Python by these streams: nobody else may hold them open.
    lines.append(f"(sleep {_LOADING_S}; {capped}) </dev/null >/dev/null 2>&1 &")
    lines += [f"echo $$ > {group}/cgroup.procs", f'exec {shlex.quote(sys.executable)} "$@"']
    return "\n".join(lines) + "\n"


def _remove(own: Path) -> None:
    """A group can go once its last process has ended."""
    deadline = time.monotonic() + _PATIENCE_S
    while own.exists() and time.monotonic() < deadline:
        for each in [*(child for child in own.iterdir() if child.is_dir()), own]:
            with suppress(OSError):
                each.rmdir()
        time.sleep(0.2)
