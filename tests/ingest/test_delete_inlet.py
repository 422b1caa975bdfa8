from penstock.ingest import Gate
from penstock.ingest.limits import Limits
from raw_push import RawPush, ask, files, numbers, ranges, rows

SMALL = Limits(segment_bytes=60_000)


def push_some(gate, stream, first=0, count=500):
    with RawPush(gate.address) as push:
        push.send(stream, first, rows(first, count), connect=True)
        push.wait_for(stream, first + count)


def test_what_was_deleted_stays_deleted_and_numbers_go_on(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as gate:
        push_some(gate, "reports/1")
        push_some(gate, "other/1")
        ask(gate.address, "committed", inlet="reports", reader="q", upto={})
        ask(gate.address, "delete-inlet", inlet="reports")
        assert ranges(gate.address) == {}
        assert ask(gate.address, "status")["readers"] == []
    with Gate("127.0.0.1:0", tmp_path) as gate:
        assert (ranges(gate.address), ranges(gate.address, "other")) == ({}, {"other/1": [(0, 500)]})
        assert ask(gate.address, "next", streams=["reports/1"])["next"] == {"reports/1": 500}
        push_some(gate, "reports/1", 500)
        assert ranges(gate.address) == {"reports/1": [(500, 1000)]}
    with Gate("127.0.0.1:0", tmp_path) as gate:
        assert numbers(gate.address, "reports/1", 500, 1000) == list(range(500, 1000))


def test_files_of_a_deleted_inlet_go(tmp_path):
    with Gate("127.0.0.1:0", tmp_path, limits=SMALL) as gate:
        for first in range(0, 5000, 500):
            push_some(gate, "reports/1", first)
        assert len(files(tmp_path)) > 2
        ask(gate.address, "delete-inlet", inlet="reports")
        assert len(files(tmp_path)) == 1  # the one that is being written


def test_an_inlet_that_was_deleted_twice_is_gone_in_a_catalogue_written_anew(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as gate:
        for first in (0, 500):
            push_some(gate, "reports/1", first)
            ask(gate.address, "delete-inlet", inlet="reports")
        gate.log.catalogue._compact()
    with Gate("127.0.0.1:0", tmp_path) as gate:
        assert ranges(gate.address) == {}
        assert gate.log.catalogue.dropped == {"reports/1": 1000}
