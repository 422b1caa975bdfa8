import asyncio

import pytest

from ingest.held import act, numbers, whole
from penstock.errors import BufferFull, ClosedClient, NotAcknowledged, Refused
from penstock.ingest import AsyncClient, Connection

SCHEMA = "n bigint"


def test_many_streams_in_one_loop(gate):
    async def feed(connection, stream):
        async with AsyncClient(connection, stream, SCHEMA, batch_rows=10, buffer_rows=30) as client:
            for first in range(0, 100, 5):
                await client.push(numbers(first, 5))
            await client.flush(120)
            return client.acknowledged

    async def main():
        with Connection(gate.address) as connection:
            return await asyncio.gather(*(feed(connection, f"r/{n}") for n in range(20)))

    assert asyncio.run(main()) == [100] * 20
    assert whole([gate.address], "r") == {f"r/{n}": list(range(100)) for n in range(20)}


def test_a_full_buffer_waits_without_blocking_the_loop(gate):
    async def main():
        async with AsyncClient(gate.address, "r/a", SCHEMA, batch_rows=5, buffer_rows=10) as client:
            await client.push(numbers(0, 1))
            await client.flush(120)
            await asyncio.to_thread(act, gate.address, "suspend", streams=["r/a"])
            await client.push(numbers(1, 8))
            with pytest.raises(BufferFull, match="no room for 3 rows"):
                await client.push(numbers(9, 3), timeout=0.1)
            with pytest.raises(NotAcknowledged):
                await client.flush(0.1)
            waiting = asyncio.create_task(client.push(numbers(9, 3)))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await asyncio.to_thread(act, gate.address, "resume", streams=["r/a"])
            await waiting

    asyncio.run(main())
    assert whole([gate.address], "r")["r/a"] == list(range(12))


def test_redirections_are_followed_and_told(two_gates):
    one, other = (gate.address for gate in two_gates)

    async def main():
        async with AsyncClient(one, "r/a", SCHEMA) as client:
            await client.push(numbers(0, 5))
            await client.flush(120)
            await asyncio.to_thread(act, one, "redirect", streams=["r/a"], to=other)
            await client.push(numbers(5, 5))
            await client.flush(120)
            return [(each.source, each.target) for each in client.redirections]

    assert asyncio.run(main()) == [(one, other)]
    assert whole([one, other], "r")["r/a"] == list(range(10))


def test_errors_come_where_they_are_awaited(gate):
    async def main():
        async with AsyncClient(gate.address, "r/a", SCHEMA) as client:
            await client.push(numbers(0, 1))
        with pytest.raises(ClosedClient):
            await client.push(numbers(1, 1))
        with pytest.raises(ClosedClient, match="is not open; use async with"):
            await AsyncClient(gate.address, "r/b", SCHEMA).push(numbers(0, 1))
        other = await AsyncClient(gate.address, "r/b", "m string").open()
        await other.push([{"m": "x"}])
        with pytest.raises(Refused):
            await other.close()

    asyncio.run(main())
