"""Exchanges on Spark SQL: from the tuples of an epoch to routed rows, in one shuffle for all ports.

The map side projects what each port sends, combines it within each partition if that pays off, observes
what decides on the epoch, and routes. The channels start from the shuffled rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.compile import Feed
from penstock.connect import ARRIVED
from penstock.operators.exchange import HASH, TIME, Bucket, Exchange
from penstock.operators.kernel import Kernel, Seen
from penstock.query import Stream
from penstock.routing import JoinSpread, PlainPanes, Spread, WindowChannels, shaped_grid
from penstock.runtime.epoch_input import NEVER, EpochInput, PortInput, StreamSeen
from penstock.runtime.records import StagePlan
from penstock.runtime.spark.forming import formed
from penstock.runtime.spark.frames import REJECT, sql_over, steps_sql
from penstock.runtime.spark.hot_keys import find_hot_keys
from penstock.runtime.spark.placing import placed_by_cost
from penstock.runtime.spark.plans import Shuffled, run_map_side
from penstock.runtime.spark.routes import (
    grid_left_column,
    grid_right_column,
    plain_pane_column,
    run_column,
    spread_left_column,
    spread_right_column,
    sub_key_column,
    window_column,
)

__all__ = ["NOTHING", "PORT", "SLOT", "MapSide", "SparkExchange", "slots"]

PORT, SLOT = "_ps_port", "_ps_slot{}"
"""If several ports share a shuffle: the number of a row's port, and the columns that carry the rows."""

_CHANNEL, _DEALT, _LATEST = "_ps_channel", "_ps_dealt", "_ps_latest"
_CAME_FIRST, _CAME_LAST = "_ps_came_first", "_ps_came_last"
_ROW = "_ps_row"
_METRICS = "penstock"
_VIEW = "_ps_rows"
# A bucket that no tuple has; the smallest bigint has no literal in SQL.
_REJECTED = -(2**63) + 1


@dataclass(frozen=True)
class MapSide:
    """The routed rows, if there are any, and the observations on the way to them.

    `spread` are hot keys that this epoch has found. `dealt` are the raw rows behind partials that other
    channels have formed. `staying` are rows that no exchange brings to channels: they are not observed yet.
    `buckets` is how many of them the rows span, where they have one.
    """

    shuffled: Shuffled | None = None
    seen: Seen = field(default_factory=Seen)
    spread: Spread | None = None
    dealt: Shuffled | None = None
    staying: DataFrame | None = None
    buckets: int = 0

    def release(self) -> None:
        """Release the shuffled rows."""
        for each in (self.shuffled, self.dealt):
            if each is not None:
                each.release()


NOTHING = MapSide()


