"""The queries of NEXMark, each in Penstock and in Spark SQL, and why the others are not here.

The queries are those of nexmark/nexmark. Where the original groups without a window and updates its results
with every row, the query here gives the same groups by day, once the day is over: a day is part of the
original's key. Spark SQL is run as a stream for its speed and as a batch for the truth.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import penstock as ps
from penstock.aggregates.aggregate import Aggregate

__all__ = ["MISSING", "QUERIES", "NexmarkQuery"]

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
    most = counts.window("2 seconds").agg(most=ps.max("num"))  # one for each start of a window
    pairs = counts.select("auction", "num", begins="window_start").join(
        most.select("most", begins="window_start"),
        "begins",
        within="1 second",
        condition="l.num >= r.most",
        suffixes=("", "_most"),
    )
    return pairs.select("auction", "num")


def _highest_bids(streams: Streams) -> ps.Relation:
    bids = streams["bid"].select("auction", "bidder", "price", "extra", bid_time="date_time")
    highest = streams["bid"].window("10 seconds").agg(price=ps.max("price"))
    highest = highest.select("price", begins="window_start", ends="window_end")
    inside = "l.bid_time >= r.begins AND l.bid_time < r.ends"
    return bids.join(highest, "price", within="10 seconds", condition=inside).select(
        "auction", "price", "bidder", "bid_time", "extra"
    )


def _new_users(streams: Streams) -> ps.Relation:
    people = streams["person"].group_by("id", "name").window("10 seconds").agg(times=ps.count())
    sellers = streams["auction"].group_by("seller").window("10 seconds").agg(auctions=ps.count())
    joined = people.select("id", "name").join(
        sellers.select("seller"), {"id": "seller"}, within="1 second", suffixes=("", "_auction")
    )
    return joined.select("id", "name")


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
    "q5": NexmarkQuery(
        ("bid",),
        _hot_items,
        "WITH counts AS (SELECT window, auction, count(*) AS num FROM bid "
        "GROUP BY window(date_time, '10 seconds', '2 seconds'), auction), "
        "most AS (SELECT window, max(num) AS most FROM counts GROUP BY window) "
        "SELECT counts.auction, counts.num FROM counts JOIN most "
        "ON counts.window = most.window AND counts.num >= most.most",
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
    "q3": "a join without a bound in time",
    "q4": "the best bid of an auction that closes at its own time, then an average that is updated",
    "q6": "a function over the last ten rows of a key whose input is updated; Flink has no q6 either",
    "q9": "the best bid of an auction that closes at its own time",
    "q10": "files partitioned by a column",
    "q11": "session windows",
    "q12": "windows by the clock: results would depend on when rows arrive, and no replay could repeat them",
    "q13": "a join with a table beside the streams",
    "q18": "the last row of each key, updated",
    "q19": "the first n rows of each key, updated",
    "q20": "a join without a bound in time",
}
"""What Penstock has to have, or does not want, for the queries that are not here."""
