import threading

import pytest

from penstock.ingest import Gate
from penstock_lab.bench import push_servers
from penstock_lab.bench.bare_flight import BareServer
from penstock_lab.bench.gates import FULL, QUICK, Case, _checks, loads
from penstock_lab.bench.pushing_clients import PUSHING, Load
from penstock_lab.bench.report_rows import entries, report_rows

ROWS = 100


def load(engine, address, streams=("reports/a", "reports/b"), batches=7):
    return Load(engine, address, streams, batches, ROWS, window=3, seed=1)


@pytest.mark.parametrize("case", [Case(1, 100), Case(8, 10_000), Case(512, 10_000)])
def test_clients_share_the_streams_and_every_stream_gets_a_batch(case):
    for turn in (0, 1):
        given = loads("gate", "a:1", case, FULL, 7, turn)
        streams = [stream for each in given for stream in each.streams]
        assert len(set(streams)) == len(streams) == case.streams
        assert len({each.batches for each in given}) == 1
    assert all(each.batches >= len(each.streams) for each in given)
    redis = loads("redis", "a:1", case, QUICK, 7, 1)
    assert sum(each.batches * each.batch_rows for each in redis) <= max(4 * case.batch_rows, QUICK.redis_rows)


def test_every_batch_is_acknowledged_and_timed_by_the_bare_server_and_by_a_gate(tmp_path):
    with BareServer("grpc://127.0.0.1:0") as bare, Gate("127.0.0.1:0", tmp_path) as gate:
        serving = threading.Thread(target=bare.serve, daemon=True)
        serving.start()
        waits = PUSHING["bare"](load("bare", f"127.0.0.1:{bare.port}"))()
        assert len(waits) == 7
        assert (waits > 0).all()
        assert len(PUSHING["gate"](load("gate", gate.address))()) == 7
        assert gate.log.next("reports/a") == 4 * ROWS
        assert gate.log.next("reports/b") == 3 * ROWS


def test_redis_gets_every_row():
    from redis import Redis

    with push_servers.redis() as address:
        assert len(PUSHING["redis"](load("redis", address))()) == 7
        server = Redis(port=int(address.rsplit(":", 1)[1]))
        assert server.xlen("reports/a") + server.xlen("reports/b") == 7 * ROWS
        assert server.config_get("appendfsync") == {"appendfsync": "everysec"}


def test_rows_of_both_forms_are_the_same():
    batch = report_rows(3, seed=1)
    assert [each["speed"] for each in entries(batch)] == batch["speed"].to_pylist()


def test_a_missing_engine_breaks_its_checks():
    bare, redis = _checks(Case(8, 10_000), {"gate": 10.0, "bare": 20.0})
    assert (bare.value, bare.ok, redis.ok) == (0.5, True, False)
    assert [check.floor for check in _checks(Case(8, 100), {"gate": 10.0, "redis": 1.0})] == [5.0]
