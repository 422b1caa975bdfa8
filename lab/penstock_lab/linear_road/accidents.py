"""Accidents: at least two cars stand at one place.

Cars are warned of an accident, and pay no toll, from the minute after it happened to the one in which it is
cleared: in every minute at whose begin it is there. So a timer at the begin of the next minute tells a change
to the segment of the accident and the four before it. Cars that stand are few, so the function is called for
each of them.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import penstock as ps
from penstock_lab.linear_road.traffic import SEGMENTS

__all__ = ["ACCIDENT_STATE", "NOTICES", "REACH", "accident"]

REACH = 5
"""How many segments an accident touches: its own and four before it."""

ACCIDENT_STATE = "cars int, seg int, told boolean"
NOTICES = "seg int, ahead int, turn int"

_MINUTE = timedelta(minutes=1)


def accident(place: Any, time: datetime, row: Any, state: Any) -> ps.Visit:
    """One place of a lane: how many cars stand there, and whether segments were told of an accident.

    Its results say to a segment `seg` that from now on there is one accident more (`turn` 1) or less (-1) so
    many segments ahead.
    """
    before = state or {"cars": 0, "seg": row["seg"], "told": False}
    if row is not None:
        after = {**before, "cars": before["cars"] + row["turn"]}
        # A timer is set only while what was told is wrong, so one that fires always has something to tell.
        wrong = after["told"] != (after["cars"] > 1)
        return ps.Visit(_kept(after), timer=_next_minute(time) if wrong else None)
    _, direction, *_ = place
    turn = -1 if before["told"] else 1
    after = {**before, "told": not before["told"]}
    return ps.Visit(_kept(after), results=_notices(before["seg"], direction, turn))


def _kept(state: Any) -> Any:
    """A place where nobody stands is forgotten as soon as that is told."""
    return state if state["cars"] or state["told"] else None


def _notices(seg: int, direction: int, turn: int) -> list[dict[str, int]]:
    back = -1 if direction == 0 else 1
    touched = ((seg + back * ahead, ahead) for ahead in range(REACH))
    return [{"seg": one, "ahead": ahead, "turn": turn} for one, ahead in touched if 0 <= one < SEGMENTS]


def _next_minute(time: datetime) -> datetime:
    """The begin of the next minute; the result of a timer that is set in a minute is for the next one."""
    known = time if time.tzinfo else time.replace(tzinfo=UTC)
    return known.replace(second=0, microsecond=0) + _MINUTE
