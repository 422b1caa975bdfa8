"""The queries of NEXMark, each in Penstock and in Spark SQL, and why the others are not here.

The queries are those of nexmark/nexmark. Where the original groups without a window and updates its results
with every row, and a day is part of its key, the query here gives the same groups once the day is over.
q4, q18 and q19 are updated, as the original: old rows are retracted, and what stands at the end is compared.
Spark SQL is run as a stream for its speed and as a batch for the truth.

q5 and q7 ask for the first rows of windows, of equal ones all; Spark, whose streams have no such thing, joins
with the greatest value. In q4, q6 and q9 an auction closes at its own time, and only then its best bid is
known: a keyed function waits for that. q13 looks its rows up in a table that is there beforehand (`SIDE`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import penstock as ps
from penstock.aggregates.aggregate import Aggregate

__all__ = ["MISSING", "QUERIES", "SIDE", "NexmarkQuery"]

Streams = Mapping[str, ps.Relation]


@dataclass(frozen=True)
class NexmarkQuery:
    """A query: the streams that it reads, in Penstock, and in Spark SQL, whose columns are compared."""

    reads: tuple[str, ...]
    penstock: Callable[[Streams], ps.Relation]
    spark: str


_LOW, _MIDDLE, _HIGH = "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000"
_RANKS: Final = {"rank1": _LOW, "rank2": _MIDDLE, "rank3": _HIGH}


def _statistics(counted: Mapping[str, str]) -> dict[str, Aggregate]:
    """Numbers of bids, and of distinct values of columns, in all and by the rank of the price."""
    found: dict[str, Aggregate] = {"total_bids": ps.count()}
    found |= {f"{rank}_bids": ps.count(f"CASE WHEN {where} THEN 1 END") for rank, where in _RANKS.items()}
    for name, column in counted.items():
        found[f"total_{name}"] = ps.count_distinct(column)
        for rank, where in _RANKS.items():
            found[f"{rank}_{name}"] = ps.count_distinct(f"CASE WHEN {where} THEN {column} END")
    return found


def _statistics_sql(counted: Mapping[str, str]) -> str:
    found = ["count(*) AS total_bids"]
    found += [f"count(*) FILTER (WHERE {where}) AS {rank}_bids" for rank, where in _RANKS.items()]
    for name, column in counted.items():
        found.append(f"count(DISTINCT {column}) AS total_{name}")
        found += [
            f"count(DISTINCT {column}) FILTER (WHERE {where}) AS {rank}_{name}"
            for rank, where in _RANKS.items()
        ]
    return ", ".join(found)


_COUNTED = {"bidders": "bidder", "auctions": "auction"}
_TAG = "regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"
_CHANNEL = (
    "CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1' "
    "WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3' "
    f"ELSE {_TAG} END"
)
_TAGGED = f"{_TAG} <> '' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')"
_PRICED = "0.908 * price > 1000000 AND 0.908 * price < 50000000"
_DAYTIME = (
    "CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime' "
    "WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END"
)
_LETTERS = "length(extra) - length(replace(extra, 'c', ''))"


def _hot_items(streams: Streams) -> ps.Relation:
    counts = streams["bid"].group_by("auction").window("10 seconds", slide="2 seconds").agg(num=ps.count())
    return counts.by_window().top(1, by="num", ties=True).select("auction", "num")


def _highest_bids(streams: Streams) -> ps.Relation:
    bids = streams["bid"].select("auction", "bidder", "price", "extra", bid_time="date_time")
    highest = bids.window("10 seconds").top(1, by="price", ties=True)
    return highest.select("auction", "price", "bidder", "bid_time", "extra")


def _new_users(streams: Streams) -> ps.Relation:
    people = streams["person"].group_by("id", "name").window("10 seconds").agg(times=ps.count())
    sellers = streams["auction"].group_by("seller").window("10 seconds").agg(auctions=ps.count())
    joined = people.select("id", "name").join(
        sellers.select("seller"), {"id": "seller"}, within="1 second", suffixes=("", "_auction")
    )
    return joined.select("id", "name")


def _local_items(streams: Streams) -> ps.Relation:
    items = streams["auction"].where("category = 10").select("id", "seller")
    people = (
        streams["person"].where("state IN ('OR', 'ID', 'CA')").select("name", "city", "state", person="id")
    )
    return items.join(people, {"seller": "person"}, keep=_KEEP).select("name", "city", "state", "id")


def _expanded_bids(streams: Streams) -> ps.Relation:
    bids = streams["bid"].select("auction", "bidder", "price", "channel")
    items = streams["auction"].where("category = 10")
    wanted = items.select("item_name", "description", "seller", "category", item="id")
    return bids.join(wanted, {"auction": "item"}, keep=_KEEP)


_ITEM: Final = {
    "item_name": "string",
    "description": "string",
    "initial_bid": "bigint",
    "reserve": "bigint",
    "begins": "timestamp",
    "expires": "timestamp",
    "seller": "bigint",
    "category": "bigint",
    "extra": "string",
}
_OFFER: Final = {"bidder": "bigint", "price": "bigint", "bid_time": "timestamp", "bid_extra": "string"}


class Closing(ps.Processor):
    """The best bid of each auction, the earliest of several, given just after the auction has expired.

    A bid for an auction that is not open counts for nothing. The timer is a microsecond after the last moment
    at which a bid counts, since it fires before rows of its own time.
    """

    def step(self, block: ps.Block) -> ps.Outcome:
        """Items and offers of runs of events: each begins with what is kept, or with nothing."""
        own = np.append(block.runs[block.first], block.runs)  # states come first, then events
        items = _from(block, _ITEM)
        opened = _known(items["expires"])
        item = _last_of_runs(own, opened)
        expires = _microseconds(items["expires"])[item]
        offers = _from(block, _OFFER)
        made = _microseconds(offers["bid_time"])
        counts = _known(offers["price"]) & (item >= 0)[own] & (made <= expires[own])
        counts &= made >= _microseconds(items["begins"])[item][own]
        price = offers["price"].fill_null(0).to_numpy()
        order = np.lexsort((-made, price, own))  # the best bid of a run comes last
        order = order[counts[order]]
        best = np.full(len(item), -1)
        best[own[order]] = order
        table = pa.table(
            {
                **{name: items[name].take(_places(item)) for name in _ITEM},
                **{name: offers[name].take(_places(best)) for name in _OFFER},
            }
        )
        sold = np.flatnonzero(block.fired & (best >= 0)[block.runs])
        last = block.runs[block.last]
        timers = np.where((item >= 0)[block.runs] & ~block.fired, expires[block.runs] + 1, ps.NO_TIMER)
        return ps.Outcome(
            results=table.take(pa.array(block.runs[sold])),
            at=sold,
            state=table.take(pa.array(last)),
            keep=(item >= 0)[last] & ~block.fired[block.last],
            timers=timers,
        )


def _from(block: ps.Block, columns: Mapping[str, str]) -> dict[str, Any]:
    """These columns of the states, then of the events."""
    return {
        name: pa.concat_arrays(
            [table[name].combine_chunks().cast(block.state[name].type) for table in (block.state, block.rows)]
        )
        for name in columns
    }


def _last_of_runs(runs: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each run the place of the last row that is wanted, -1 where there is none."""
    found = np.full(runs.max(initial=-1) + 1, -1)
    found[runs[wanted]] = np.flatnonzero(wanted)
    return found


