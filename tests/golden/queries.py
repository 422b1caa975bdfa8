"""A query for every operator and every way in which stages are combined; the golden plans are theirs.

They use the public names only, so that they outlive any change of the layout.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps

CALLS = ps.stream(
    "calls",
    "time timestamp, caller string, callee string, seconds int, x double, y double",
    time="time",
    delay="5 seconds",
)
SUSPECTS = ps.stream("suspects", "time timestamp, caller string, reason string", time="time")
TOWERS = ps.stream(
    "towers",
    "at timestamp, tower string, load double, up boolean",
    time="at",
    idle="1 minute",
    key="tower",
)


class Whole(ps.ArrowAggregate):
    state = {"lo": "double", "hi": "double"}  # noqa: RUF012 -- as users write it
    result = "double"

    def accumulate(self, groups, n, *columns):
        lo, hi = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(lo, groups, columns[0].to_numpy())
        np.maximum.at(hi, groups, columns[0].to_numpy())
        return pa.record_batch({"lo": lo, "hi": hi})

    def merge(self, left, right):
        lo, hi = np.minimum(left["lo"], right["lo"]), np.maximum(left["hi"], right["hi"])
        return pa.record_batch({"lo": lo, "hi": hi})

    def finish(self, state):
        return pc.subtract(state["hi"], state["lo"])


class Spread(Whole):
    split = True


class Sittings(ps.Processor):
    def step(self, block):
        raise NotImplementedError


def talk(key, time, row, state):
    raise NotImplementedError


def distance(batch):
    far = pc.sqrt(pc.add(pc.power(batch["x"], 2), pc.power(batch["y"], 2)))
    return pa.record_batch({"caller": batch["caller"], "far": far})


def longest(rows):
    return {"longest": [pc.max(rows["seconds"])]}


mean_square = ps.sql_aggregate(
    partial={"squares": "sum(v * v)", "n": "count(v)"},
    merge={"squares": "sum", "n": "sum"},
    finish="squares / n",
    inputs=("v",),
)


def _steps():
    short, middle, rest = CALLS.split("seconds < 3", "seconds < 3600")
    ends = CALLS.select(number="caller").union(CALLS.select(number="callee"))
    return {
        "where": CALLS.where("seconds > 60 and caller <> callee"),
        "select": CALLS.where("x > 0").select("caller", minutes="seconds / 60").where("minutes < 10"),
        "map": CALLS.map(distance, "caller string, far double").where("far > 3"),
        "map_in_channels": CALLS.map(distance, "caller string, far double", channels=True).where("far > 3"),
        "map_by_cost": CALLS.where("x > 0")
        .map(distance, "caller string, far double", by="callee")
        .group_by("caller")
        .window("1 hour")
        .agg(n=ps.count()),
        "explode": CALLS.explode(part="split(callee, '-')")
        .where("seconds > 3 and part <> ''")
        .select("part"),
        "explode_behind_window": CALLS.group_by("caller")
        .window("1 hour")
        .agg(callees=ps.array_agg("callee"))
        .explode(callee="callees", outer=True)
        .select("caller", "callee"),
        "split": ps.outputs(short, middle.select("caller"), rest),
        "union": ends,
        "union_window": ends.group_by("number").window("1 hour").agg(n=ps.count()),
    }


def _windows():
    hour = CALLS.group_by("caller").window("1 hour", slide="10 minutes")
    return {
        "window_native": hour.agg(
            n=ps.count(),
            known=ps.count("callee"),
            total=ps.sum("seconds"),
            mean=ps.avg("seconds"),
            low=ps.min("x"),
            high=ps.max("callee"),
            variance=ps.var("x"),
            deviation=ps.stddev("x"),
            earliest=ps.first("y"),
            latest=ps.last("callee"),
        ),
        "window_sketches": hour.agg(
            callees=ps.approx_count_distinct("callee"),
            median=ps.quantile("seconds", 0.5),
            often=ps.top_k("callee", 3),
        ),
        "window_distinct": hour.agg(
            callees=ps.count_distinct("callee"), lines=ps.count_distinct("callee", "x")
        ),
        "window_sql_aggregate": hour.agg(power=mean_square("x - y"), n=ps.count()),
        "window_arrow_aggregate": hour.agg(spread=Spread("x"), mean=ps.avg("x")),
        "window_arrow_whole": hour.agg(spread=Whole("x")),
        "window_one_group": CALLS.window("90 seconds", slide="1 minute").agg(
            n=ps.count(), callees=ps.approx_count_distinct("callee", 0.04)
        ),
        "window_one_group_arrow": CALLS.window("1 minute").agg(spread=Spread("x")),
        "window_one_group_arrow_whole": CALLS.window("1 minute", slide="5 seconds").agg(spread=Whole("x")),
        "apply": CALLS.window("1 hour", slide="1 minute").apply(longest, "longest int"),
        "apply_by_windows": CALLS.window("1 hour").apply(longest, "longest int"),
        "apply_in_batches": CALLS.group_by("caller")
        .window("1 hour", slide="1 minute")
        .apply(longest, "longest int", batch=5),
        "apply_by_key": CALLS.group_by("caller")
        .window("1 hour", slide="1 minute")
        .apply(longest, "longest int")
        .group_by("caller")
        .window("1 day")
        .agg(most=ps.max("longest")),
        "window_tumbling_offset": CALLS.where("seconds > 0")
        .group_by("caller", far="x > 100")
        .window("1 day", offset="2 hours")
        .agg(n=ps.count())
        .where("n > 3")
        .select("caller", "n"),
        "window_of_windows": CALLS.group_by("caller")
        .window("1 minute")
        .agg(n=ps.count())
        .group_by("caller")
        .window("1 hour")
        .agg(most=ps.max("n")),
        "window_cumulating": CALLS.group_by("caller").cumulate("1 hour", "10 minutes").agg(n=ps.count()),
        "window_apart": CALLS.group_by("caller").window("1 minute", slide="1 hour").agg(),
        "window_several": CALLS.group_by("caller")
        .windows(ps.window("1 minute"), ps.window("10 minutes", slide="1 minute"), late="drop")
        .agg(n=ps.count()),
        "window_corrected": CALLS.group_by("caller")
        .window("10 minutes", slide="5 minutes", lateness="1 hour", early="1 minute")
        .agg(n=ps.count()),
        "window_modified": hour.agg(
            long=ps.count(where="seconds > 60"),
            some=ps.sum("seconds", distinct=True),
            spread=Spread("x", where="y > 0"),
            middle=ps.median("x"),
        ),
        "window_top": hour.top(3, by="seconds"),
        "window_top_of_windows": CALLS.group_by("caller")
        .window("1 hour", slide="10 minutes")
        .agg(n=ps.count())
        .by_window()
        .top(3, by="n"),
        "totals_top": CALLS.group_by("caller").top(3, by="seconds"),
        "totals": CALLS.group_by("caller").agg(n=ps.count(), top=ps.max("x"), keep="1 day"),
        "totals_one_group": CALLS.where("seconds > 3").agg(n=ps.count(), top=ps.max("x")),
        "totals_one_group_arrow": CALLS.agg(spread=Spread("x"), keep="1 day"),
        "window_idle_streams": TOWERS.where("up")
        .group_by("tower")
        .window("10 seconds")
        .agg(top=ps.max("load")),
    }


def _hourly():
    return CALLS.group_by("caller").window("1 hour").agg(n=ps.count())


def _sessions():
    talks = CALLS.group_by("caller").session("30 minutes")
    last = CALLS.group_by("caller").window(100, slide=30, rows=True)
    return {
        "session": talks.agg(n=ps.count(), mean=ps.avg("seconds")).where("n > 3").select("caller", "mean"),
        "session_one_group": CALLS.session("1 minute", late="drop").agg(
            callees=ps.approx_count_distinct("callee")
        ),
        "session_arrow": talks.agg(spread=Spread("x")),
        "session_arrow_whole": talks.agg(spread=Whole("x")),
        "window_behind_session": talks.agg(n=ps.count())
        .group_by("caller")
        .window("1 day")
        .agg(talks=ps.count(), longest=ps.max("n")),
        "session_apply": talks.apply(longest, "longest int").where("longest > 60 and caller <> 'x'"),
        "counts": last.agg(n=ps.count(), spread=Whole("x")),
        "counts_one_group": CALLS.window(1000, rows=True).agg(often=ps.top_k("callee", 3)),
        "window_behind_counts": last.agg(n=ps.count())
        .group_by("caller")
        .window("1 day")
        .agg(windows=ps.count()),
    }


def _joins():
    pairs = CALLS.join(SUSPECTS, "caller", within="1 hour")
    return {
        "join_within": pairs,
        "join_renamed_keys": CALLS.join(SUSPECTS, {"callee": "caller"}, within="1 hour").select(
            "callee", "reason"
        ),
        "join_several_keys": CALLS.join(CALLS, ("caller", "callee"), within="5 seconds", suffixes=("", "_2")),
        "join_last": CALLS.join(SUSPECTS, "caller", last=3, condition="l.seconds > 60"),
        "join_left": CALLS.join(SUSPECTS, "caller", within="1 hour", how="left", condition="l.x > 3"),
        "join_full": CALLS.join(SUSPECTS, "caller", within="1 hour", how="full"),
        "join_semi": CALLS.join(SUSPECTS, "caller", within="1 hour", how="semi", condition="l.x > 3").where(
            "seconds > 60 and caller <> 'x'"
        ),
        "join_anti_behind_window": _hourly().join(
            _hourly().where("n > 9"), "caller", within="0 s", how="anti"
        ),
        "join_window": CALLS.join(SUSPECTS, "caller", window=ps.window("10 minutes"), suffixes=("", "_2")),
        "join_window_full": CALLS.join(
            SUSPECTS,
            "caller",
            window=ps.window("10 minutes", slide="5 minutes"),
            how="full",
            late="drop",
            condition="l.x > 3 and r.reason <> 'x'",
            suffixes=("", "_2"),
        ).select("reason"),
        "join_keep": CALLS.join(SUSPECTS, "caller", keep=("1 hour", "1 day"), how="left", time="left"),
        "window_behind_join_keep": CALLS.join(SUSPECTS, "caller", keep="forever")
        .group_by("reason")
        .window("1 hour")
        .agg(n=ps.count()),
        "join_right_last": CALLS.join(SUSPECTS, "caller", last=1, how="right"),
        "join_filtered": pairs.where("seconds > 60 and reason = 'theft' and x > length(reason)").select(
            "caller", "reason"
        ),
        "join_of_joins": pairs.join(TOWERS.select(caller="tower", load="load"), "caller", within="1 minute"),
        "join_shares_channels": _hourly()
        .where("n < 3")
        .join(_hourly().where("n > 9"), "caller", within="2 hours", how="left", suffixes=("", "_2")),
        "join_itself": CALLS.join(CALLS, "caller", within="1 minute", suffixes=("", "_again")),
        "cross_within": CALLS.cross(CALLS, "l.x < r.x", within="5 seconds", suffixes=("_1", "_2")),
        "cross_last_many": CALLS.cross(SUSPECTS, "l.seconds > 60", last=20_000, suffixes=("", "_2")),
        "cross_last": CALLS.cross(SUSPECTS, last=5, suffixes=("", "_2")),
        "window_behind_join": pairs.select("caller", minutes="seconds div 60")
        .group_by("minutes")
        .window("1 hour", slide="10 minutes")
        .agg(calls=ps.count()),
        "window_shares_channels": pairs.where("seconds > length(reason)")
        .group_by("caller")
        .window("1 hour")
        .agg(n=ps.count(), mean=ps.avg("x")),
        "window_sketch_behind_join": pairs.group_by("caller")
        .window("1 hour")
        .agg(reasons=ps.approx_count_distinct("reason")),
        "window_behind_outer_join": CALLS.join(SUSPECTS, "caller", within="1 hour", how="left")
        .group_by("caller")
        .window("1 hour")
        .agg(n=ps.count("reason")),
    }


def _processes():
    keyed = CALLS.group_by("caller")
    talks = keyed.process(talk, state={"calls": "bigint"}, result="calls bigint", timeout="5 minutes")
    return {
        "process_function": talks,
        "process_arrival": keyed.process(talk, state="n bigint", result="n bigint", order="arrival"),
        "process_processor": CALLS.group_by("caller", "callee").process(
            Sittings(), state={"calls": "bigint", "far": "double"}, result="calls bigint, far double"
        ),
        "window_behind_process": talks.group_by("caller").window("1 hour").agg(total=ps.sum("calls")),
        "process_behind_join": CALLS.join(SUSPECTS, "caller", within="1 hour")
        .group_by("caller")
        .process(talk, state="n bigint", result="n bigint"),
    }


def _deduplications():
    once = CALLS.deduplicate("caller", "callee", within="10 minutes")
    return {
        "deduplicate": once.where("caller <> 'x' and seconds > 3").select("caller", "seconds"),
        "deduplicate_behind_window": CALLS.group_by("caller")
        .window("1 minute")
        .agg(n=ps.count())
        .deduplicate("caller", within="1 hour"),
        "window_behind_deduplicate": once.group_by("callee", "caller").window("1 hour").agg(n=ps.count()),
    }


def _graphs():
    load = CALLS.group_by("caller").window("10 minutes", slide="1 minute").agg(n=ps.count())
    pairs = CALLS.join(SUSPECTS, "caller", within="1 hour")
    return {
        "outputs": ps.outputs(
            load.where("n > 100"),
            pairs.select("x"),
            pairs.select("y"),
            pairs.group_by("caller").window("1 hour").agg(n=ps.count()),
        ),
        "sql_window": ps.sql(
            """SELECT caller, count(*) AS calls, avg(seconds) AS mean, quantile(x, 0.9) AS far,
                      spread(x) AS wide
               FROM calls [RANGE 10 MINUTES SLIDE 1 MINUTE] WHERE seconds > 0 GROUP BY caller""",
            CALLS,
            spread=Spread,
        ),
        "sql_join": ps.sql(
            """SELECT c.seconds, count(*) AS calls
               FROM calls AS c LEFT JOIN suspects AS s ON lower(c.callee) = s.caller AND c.x > 3 WITHIN 1 HOUR
               [RANGE 1 HOUR SLIDE 1 MINUTE] GROUP BY c.seconds""",
            CALLS,
            SUSPECTS,
        ),
        "sql_with_union": ps.sql(
            """WITH ends AS (SELECT caller AS number FROM calls UNION ALL SELECT callee AS number FROM calls)
               SELECT number, count(*) AS n FROM ends [RANGE 1 MINUTE] GROUP BY number""",
            CALLS,
        ),
        "sql_split": ps.outputs(
            *ps.sql(
                "SPLIT calls CASE WHEN seconds < 3 THEN short WHEN seconds < 60 THEN normal ELSE rest END",
                CALLS,
            ).values()
        ),
    }


def _cases():
    single = _steps() | _windows() | _sessions() | _joins() | _processes() | _deduplications() | _graphs()
    cases = {name: (relation, {}) for name, relation in single.items()}
    # The other two strategies, and a number of channels, where they make a difference.
    for name in ("select", "map", "window_native", "window_behind_join", "window_shares_channels", "outputs"):
        for strategy in ("operator", "query"):
            cases[f"{name}-by_{strategy}"] = (single[name], {"strategy": strategy, "channels": 6})
    cases["outputs-6_channels"] = (single["outputs"], {"channels": 6})
    return cases


# By name: a relation or a query, and the options of `explain`.
CASES = _cases()
