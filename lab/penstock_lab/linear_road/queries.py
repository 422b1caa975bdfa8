"""Linear Road as one query with four outputs: tolls, warnings, balances and expenditures.

    reports ─ vehicles ─┬─ accidents ─┐
              (by car)  │ (by place)  │
                        └─────────────┴─ segments ─┬─ tolls, warnings
                                        (by segment)└─ balances (by car) ◀─ balance queries
    history ─ expenditures (by car, day and expressway) ◀─ expenditure queries

Why the functions are what they are:

- Each `process` sees rows in the order of event time, so answers are those of a batch run, wherever epochs
  are cut. A row waits for the frontier, which is one second here: the benchmark counts in whole seconds, and
  reports of a second are complete when the next one begins.
- Segment statistics are windows (`segment_statistics`), but tolls do not read them. The time of a window is
  its begin, and behind a window of five minutes the frontier is five minutes old, so an event-ordered
  function over crossings and windows would answer that much later; a join within a distance of time has to
  keep all crossings for as long, and a `union` takes no relations with differently named times. What is
  missing is a window whose results have the time of its end, or a join with the last row of a table as of
  now. So the statistics are sums in the state of `Segments`; tests hold both against the same truth.
- Expenditures are taken in the order of arrival: the history is a table, and its frontier never moves. It has
  to arrive before the queries.
"""

from dataclasses import dataclass

import penstock as ps
from penstock_lab.linear_road.accidents import ACCIDENT_STATE, NOTICES, accident
from penstock_lab.linear_road.accounts import (
    BALANCE_STATE,
    BALANCES,
    EXPENDITURE_STATE,
    EXPENDITURES,
    Balances,
    Expenditures,
)
from penstock_lab.linear_road.tolls import PRICES, SEGMENT_STATE, SLACK, Segments
from penstock_lab.linear_road.traffic import (
    BALANCE_QUERY,
    EXPENDITURE_QUERY,
    HISTORY_COLUMNS,
    INPUT_COLUMNS,
    POSITION_REPORT,
)
from penstock_lab.linear_road.vehicles import MOVES, VEHICLE_STATE, Vehicles

__all__ = ["LinearRoad", "linear_road", "position_reports", "report_windows", "segment_statistics"]


@dataclass(frozen=True)
class LinearRoad:
    """The four answers.

    - `tolls`: time, xway, dir, seg, vid, lav, toll for each car that enters a segment, not by its exit ramp;
    - `warnings`: the same cars with the segment of the nearest accident ahead, if there is one;
    - `balances`: time, vid, qid, balance;
    - `expenditures`: time, vid, day, xway, qid, expenditure.
    """

    tolls: ps.Relation
    warnings: ps.Relation
    balances: ps.Relation
    expenditures: ps.Relation

    @property
    def query(self) -> ps.Query:
        """All of them in one run, in this order."""
        return ps.outputs(self.tolls, self.warnings, self.balances, self.expenditures)


def linear_road(source: ps.Source, history: ps.Source, *, delay: str = "0 seconds") -> LinearRoad:
    """The benchmark over input with `INPUT_COLUMNS` and a history with `HISTORY_COLUMNS`."""
    given = ps.stream("input", INPUT_COLUMNS, time="time", delay=delay, source=source)
    paid = ps.stream("history", HISTORY_COLUMNS, time="time", source=history)
    reports, balance_queries, expenditure_queries, _ = given.split(
        f"type = {POSITION_REPORT}", f"type = {BALANCE_QUERY}", f"type = {EXPENDITURE_QUERY}"
    )
    prices = _prices(reports)
    entered = prices.where("NOT leaves")
    return LinearRoad(
        tolls=entered.select("time", "xway", "dir", "seg", "vid", "lav", "toll"),
        warnings=entered.where("accident IS NOT NULL").select(
            "time", "xway", "dir", "seg", "vid", "accident"
        ),
        balances=_balances(prices, balance_queries),
        expenditures=_expenditures(paid, expenditure_queries),
    )