def _places(found: NDArray[np.int64]) -> Any:
    return pa.array(found, mask=found < 0)


def _known(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _microseconds(times: Any) -> NDArray[np.int64]:
    found: NDArray[np.int64] = times.cast(pa.int64()).fill_null(0).to_numpy()
    return found


def _sold(streams: Streams) -> ps.Relation:
    """The auctions that had a bid, each with the best, when they close."""
    # An auction goes before bids of its own time: rows of one time go by their columns, nulls last.
    items = streams["auction"].select(
        "id",
        **{name: "date_time" if name == "begins" else name for name in _ITEM},
        **{name: f"cast(NULL AS {kind})" for name, kind in _OFFER.items()},
    )
    offers = streams["bid"].select(
        id="auction",
        **{name: f"cast(NULL AS {kind})" for name, kind in _ITEM.items()},
        bidder="bidder",
        price="price",
        bid_time="date_time",
        bid_extra="extra",
    )
    return closed(items.union(offers))


def closed(events: ps.Relation) -> ps.Relation:
    """Auctions and bids, united, as closed auctions."""
    columns = {**_ITEM, **_OFFER}
    return events.group_by("id").process(Closing(), state=columns, result=columns)


_SOLD_SQL = (
    "SELECT * FROM (SELECT a.id, a.item_name, a.description, a.initial_bid, a.reserve, "
    "a.date_time AS begins, a.expires, a.seller, a.category, a.extra, b.bidder, b.price, "
    "b.date_time AS bid_time, b.extra AS bid_extra, "
    "row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place "
    "FROM auction AS a JOIN bid AS b ON a.id = b.auction "
    "AND b.date_time BETWEEN a.date_time AND a.expires) WHERE place = 1"
)

_LISTED = 10_000
SIDE: Final = pa.table(
    {
        "key": pa.array(np.arange(0, _LISTED, 2)),
        "value": pa.array([f"value {each}" for each in range(0, _LISTED, 2)]),
    }
)
"""The table beside the streams of q13: a value for every second remainder."""


def looked_up(bids: pa.RecordBatch) -> pa.RecordBatch:
    """The bids with the value that `SIDE` has for them, null where there is none."""
    remainders = pa.array(bids["auction"].to_numpy() % _LISTED)
    found = SIDE["value"].combine_chunks().take(pc.index_in(remainders, SIDE["key"].combine_chunks()))
    names = ["auction", "bidder", "price"]
    return pa.record_batch([*(bids[name] for name in names), found], names=[*names, "value"])


_KEEP = "1 day"  # more than the data spans: as if for ever
_DAY = "GROUP BY window(date_time, '1 day')"

QUERIES: Final[Mapping[str, NexmarkQuery]] = {
    "q0": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].select("auction", "bidder", "price", "date_time", "extra"),
        "SELECT auction, bidder, price, date_time, extra FROM bid",
    ),
    "q1": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].select("auction", "bidder", "date_time", "extra", euros="0.908 * price"),
        "SELECT auction, bidder, date_time, extra, 0.908 * price AS euros FROM bid",
    ),
    "q2": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].where("auction % 123 = 0").select("auction", "price"),
        "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    ),
    "q3": NexmarkQuery(
        ("auction", "person"),
        _local_items,
        "SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id "
        "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    ),
    "q4": NexmarkQuery(
        ("auction", "bid"),
        lambda of: _sold(of).group_by("category").agg(mean=ps.avg("price")),
        f"SELECT category, avg(price) AS mean FROM ({_SOLD_SQL}) GROUP BY category",
    ),
    "q5": NexmarkQuery(
        ("bid",),
        _hot_items,
        "WITH counts AS (SELECT window, auction, count(*) AS num FROM bid "
        "GROUP BY window(date_time, '10 seconds', '2 seconds'), auction), "
        "most AS (SELECT window, max(num) AS most FROM counts GROUP BY window) "
        "SELECT counts.auction, counts.num FROM counts JOIN most "
        "ON counts.window = most.window AND counts.num >= most.most",
    ),
    "q6": NexmarkQuery(
        ("auction", "bid"),
        lambda of: _sold(of).group_by("seller").window(10, slide=1, rows=True).agg(mean=ps.avg("price")),
        "SELECT seller, avg(price) OVER (PARTITION BY seller ORDER BY expires, price "
        f"ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS mean FROM ({_SOLD_SQL})",
    ),
    "q7": NexmarkQuery(
        ("bid",),
        _highest_bids,
        "SELECT b.auction, b.price, b.bidder, b.date_time AS bid_time, b.extra FROM bid AS b JOIN "
        "(SELECT window, max(price) AS price FROM bid GROUP BY window(date_time, '10 seconds')) AS h "
        "ON b.price = h.price AND b.date_time >= h.window.start AND b.date_time < h.window.end",
    ),
    "q8": NexmarkQuery(
        ("person", "auction"),
        _new_users,
        "SELECT p.id, p.name FROM "
        "(SELECT window, id, name FROM person GROUP BY window(date_time, '10 seconds'), id, name) AS p JOIN "
        "(SELECT window, seller FROM auction GROUP BY window(date_time, '10 seconds'), seller) AS a "
        "ON p.id = a.seller AND p.window = a.window",
    ),
    "q9": NexmarkQuery(
        ("auction", "bid"),
        lambda of: _sold(of).select("id", *_ITEM, *_OFFER),
        f"SELECT {', '.join(['id', *_ITEM, *_OFFER])} FROM ({_SOLD_SQL})",
    ),
    "q11": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].group_by("bidder").session("10 seconds").agg(bids=ps.count()),
        "SELECT bidder, count(*) AS bids FROM bid GROUP BY session_window(date_time, '10 seconds'), bidder",
    ),
    "q13": NexmarkQuery(
        ("bid",),
        lambda of: (
            of["bid"]
            .map(looked_up, "auction bigint, bidder bigint, price bigint, value string")
            .where("value IS NOT NULL")
        ),
        "SELECT date_time, auction, bidder, price, side.value FROM bid "
        f"JOIN side ON auction % {_LISTED} = side.key",
    ),
    "q14": NexmarkQuery(
        ("bid",),
        lambda of: (
            of["bid"]
            .where(_PRICED)
            .select(
                "auction",
                "bidder",
                "date_time",
                "extra",
                euros="0.908 * price",
                kind=_DAYTIME,
                letters=_LETTERS,
            )
        ),
        f"SELECT auction, bidder, date_time, extra, 0.908 * price AS euros, {_DAYTIME} AS kind, "
        f"{_LETTERS} AS letters FROM bid WHERE {_PRICED}",
    ),
    "q15": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].window("1 day").agg(**_statistics(_COUNTED)),
        f"SELECT {_statistics_sql(_COUNTED)} FROM bid {_DAY}",
    ),
    "q16": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].group_by("channel").window("1 day").agg(**_statistics(_COUNTED)),
        f"SELECT channel, {_statistics_sql(_COUNTED)} FROM bid {_DAY}, channel",
    ),
    "q17": NexmarkQuery(
        ("bid",),
        lambda of: (
            of["bid"]
            .group_by("auction")
            .window("1 day")
            .agg(
                **_statistics({}),
                least=ps.min("price"),
                most=ps.max("price"),
                mean=ps.avg("price"),
                total=ps.sum("price"),
            )
        ),
        f"SELECT auction, {_statistics_sql({})}, min(price) AS least, max(price) AS most, "
        f"avg(price) AS mean, sum(price) AS total FROM bid {_DAY}, auction",
    ),
    "q18": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].group_by("bidder", "auction").top(1, by="date_time"),
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) "
        "AS rank FROM bid) WHERE rank = 1",
    ),
    "q19": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].group_by("auction").top(10, by="price"),
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) "
        "AS rank FROM bid) WHERE rank <= 10",
    ),
    "q20": NexmarkQuery(
        ("bid", "auction"),
        _expanded_bids,
        "SELECT b.auction, b.bidder, b.price, b.channel, a.item_name, a.description, a.seller, a.category "
        "FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10",
    ),
    "q21": NexmarkQuery(
        ("bid",),
        lambda of: (
            of["bid"].where(_TAGGED).select("auction", "bidder", "price", "channel", channel_id=_CHANNEL)
        ),
        f"SELECT auction, bidder, price, channel, {_CHANNEL} AS channel_id FROM bid WHERE {_TAGGED}",
    ),
    "q22": NexmarkQuery(
        ("bid",),
        lambda of: of["bid"].select(
            "auction",
            "bidder",
            "price",
            "channel",
            **{f"dir{place}": f"split_part(url, '/', {place + 3})" for place in (1, 2, 3)},
        ),
        "SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, "
        "split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid",
    ),
}

MISSING: Final[Mapping[str, str]] = {
    "q10": "files partitioned by a column",
    "q12": "windows by the clock: results would depend on when rows arrive, and no replay could repeat them",
}
"""What Penstock has to have, or does not want, for the queries that are not here."""