@dataclass(frozen=True)
class SparkExchange:
    """Runs the exchanges of one stage.

    `alone`: its only feed is a stream that feeds nothing else. `whole`: another stage runs in its channels
    and requires that every key is whole in one of them.
    """

    kernel: Kernel
    inputs: tuple[PortInput, ...]
    alone: bool
    whole: bool

    def run(self, intake: EpochInput, plan: StagePlan, bound: int | None, spread: Spread | None) -> MapSide:
        """Run everything up to the shuffle.

        Tuples of a lone stream below `bound` are late. `spread` are the hot keys on grids; None if they are
        to be looked for, because the stage has had no rows yet.
        """
        if self._lone is not None:
            return self._run_lone(intake, self._lone, plan, bound)
        rows = [each.rows(intake, plan.channels) for each in self.inputs]
        if not any(rows):
            return NOTHING
        if len(rows) > 1:
            return self._run_ports(intake, rows, plan, spread)
        (exchange,) = self.kernel.exchanges
        assert rows[0] is not None
        frame = intake.session.sql(_selected(exchange, rows[0], plan))
        if plan.grouping is not None:
            return _grouped(intake, frame, exchange, plan)
        return self._shuffled(intake, exchange, frame, plan, closed=None)

    def judged_late(
        self, intake: EpochInput, plan: StagePlan, late: Sequence[tuple[int, int]]
    ) -> DataFrame | None:
        """The tuples that the channels found to be too late, by hash of key and bucket, read once more.

        The source gives the same tuples again within an epoch, and few epochs have any that are late.
        """
        (exchange,) = self.kernel.exchanges
        bucket, source = exchange.bucket, self.inputs[0].rows(intake, plan.channels)
        assert bucket is not None
        if not late or source is None:
            return None
        rows = intake.session.sql(f"SELECT * FROM {source}")
        keyed = [f"{each.sql} AS `{each.name}`" for each in exchange.columns if each.name in exchange.keys]
        placed = rows.selectExpr("*", *keyed, f"{bucket.sql} AS `{bucket.name}`")
        by = [bucket.name]
        if exchange.keys:
            placed, by = placed.withColumn(HASH, F.expr(_hash(exchange))), [HASH, *by]
        pairs = intake.session.createDataFrame(list(late), f"`{HASH}` bigint, `{bucket.name}` bigint")
        found = placed.join(F.broadcast(pairs.select(*by).distinct()), by, "left_semi")
        return found.select(*(f"`{name}`" for name in rows.columns))

    # One port.

    def _run_lone(self, intake: EpochInput, feed: Feed, plan: StagePlan, bound: int | None) -> MapSide:
        """The map side of a stream that feeds nothing else and passes no condition.

        Nothing is observed before the combine: rejects and late tuples are combined too, in their own
        buckets, and left out after it. That saves an observation of every single tuple.
        """
        (exchange,) = self.kernel.exchanges
        bucket, stream = exchange.bucket, feed.origin
        assert bucket is not None
        assert isinstance(stream, Stream)
        frame = intake.arrivals.get(stream.name)
        if frame is None:
            return NOTHING
        stamped = ARRIVED in frame.columns
        source = steps_sql(feed.outside, _VIEW, TIME, REJECT, *([ARRIVED] if stamped else []))
        bucketed = f"CASE WHEN {REJECT} IS NOT NULL THEN {_REJECTED}L ELSE {{}} END"
        text = _selected(exchange, source, plan, bucketed, stamped=stamped)
        lowest = _REJECTED + 1 if bound is None else (bound - bucket.offset) // bucket.width
        side = self._shuffled(intake, exchange, sql_over(frame, text), plan, closed=lowest)
        if side.shuffled is None:
            return side
        latest, first, last, *arrived = side.shuffled.observed[_METRICS]
        if first is None or latest is None:
            earliest = None
        else:
            # Rejects hide whether the bucket after them is late; the late output finds out.
            earliest = bucket.start(first) if first > _REJECTED else NEVER
        intake.seen[stream.name] = StreamSeen(latest, earliest, first == _REJECTED, None, *arrived)
        return replace(side, seen=replace(side.seen, rows=last is not None and last >= lowest))

    def _shuffled(
        self, intake: EpochInput, exchange: Exchange, frame: DataFrame, plan: StagePlan, *, closed: int | None
    ) -> MapSide:
        metrics = intake.watched()
        bucket = exchange.bucket
        if bucket is not None:
            stamped = _CAME_FIRST in frame.columns
            frame = frame.observe(_METRICS, F.expr(_observed(bucket, stamped=stamped)).alias("seen"))
            late = "" if closed is None else f" WHERE `{bucket.name}` >= {closed}L"
            frame = sql_over(frame, f"SELECT {', '.join(_names(exchange, plan))} FROM {_VIEW}{late}")
            metrics = [_METRICS, *metrics]
        formed_first = plan.form == "partials"
        routed = _dealt(frame, exchange, plan) if formed_first else _sent_home(intake, frame, exchange, plan)
        shuffled = run_map_side(routed, metrics, combining=plan.form == "combined")
        intake.settle(shuffled.observed if shuffled else {})
        if shuffled is None:
            return NOTHING
        if bucket is None:
            return MapSide(shuffled, Seen(rows=True))
        last = shuffled.observed.get(_METRICS, (None, None, None))[2]
        newest = None if last == _REJECTED else last
        first = shuffled.observed.get(_METRICS, (None, None, None))[1]
        lowest = _REJECTED + 1 if closed is None else closed
        buckets = 0 if newest is None or first is None or newest < lowest else newest - max(first, lowest) + 1
        side = MapSide(shuffled, Seen(newest is not None, newest), buckets=buckets)
        if not formed_first:
            return side
        partials = formed(self.kernel, shuffled.rows.drop(_DEALT))
        home = run_map_side(_sent_home(intake, partials, exchange, plan), [], combining=False)
        home = home and replace(home, observed=shuffled.observed)
        return replace(side, shuffled=home, dealt=shuffled)

    # Several ports.

    def _run_ports(
        self, intake: EpochInput, rows: Sequence[str | None], plan: StagePlan, spread: Spread | None
    ) -> MapSide:
        texts = {
            port: f"SELECT {_columns(exchange)} FROM {source}"
            for port, (exchange, source) in enumerate(zip(self.kernel.exchanges, rows, strict=True))
            if source is not None
        }
        found = None
        if spread is None and not self.whole:
            frames = [intake.session.sql(text) for text in texts.values()]
            found = find_hot_keys(self.kernel.exchanges[0], frames, plan.channels)
        exchanged = self._routed(intake, texts, plan, found or spread)
        shuffled = run_map_side(exchanged, intake.watched(), combining=False)
        intake.settle(shuffled.observed if shuffled else {})
        if shuffled is None:
            return MapSide(spread=found)
        return MapSide(shuffled, Seen(rows=True), found)

    def _routed(
        self, intake: EpochInput, texts: dict[int, str], plan: StagePlan, spread: Spread | None
    ) -> DataFrame:
        """The rows of all ports in one exchange.

        Hashed keys need one statement: a text costs one call to the JVM, columns cost one per node.
        """
        exchanges = self.kernel.exchanges
        if exchanges[0].keys and (spread is None or not spread.keys):
            united = " UNION ALL ".join(
                f"SELECT {', '.join(self._in_slots(port))}, {_hash(exchanges[port])} AS {HASH} "
                f"FROM ({text}){_where(exchanges[port])}"
                for port, text in texts.items()
            )
            return intake.session.sql(united).repartitionById(plan.channels, intake.route(plan.router, HASH))
        grids = (
            spread.router(intake.routers.find(plan.router)) if spread is not None and plan.router else None
        )
        frames = [
            _copied(intake.session.sql(text), exchanges[port], port, plan.channels, grids).selectExpr(
                *self._in_slots(port), _CHANNEL
            )
            for port, text in texts.items()
        ]
        together = frames[0]
        for each in frames[1:]:
            together = together.unionAll(each)
        return together.repartitionById(plan.channels, F.col(_CHANNEL))

    def _in_slots(self, port: int) -> list[str]:
        """The number of a port, and its columns in their slots; the slots of other ports are null."""
        every = slots(self.kernel.exchanges)
        columns = self.kernel.exchanges[port].columns
        names = {slot: f"`{each.name}`" for slot, each in zip(every[port], columns, strict=True)}
        used = sorted({slot for each in every for slot in each})
        return [f"{port} AS {PORT}", *(f"{names.get(slot, 'NULL')} AS {SLOT.format(slot)}" for slot in used)]

    @cached_property
    def _lone(self) -> Feed | None:
        """The feed whose tuples need no observation one by one, if there is one."""
        feeds = self.inputs[0].port
        if not self.alone or len(self.inputs) > 1 or len(feeds) > 1 or feeds[0].exchanged:
            return None
        bucketed = self.kernel.exchanges[0].bucket is not None
        if not bucketed or not isinstance(feeds[0].origin, Stream):
            return None
        steps = feeds[0].outside
        # A tuple that is late or rejected is counted as it came, once.
        changed = any(step.as_filter() or step.calls or step.multiplies for step in steps)
        return None if changed else feeds[0]


