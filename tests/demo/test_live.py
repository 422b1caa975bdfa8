import pyarrow as pa

from penstock.demo.city import City
from penstock.demo.live import LiveCity, by_vehicle
from penstock.ingest import Connection, Gate
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import IndexTicket


def test_each_vehicle_keeps_the_order_of_its_reports():
    reports = City(seed=7, vehicles=20).reports(60)
    parts = by_vehicle(reports)
    assert len({name for name, _ in parts}) == len(parts)
    for name, part in parts:
        mask = pa.compute.equal(reports["vehicle"], name)
        assert part.equals(reports.filter(mask))


def test_the_city_enters_a_gate_stream_by_stream(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "gate") as gate:
        with Connection(gate.address) as connection, LiveCity(City(7, 10), connection) as live:
            live.drive(rate=500, seconds=0.5)
        assert live.acknowledged == live.rows > 0
        with Endpoint(gate.address) as endpoint:
            index = endpoint.index(IndexTicket("reports"))
    assert sum(index["high"].to_pylist()) == live.rows
