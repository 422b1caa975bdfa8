"""The answers of Linear Road by batch SQL in DuckDB, written apart from the queries, and the comparison.

Nothing here is shared with the streaming side: cars that cross are found by LAG over whole trips, statistics
by GROUP BY, cars that stand as islands of equal positions, accidents by a join with the minutes, and balances
by a join of queries with all earlier charges.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import duckdb
import pyarrow as pa

__all__ = ["ANSWERS", "Truth", "Verdict"]

_STEPS = {
    "positions": """
        SELECT CAST(epoch(time) AS BIGINT) AS t, t // 60 AS m, vid, speed, xway, lane, dir, seg, pos
        FROM input WHERE type = 0""",
    "trips": """
        SELECT *, p_lane <> 4 AND t - p_t <= 30 AS follows,
               follows AND p_xway = xway AND p_dir = dir AND p_seg = seg AS stays,
               stays AND p_lane = lane AND p_pos = pos AS still
        FROM (SELECT *, lag(t) OVER trip AS p_t, lag(lane) OVER trip AS p_lane, lag(xway) OVER trip AS p_xway,
                     lag(dir) OVER trip AS p_dir, lag(seg) OVER trip AS p_seg, lag(pos) OVER trip AS p_pos,
                     lead(t) OVER trip AS n_t
              FROM positions WINDOW trip AS (PARTITION BY vid ORDER BY t))""",
    "minutes": """
        SELECT m, xway, dir, seg, count(*) AS cars, avg(speed) AS speed
        FROM (SELECT m, xway, dir, seg, vid, avg(speed) AS speed FROM positions GROUP BY ALL) GROUP BY ALL""",
    "statistics": """
        SELECT m + back AS m, xway, dir, seg, CAST(floor(avg(speed) + 1e-9) AS INTEGER) AS lav,
               max(cars) FILTER (back = 1) AS cars
        FROM minutes, (SELECT unnest([1, 2, 3, 4, 5]) AS back) GROUP BY ALL""",
    "standing": """
        SELECT vid, xway, dir, lane, pos, any_value(seg) AS seg, min(t) FILTER (place = 4) AS since,
               CASE WHEN count(n_t) = count(*) THEN max(n_t) END AS until
        FROM (SELECT *, row_number() OVER (PARTITION BY vid, island ORDER BY t) AS place
              FROM (SELECT *, count(*) FILTER (NOT coalesce(still, false))
                              OVER (PARTITION BY vid ORDER BY t) AS island FROM trips))
        GROUP BY vid, island, xway, dir, lane, pos HAVING count(*) >= 4""",
    "accidents": """
        SELECT m, xway, dir, any_value(s.seg) AS seg
        FROM (SELECT DISTINCT m FROM positions) JOIN standing AS s
        ON s.since < m * 60 AND (s.until IS NULL OR s.until >= m * 60)
        GROUP BY m, xway, dir, lane, pos HAVING count(DISTINCT vid) >= 2""",
    "reached": """
        SELECT m, xway, dir, CASE WHEN dir = 0 THEN seg - off ELSE seg + off END AS seg, min(off) AS ahead
        FROM accidents, (SELECT unnest([0, 1, 2, 3, 4]) AS off) GROUP BY ALL""",
    "entries": """
        SELECT e.t, e.vid, e.xway, e.dir, e.seg, e.lane = 4 AS leaves, s.lav,
               coalesce(e.follows, false) AS follows,
               CASE WHEN s.cars > 50 AND s.lav < 40 AND a.ahead IS NULL AND NOT leaves
                    THEN 2 * (s.cars - 50) * (s.cars - 50) ELSE 0 END AS toll,
               CASE WHEN e.dir = 0 THEN e.seg + a.ahead ELSE e.seg - a.ahead END AS accident
        FROM trips AS e
        LEFT JOIN statistics AS s ON s.m = e.m AND s.xway = e.xway AND s.dir = e.dir AND s.seg = e.seg
        LEFT JOIN reached AS a ON a.m = e.m AND a.xway = e.xway AND a.dir = e.dir AND a.seg = e.seg
        WHERE NOT coalesce(e.stays, false)""",
    "charges": """
        SELECT t, vid, lag(toll) OVER (PARTITION BY vid ORDER BY t) AS due FROM entries
        QUALIFY follows AND due > 0""",
    "paid": "SELECT vid, day, xway, sum(toll) AS toll FROM history GROUP BY ALL",
}
"""Tables that lead to the answers, each over those before it."""

_TIME = "CAST(epoch(time) AS BIGINT) AS t"
_QUERY = f"SELECT {_TIME}, vid, qid, day, xway FROM input WHERE type"

ANSWERS: Mapping[str, tuple[str, str]] = {
    "tolls": ("xway, dir, seg, vid, lav, toll", "SELECT * FROM entries WHERE NOT leaves"),
    "warnings": (
        "xway, dir, seg, vid, accident",
        "SELECT * FROM entries WHERE NOT leaves AND accident IS NOT NULL",
    ),
    "balances": (
        "vid, qid, balance",
        f"""SELECT q.t, q.vid, q.qid, coalesce(sum(c.due), 0) AS balance
            FROM ({_QUERY} = 2) AS q LEFT JOIN charges AS c ON c.vid = q.vid AND c.t <= q.t GROUP BY ALL""",
    ),
    "expenditures": (
        "vid, day, xway, qid, expenditure",
        f"""SELECT q.*, coalesce(p.toll, 0) AS expenditure
            FROM ({_QUERY} = 3) AS q LEFT JOIN paid AS p USING (vid, day, xway)""",
    ),
}
"""For each output the columns that are compared beside the time, and the batch query."""


@dataclass(frozen=True)
class Verdict:
    """One output against the truth: rows of each, those that are missing and those that are wrong.

    A row with a wrong value counts as both.
    """

    name: str
    expected: int
    delivered: int
    missing: int
    wrong: int

    @property
    def ok(self) -> bool:
        """Whether both are the same rows."""
        return self.missing == 0 and self.wrong == 0


class Truth:
    """The right answers to an input and a history; a context manager.

    With `until`, a number of seconds since 1970, answers count only up to it, without it: a live run that is
    stopped has answered what lies before its frontier.
    """

    def __init__(self, reports: pa.Table, history: pa.Table, until: int | None = None) -> None:
        self._engine = duckdb.connect()
        self._until = "true" if until is None else f"t < {until}"
        self._engine.execute("SET TimeZone = 'UTC'")
        self._engine.register("input", reports)
        self._engine.register("history", history)
        for name, text in _STEPS.items():
            self._engine.execute(f"CREATE TEMP TABLE {name} AS {text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def answer(self, name: str) -> pa.Table:
        """The right rows of an output, with `t` in seconds since 1970."""
        columns, text = ANSWERS[name]
        return self._engine.sql(f"SELECT t, {columns} FROM ({text}) WHERE {self._until}").to_arrow_table()

    def wrong_statistics(self, delivered: pa.Table) -> int:
        """Rows of segment statistics by windows that are missing or wrong."""
        self._engine.register("given", delivered)
        expected = "SELECT m, xway, dir, seg, lav, cars FROM statistics"
        given = "SELECT CAST(epoch(window_end) AS BIGINT) // 60, xway, dir, seg, lav, cars FROM given"
        return self._different(expected, given)

    def wrong_windows(self, delivered: pa.Table, size: str, slide: str) -> int:
        """Windows over all reports, without a key, that are missing or wrong; means count to nine places."""
        self._engine.register("given", delivered)
        wide, step = (f"CAST(epoch(INTERVAL '{each}') AS BIGINT)" for each in (size, slide))
        expected = f"""
            SELECT start, count(*), min(speed), max(speed), round(avg(speed), 9)
            FROM (SELECT speed, unnest(range(t // {step} * {step}, t - {wide}, -{step})) AS start
                  FROM positions)
            GROUP BY start"""
        given = """
            SELECT CAST(epoch(window_start) AS BIGINT), reports, slowest, fastest, round(mean, 9)
            FROM given"""
        return self._different(expected, given)

    def accidents(self) -> int:
        """How many accidents there are, counted by their places."""
        return self._count("SELECT DISTINCT xway, dir, seg FROM accidents")

    def verdict(self, name: str, delivered: pa.Table) -> Verdict:
        """What was delivered for an output against the truth; rows count as often as they occur.

        A table without columns, which sinks have that got nothing, has no rows.
        """
        columns, _ = ANSWERS[name]
        self._engine.register("given", delivered if delivered.num_columns else _nothing(columns))
        given = f"SELECT * FROM (SELECT {_TIME}, {columns} FROM given) WHERE {self._until}"
        self._engine.register("expected", self.answer(name))
        expected = f"SELECT t, {columns} FROM expected"
        texts = (expected, given, f"{expected} EXCEPT ALL {given}", f"{given} EXCEPT ALL {expected}")
        return Verdict(name, *map(self._count, texts))

    def _different(self, expected: str, given: str) -> int:
        """Rows that only one of two queries has."""
        return self._count(f"{expected} EXCEPT ALL {given}") + self._count(f"{given} EXCEPT ALL {expected}")

    def _count(self, text: str) -> int:
        ((found,),) = self._engine.execute(f"SELECT count(*) FROM ({text})").fetchall()
        return int(found)


def _nothing(columns: str) -> pa.Table:
    fields = [("time", pa.timestamp("us", tz="UTC")), *((name, pa.int32()) for name in columns.split(", "))]
    return pa.schema(fields).empty_table()