def slots(exchanges: Sequence[Exchange]) -> tuple[tuple[int, ...], ...]:
    """The slot of every column of every port: ports share a slot if the types are equal."""
    types: list[object] = []
    places = []
    for exchange in exchanges:
        free = list(range(len(types)))
        own = []
        for each in exchange.columns:
            fitting = next((slot for slot in free if types[slot] == each.type), None)
            if fitting is None:
                fitting = len(types)
                types.append(each.type)
            else:
                free.remove(fitting)
            own.append(fitting)
        places.append(tuple(own))
    return tuple(places)


def _selected(
    exchange: Exchange, source: str, plan: StagePlan, bucketed: str = "{}", *, stamped: bool = False
) -> str:
    """A SELECT of what a port sends, in the plan's form; `bucketed` wraps the number of the bucket.

    If the rows are `stamped`, the first and the last arrival come along.
    """
    bucket = exchange.bucket
    if bucket is None:
        text = f"SELECT {_columns(exchange)} FROM {source}"
        names = ", ".join(f"`{each.name}`" for each in exchange.columns)
        hashed = f", {_hash(exchange)} AS {HASH}" if exchange.hashed else ""
        return f"SELECT {names}{hashed} FROM ({text}){_where(exchange)}"
    keyed = [f"{each.sql} AS `{each.name}`" for each in exchange.columns if each.name in exchange.keys]
    placed = ["*", *keyed, f"{bucketed.format(bucket.sql)} AS `{bucket.name}`"]
    apart = plan.form == "combined" and exchange.combine is not None and exchange.combine.rowwise
    placed += [f"monotonically_increasing_id() AS {_ROW}"] if apart else []
    rows = f"(SELECT {', '.join(placed)} FROM {source})"
    by = ", ".join(f"`{name}`" for name in [*exchange.keys, bucket.name])
    if plan.form == "combined":
        assert exchange.combine is not None
        each = f", {_ROW}" if apart else ""
        aggregates = [f"{sql} AS `{name}`" for name, sql in exchange.combine.columns]
        aggregates += [f"max({TIME}) AS {_LATEST}"]
        if stamped:
            aggregates += [f"min({ARRIVED}) AS {_CAME_FIRST}", f"max({ARRIVED}) AS {_CAME_LAST}"]
        return f"SELECT {', '.join([by, *aggregates])} FROM {rows} GROUP BY {by}{each}"
    values = [f"{each.sql} AS `{each.name}`" for each in exchange.columns if each.name not in exchange.keys]
    values += [f"{TIME} AS {_LATEST}"]
    if stamped:
        values += [f"{ARRIVED} AS {_CAME_FIRST}", f"{ARRIVED} AS {_CAME_LAST}"]
    return f"SELECT {', '.join([by, *values])} FROM {rows}"


