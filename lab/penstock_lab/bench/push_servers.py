"""The servers that rows are pushed to: a gate, the bare Flight server, Redis; each in its own process."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from penstock_lab.bench.waiting import free_port, listens, wait_until

__all__ = ["bare", "gate", "has_redis", "redis"]

_START_S: Final = 120
_PENSTOCK: Final = (sys.executable, "-c", "from penstock.cli import main; main()")


def has_redis() -> bool:
    """Whether redis-server is installed."""
    return shutil.which("redis-server") is not None


@contextmanager
def gate() -> Iterator[str]:
    """A gate on a folder of its own; its address."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        port = free_port()
        options = ["--address", f"127.0.0.1:{port}", "--folder", folder]
        with _running([*_PENSTOCK, "gate", *options], port) as address:
            yield address


@contextmanager
def bare() -> Iterator[str]:
    """The server that only answers."""
    port = free_port()
    with _running([sys.executable, "-m", "penstock_lab.bench.bare_flight", str(port)], port) as address:
        yield address


@contextmanager
def redis() -> Iterator[str]:
    """Redis with its append-only file, synced every second."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        port = free_port()
        settings = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": "", "appendonly": "yes"}
        settings |= {"appendfsync": "everysec", "daemonize": "no", "loglevel": "warning"}
        options = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
        with _running(["redis-server", *options], port) as address:
            yield address


@contextmanager
def _running(command: list[str], port: int) -> Iterator[str]:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)  # noqa: S603 -- our own command
        try:
            _wait_for(process, port, said)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, said: IO[bytes]) -> None:
    def ended() -> bool:
        return process.poll() is not None

    if not wait_until(lambda: ended() or listens(port), _START_S) or ended():
        said.seek(0)
        raise RuntimeError(f"{process.args!r} does not listen: {said.read().decode()[-2000:]}")
