"""A limit of rows per second over all streams of a gate, shared by tenants: what is above it gets turns.

Virtual scheduling. The gate is busy until all rows that it took or promised to take would have passed at
its rate; so is the lane of each tenant, at the part of the rate that its share gives it among the tenants
that are there. A batch is taken if its lane is at most a short burst ahead, whatever the others send; else,
if the whole gate is, so that tenants use what others leave. Otherwise its stream gets a turn where the
earlier of the two is free, which counts as busy time from then on. So streams take turns, none comes in
vain, the rate is used up, and a tenant within its share does not wait for another. A stream that does not
come to its turn loses it. O(1) a batch, O(tenants) where tenants come and go; time is an argument.
"""

from dataclasses import dataclass, field

__all__ = ["RowRate"]

BURST_S = 0.05
"""Rows of this time may come at once."""
KEPT_S = 2.0
"""A turn is kept for so long after its time, and a tenant is there for so long after its last batch."""
_MANY = 64


@dataclass(slots=True)
class _Lane:
    """A tenant: its share, when it last came, and until when its rows take its part of the rate."""

    share: float
    seen: float
    busy_until: float = 0.0


@dataclass(frozen=True, slots=True)
class _Turn:
    at: float
    rows: int


@dataclass(slots=True)
class RowRate:
    """At most `rows` rows a second; 0 is no limit. Without tenants all streams are those of one.

    >>> rate = RowRate(100.0)
    >>> rate.wait("a", 50, now=10.0), rate.taken("a", 50, now=10.0)
    (0.0, None)
    >>> [round(rate.wait(stream, 20, now=10.1), 3) for stream in ("a", "b", "a")]
    [0.35, 0.55, 0.35]
    >>> rate.wait("a", 20, now=10.46), round(rate.wait("b", 20, now=10.46), 3)
    (0.0, 0.19)

    A tenant that comes to a gate that others keep busy has its share at once:

    >>> rate.wait("x", 20, now=10.46, tenant="other")
    0.0
    """

    rows: float
    _busy_until: float = 0.0
    _turns: dict[str, _Turn] = field(default_factory=dict)
    _lanes: dict[str | None, _Lane] = field(default_factory=dict)
    _shares: float = 0.0
    """Of all tenants that are there, together."""
    _looked: float = 0.0

    def wait(
        self, stream: str, rows: int, now: float, tenant: str | None = None, share: float = 1.0
    ) -> float:
        """Seconds until the turn of a stream with this many rows; 0 if it is now."""
        if not self.rows or not rows:
            return 0.0
        turn = self._turns.get(stream)
        if turn is not None:
            return max(turn.at - now, 0.0)
        lane = self._lane(tenant, share, now)
        own, whole = lane.busy_until - BURST_S, self._busy_until - BURST_S
        if min(own, whole) <= now:
            return 0.0
        if len(self._turns) >= _MANY:
            self._turns = {each: known for each, known in self._turns.items() if known.at > now - KEPT_S}
        self._turns[stream] = _Turn(min(own, whole), rows)
        self._count(lane, rows, now, borrowed=whole < own)
        return min(own, whole) - now

    def limit(self, rows: float, now: float) -> None:
        """Another rate from now on: what is ahead takes as much longer or shorter, turns keep their order.

        >>> rate = RowRate(10.0)
        >>> rate.taken("a", 100, now=0.0)
        >>> rate.limit(100.0, now=0.0); round(rate.wait("b", 100, now=0.0), 3)
        0.95
        """
        if not self.rows or not rows:
            self._busy_until, self._turns, self._lanes = 0.0, {}, {}
        else:
            scale = self.rows / rows

            def moved(at: float) -> float:
                return now + max(at - now, 0.0) * scale

            self._busy_until = moved(self._busy_until)
            self._turns = {
                each: _Turn(moved(turn.at) if turn.at > now else turn.at, turn.rows)
                for each, turn in self._turns.items()
            }
            for lane in self._lanes.values():
                lane.busy_until = moved(lane.busy_until)
        self.rows = rows

    def left(self, stream: str, now: float) -> float:
        """Seconds until the turn of a stream, 0 if it has none."""
        turn = self._turns.get(stream)
        return 0.0 if turn is None else max(turn.at - now, 0.0)

    def taken(
        self, stream: str, rows: int, now: float, tenant: str | None = None, share: float = 1.0
    ) -> None:
        """Count rows that were taken; those of a turn are counted already."""
        if self.rows:
            turn = self._turns.pop(stream, None)
            more = rows - (turn.rows if turn is not None else 0)
            lane = self._lane(tenant, share, now)
            self._count(lane, more, now, borrowed=lane.busy_until - BURST_S > now)

    def _count(self, lane: _Lane, rows: int, now: float, *, borrowed: bool) -> None:
        """Rows take time of the gate, and of their tenant's part unless they use what others leave."""
        self._busy_until = max(self._busy_until, now) + rows / self.rows
        if not borrowed:
            part = self.rows * lane.share / self._shares
            lane.busy_until = max(lane.busy_until, now) + rows / part

    def _lane(self, tenant: str | None, share: float, now: float) -> _Lane:
        lane = self._lanes.get(tenant)
        if lane is None:
            # One that comes again has no claim on what it did not use.
            lane = self._lanes[tenant] = _Lane(share, now)
            self._look(now)
        elif lane.share != share or now - self._looked > KEPT_S:
            lane.share, lane.seen = share, now
            self._look(now)
        lane.seen = now
        return lane

    def _look(self, now: float) -> None:
        """Forget tenants that are not there any more."""
        self._looked = now
        self._lanes = {
            each: lane for each, lane in self._lanes.items() if max(lane.seen, lane.busy_until) > now - KEPT_S
        }
        self._shares = sum(lane.share for lane in self._lanes.values())