def _observed(bucket: Bucket, *, stamped: bool) -> str:
    """The observation for every row before the shuffle; it holds only what decides on the epoch.

    It has the latest event time, the lowest and highest bucket of the rows, and the first and last arrival if
    they are `stamped`. Tuples are counted by those who take them or set them aside.
    """
    name = bucket.name
    latest = f"max(CASE WHEN `{name}` <> {_REJECTED}L THEN `{_LATEST}` END)"
    stamps = f", min({_CAME_FIRST}), max({_CAME_LAST})" if stamped else ""
    return f"struct({latest}, min(`{name}`), max(`{name}`){stamps})"


def _names(exchange: Exchange, plan: StagePlan) -> list[str]:
    """The rows that a bucketed exchange sends."""
    assert exchange.bucket is not None
    placed = [*exchange.keys, exchange.bucket.name]
    if plan.form == "combined":
        assert exchange.combine is not None
        values = [name for name, _ in exchange.combine.columns]
    else:
        values = [each.name for each in exchange.columns if each.name not in exchange.keys]
    return [f"`{name}`" for name in [*placed, *values]]


def _columns(exchange: Exchange) -> str:
    return ", ".join(f"{each.sql} AS `{each.name}`" for each in exchange.columns)


def _known(exchange: Exchange) -> str:
    return " AND ".join(f"{key} IS NOT NULL" for key in exchange.keys)


def _where(exchange: Exchange) -> str:
    return f" WHERE {_known(exchange)}" if exchange.keys and exchange.nulls == "never" else ""


