"""Streams of the telephone examples of the seeds (002, figure 1), for the tests of the compiler."""

import penstock as ps

CALLS = "time timestamp, phone string, seconds int, district int, x double, y double"


def calls(name="calls"):
    return ps.stream(name, CALLS, time="time", delay="5 seconds")


def suspects():
    return ps.stream("suspects", "time timestamp, phone string, reason string", time="time")


def cdr_query():
    """Calls of suspicious numbers, counted by their duration in minutes."""
    pairs = calls().join(suspects(), "phone", within="1 hour").select(minutes="seconds div 60")
    return pairs.group_by("minutes").window("1 hour", slide="10 minutes").agg(calls=ps.count())
