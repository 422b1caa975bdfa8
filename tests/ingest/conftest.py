import pytest

from penstock.ingest import Gate


@pytest.fixture
def gate(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "gate") as one:
        yield one


@pytest.fixture
def two_gates(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "a") as one, Gate("127.0.0.1:0", tmp_path / "b") as other:
        yield one, other
