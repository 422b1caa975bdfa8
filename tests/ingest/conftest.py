import tempfile
from pathlib import Path

import pytest

from penstock.ingest import Gate
from scratch import DISK


@pytest.fixture
def tmp_path():
    """A folder on a disk, where what bypasses the cache must be whole blocks; in memory anything may."""
    with tempfile.TemporaryDirectory(dir=DISK, prefix="gate-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def gate(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "gate") as one:
        yield one


@pytest.fixture
def two_gates(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "a") as one, Gate("127.0.0.1:0", tmp_path / "b") as other:
        yield one, other
