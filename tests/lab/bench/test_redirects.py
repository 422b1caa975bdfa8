import tempfile
from contextlib import contextmanager

from ingest.held import numbers
from penstock.ingest import Client, Gate
from penstock_lab.bench.redirects import Held, redirects, what_gates_hold


@contextmanager
def gate():
    with tempfile.TemporaryDirectory() as folder, Gate("127.0.0.1:0", folder) as one:
        yield one.address


def test_redirections_lose_nothing_and_are_measured():
    measured = redirects(gate, streams=5, rate=1000, seconds=1.0, moves_per_s=20.0)
    figures = {check.name: check.value for check in measured.checks}
    assert figures["rows lost or invented by redirections"] == 0
    assert figures["rows out of place after redirections"] == 0
    assert figures["redirections followed"] == measured.rows[0]["redirections"] > 0
    assert measured.rows[0]["rows"] > 0


def test_rows_that_are_missing_twice_or_misplaced_are_counted():
    with gate() as one, gate() as other:
        for address, first in ((one, 0), (other, 5)):
            with Client(address, "moves/a", "n bigint", sequence=first) as client:
                client.push(numbers(first, 10))
        with Client(other, "moves/b", "n bigint", sequence=0) as client:
            client.push(numbers(7, 2))
        assert what_gates_hold([one, other], "moves") == Held(rows=22, distinct=17, wrong=2)