def _prices(reports: ps.Relation) -> ps.Relation:
    """A row for each car that enters a segment."""
    seen = reports.select("time", "vid", "speed", "xway", "lane", "dir", "seg", "pos")
    moves = seen.group_by("vid").process(Vehicles(), state=VEHICLE_STATE, result=MOVES)
    standing = moves.where("turn <> 0").select("time", "xway", "dir", "lane", "pos", "seg", "turn", "vid")
    notices = standing.group_by("xway", "dir", "lane", "pos").process(
        accident, state=ACCIDENT_STATE, result=NOTICES
    )
    # Rows of one time go by their columns from the left: notices precede the reports of the same second.
    told = notices.select(
        "time", "xway", "dir", "seg", kind="0", vid="-1", lane="-1", crosses="false", goes_on="false",
        cars="0", speed="CAST(0 AS double)", ahead="ahead", turn="turn",
    )  # fmt: skip
    driven = moves.where("turn >= 0").select(
        "time", "xway", "dir", "seg", kind="1", vid="vid", lane="lane", crosses="crosses", goes_on="goes_on",
        cars="cars", speed="speed", ahead="-1", turn="0",
    )  # fmt: skip
    return (
        told.union(driven)
        .group_by("xway", "dir", "seg")
        .process(Segments(), state=SEGMENT_STATE, result=PRICES)
    )


def _balances(prices: ps.Relation, queries: ps.Relation) -> ps.Relation:
    """The balance of a car at each of its queries, with what it pays in the same second."""
    entries = prices.select("time", "vid", kind="0", qid="-1", toll="toll", goes_on="goes_on")
    asked = queries.select("time", "vid", kind="1", qid="qid", toll="0", goes_on="false")
    return entries.union(asked).group_by("vid").process(Balances(), state=BALANCE_STATE, result=BALANCES)


def _expenditures(history: ps.Relation, queries: ps.Relation) -> ps.Relation:
    paid = history.select("time", "vid", "day", "xway", kind="0", qid="-1", toll="toll")
    asked = queries.select("time", "vid", "day", "xway", kind="1", qid="qid", toll="0")
    return (
        paid.union(asked)
        .group_by("vid", "day", "xway")
        .process(Expenditures(), state=EXPENDITURE_STATE, result=EXPENDITURES, order="arrival")
    )


def position_reports(source: ps.Source, *, delay: str = "0 seconds") -> ps.Relation:
    """The position reports of an input with `INPUT_COLUMNS`."""
    given = ps.stream("input", INPUT_COLUMNS, time="time", delay=delay, source=source)
    return given.where(f"type = {POSITION_REPORT}")


def segment_statistics(reports: ps.Relation) -> ps.Relation:
    """Cars of a minute and mean speed of the last five (LAV) for each segment, as three windows.

    The mean speed of a car in a minute and a segment, then the cars and the mean of their means in a minute,
    then the mean of five minutes. A result with window_end m is what the tolls of the minute from m on go by;
    `cars` is null if nobody was there in the last minute.
    """
    road = ("xway", "dir", "seg")
    each = reports.group_by(*road, "vid").window("1 minute").agg(speed=ps.avg("speed"))
    minutes = each.group_by(*road).window("1 minute").agg(cars=ps.count(), speed=ps.avg("speed"))
    spans = (
        minutes.select(*road, "cars", "speed", minute="window_start")
        .group_by(*road)
        .window("5 minutes", slide="1 minute")
        .agg(mean=ps.avg("speed"), latest=ps.max("minute"), cars=ps.max_by("cars", "minute"))
    )
    return spans.select(
        *road,
        lav=f"CAST(floor(mean + {SLACK:.10f}) AS int)",
        cars="CASE WHEN latest = window_end - INTERVAL 1 MINUTE THEN cars END",
    )


def report_windows(reports: ps.Relation, size: str, slide: str | None = None) -> ps.Relation:
    """The queries like Linear Road's of [004] §3.1: count, min, max and avg over all reports, without a key.

    Grouping by segment would make it possible to part the stream by content, which that paper excludes; so
    this is a query of its own beside `segment_statistics`.
    """
    return reports.window(size, slide=slide).agg(
        reports=ps.count(), slowest=ps.min("speed"), fastest=ps.max("speed"), mean=ps.avg("speed")
    )