def _hash(exchange: Exchange) -> str:
    """The hash that decides the channel of a row."""
    hashed = f"xxhash64({', '.join(exchange.keys)})"
    if exchange.nulls != "anywhere":
        return hashed
    # A null equals nothing, so its row may go anywhere; all nulls in one place would be a hot key.
    salted = ", ".join(f"`{each.name}`" for each in exchange.columns)
    return f"CASE WHEN {_known(exchange)} THEN {hashed} ELSE xxhash64({salted}) END"


def _sent_home(intake: EpochInput, rows: DataFrame, exchange: Exchange, plan: StagePlan) -> DataFrame:
    """Send each row to the channel that keeps its key, or to those that compute its windows."""
    if exchange.windows is not None and plan.batches is not None and plan.channels > 1:
        windows = WindowChannels(exchange.windows.shape, plan.batches, plan.channels)
        copied = rows.withColumn(_CHANNEL, F.explode(window_column(exchange.event_time, windows)))
        return copied.repartitionById(plan.channels, F.col(_CHANNEL))
    if not plan.router:
        return rows.repartitionById(plan.channels, F.lit(0))
    hashed = HASH if exchange.hashed else _hash(exchange)
    return rows.repartitionById(plan.channels, intake.route(plan.router, hashed))


def _grouped(intake: EpochInput, rows: DataFrame, exchange: Exchange, plan: StagePlan) -> MapSide:
    """Rows that may go to any channel, as the plan has them find one."""
    if plan.grouping == "in place":
        return MapSide(staying=rows)
    if plan.channels == 1:
        routed = rows.repartitionById(1, F.lit(0))
    elif plan.grouping == "round robin":
        # Spark sorts before it deals rows out, so that a task that runs again sends the same to each channel.
        routed = rows.repartition(plan.channels)
    else:
        routed = placed_by_cost(rows, exchange, intake.routers.find_costs(plan.costs), plan.channels)
    shuffled = run_map_side(routed, intake.watched(), combining=False)
    intake.settle(shuffled.observed if shuffled else {})
    return NOTHING if shuffled is None else MapSide(shuffled, Seen(rows=True))


def _dealt(rows: DataFrame, exchange: Exchange, plan: StagePlan) -> DataFrame:
    """Send each row to a channel that forms partials; rows of hot keys go round robin to their sub-keys.

    The turn comes from a hash of the row's position, since the position may follow a pattern of the keys.
    Without keys, rows are dealt out in runs, or if the plan has none, by whole panes in turn.
    """
    if plan.sub_keys is None:
        if plan.run:
            route = run_column(plan.run, plan.channels)
        else:
            assert exchange.bucket is not None
            route = plain_pane_column(F.col(f"`{exchange.bucket.name}`"), PlainPanes(plan.channels))
        return rows.withColumn(_DEALT, route).repartitionById(plan.channels, F.col(_DEALT))
    turn = F.xxhash64(F.monotonically_increasing_id())
    route = sub_key_column(F.xxhash64(*exchange.keys), turn, plan.sub_keys.router(plan.channels))
    return rows.withColumn(_DEALT, route).repartitionById(plan.channels, F.col(_DEALT))


def _copied(
    rows: DataFrame, exchange: Exchange, port: int, channels: int, spread: JoinSpread | None
) -> DataFrame:
    """The rows of a port with a copy for each channel of its grid, without rows that can match nothing."""
    salt = F.xxhash64(*(F.col(f"`{each.name}`") for each in exchange.columns))
    column: Column
    if exchange.everywhere:
        return rows.withColumn(_CHANNEL, F.explode(F.sequence(F.lit(0), F.lit(channels - 1))))
    if not exchange.keys:
        grid = shaped_grid(exchange.copied, channels)
        column = (grid_left_column, grid_right_column)[port](salt, grid)
        return rows.withColumn(_CHANNEL, F.explode(column))
    assert spread is not None
    known = F.expr(_known(exchange))
    column = (spread_left_column, spread_right_column)[port](F.xxhash64(*exchange.keys), salt, spread)
    if exchange.nulls == "anywhere":
        anywhere = F.pmod(salt, F.lit(channels).cast("long")).cast("int")
        column = F.when(known, column).otherwise(F.array(anywhere))
    else:
        rows = rows.where(known)
    return rows.withColumn(_CHANNEL, F.explode(column))
