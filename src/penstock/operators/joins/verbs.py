"""The verbs join and cross, which check the arguments against both sides."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, get_args

from penstock.errors import BadJoin, BadName, QueryError, WrongType
from penstock.expressions.durations import microseconds
from penstock.expressions.pairs import pair_condition
from penstock.expressions.schema import Schema
from penstock.functions import DEFAULT
from penstock.operators.aggregated import WINDOW_END, WINDOW_START
from penstock.operators.joins.node import FOREVER, PAIR_TIME, How, Join, JoinKey, PairTime, common_type
from penstock.operators.names import check_key, check_names
from penstock.operators.operator import D, Derivable, Duration, InputRelation, R
from penstock.operators.windows import Window
from penstock.operators.windows.node import Late

__all__ = ["JoinVerbs", "On", "join_of"]

On = str | Iterable[str] | Mapping[str, str]
Suffixes = tuple[str, str]
Keep = Duration | tuple[Duration, Duration]
SUFFIXES: Final[Suffixes] = ("", "_right")
_MOST_ROWS: Final = 1 << 31
_ONE_SIDED: Final = ("semi", "anti")
_BOUNDS: Final = frozenset({WINDOW_START, WINDOW_END})


class JoinVerbs(Derivable[R, D]):
    """The verbs of a relation that pair its tuples with those of another."""

    def join(  # noqa: PLR0913 -- each is one documented option
        self,
        other: R,
        on: On,
        *,
        within: Duration | None = None,
        last: int | None = None,
        window: Window | None = None,
        keep: Keep | None = None,
        how: str = "inner",
        time: str | None = None,
        late: Late | None = None,
        condition: str | None = None,
        suffixes: Suffixes = SUFFIXES,
        named: str = PAIR_TIME,
    ) -> D:
        """Pair tuples of equal keys: near in time, in one window, or with the last of the other side.

        ``within``: at most so far apart. ``window``: in each window that holds both. ``keep``: each tuple is
        kept so long for partners to come, one duration or one for each side, or "forever". ``last``: each
        tuple with the last ones before it.

        ``on`` names the keys: one, several, or a mapping of left to right names. ``condition`` is over the
        pair, ``l`` and ``r``. ``how`` is inner, left, right or full; tuples without a partner are delivered
        when they can match no more. With semi and anti the result is the left tuples that have a partner, or
        have none.

        A result has its event time, ``named`` pair_time, the keys, and the columns of both sides with their
        own event times; names that both have get ``suffixes``. ``time`` says which time a pair carries: that
        of its earliest (as usual with ``within``) or latest row (as usual with ``keep`` and ``last``), of the
        left or of the right one; a tuple without a partner has its own. Results of semi and anti joins keep
        the time of the left tuple. With a window the event time is its start; ``late`` says what becomes of a
        tuple of which some windows are closed, as for ``window``: it counts in the others ("count"), or in
        none ("drop").

        >>> from penstock.query import stream
        >>> calls = stream("calls", "time timestamp, caller string, x double", time="time")
        >>> calls.join(calls, "caller", within="1 minute", condition="l.x < r.x", suffixes=("_1", "_2"))
        calls.join(calls; caller; within 1 minute; `l`.`x` < `r`.`x`)
        >>> calls.join(calls, "caller", keep=("1 hour", "1 minute"), how="semi")
        calls.join(calls; caller; keep 1 hour and 1 minute; semi)
        """
        if not (bool(on) if isinstance(on, str) else bool(list(on))):
            raise QueryError("join() needs a key; for a condition alone use cross()")
        made = join_of(
            self,
            other,
            on,
            within=within,
            last=last,
            window=window,
            keep=keep,
            how=how,
            time=time,
            late=late,
            condition=condition,
            suffixes=suffixes,
            named=named,
        )
        return self.derive(made, other)

    def cross(  # noqa: PLR0913 -- each is one documented option
        self,
        other: R,
        condition: str | None = None,
        *,
        within: Duration | None = None,
        last: int | None = None,
        window: Window | None = None,
        keep: Keep | None = None,
        how: str = "inner",
        time: str | None = None,
        late: Late | None = None,
        suffixes: Suffixes = SUFFIXES,
        named: str = PAIR_TIME,
    ) -> D:
        """Pair tuples for which a condition over ``l`` and ``r`` is true; otherwise like ``join``."""
        made = join_of(
            self,
            other,
            (),
            within=within,
            last=last,
            window=window,
            keep=keep,
            how=how,
            time=time,
            late=late,
            condition=condition,
            suffixes=suffixes,
            named=named,
        )
        return self.derive(made, other)


def join_of(  # noqa: PLR0913 -- each is one documented option
    left: InputRelation,
    right: InputRelation,
    on: On,
    *,
    within: Duration | None = None,
    last: int | None = None,
    window: Window | None = None,
    keep: Keep | None = None,
    how: str = "inner",
    time: str | None = None,
    late: Late | None = None,
    condition: str | None = None,
    suffixes: Suffixes = SUFFIXES,
    named: str = PAIR_TIME,
) -> Join:
    """The join, after all names and types are checked; ``named`` is the event time of its pairs."""
    if [within, last, window, keep].count(None) != 3:
        raise BadJoin(
            "a join needs one bound: within='1 minute' (event time apart), window=ps.window('1 minute') (in "
            "one window), keep='1 day' (how long each tuple waits for the other) or last=100 (rows)"
        )
    if last is not None and not (isinstance(last, int) and 1 <= last < _MOST_ROWS):
        raise BadJoin(f"last={last!r}; give a whole number of rows, 1 or more, below 2**31")
    if window is not None and not isinstance(window, Window):
        raise BadJoin(f"window={window!r}; give a window of time, such as ps.window('10 minutes')")
    if how not in get_args(How):
        raise BadJoin(f"how={how!r}; give one of {', '.join(get_args(How))}")
    if how in _ONE_SIDED and last is not None:
        raise BadJoin(f"a {how} join with the last {last} rows; give within=..., window=... or keep=...")
    if left.time_type != right.time_type:
        raise WrongType(
            f"the left time {left.time!r} is {left.time_type}, the right one {right.time!r} is "
            f"{right.time_type}; declare both streams with the same type of time"
        )
    keys = tuple(_key(one, other, left.schema, right.schema) for one, other in _pairs(on))
    alone = how in _ONE_SIDED
    check_names([named])
    if named != PAIR_TIME and (alone or window is not None):
        raise BadJoin(
            f"named={named!r} in a {'join by window' if window is not None else f'{how} join'}; only pairs "
            "have a time of their own to name, leave it out"
        )
    moment = WINDOW_START if window is not None else left.time if alone else named
    times = _BOUNDS if window is not None else frozenset({moment})
    given = _given(left, right, keys, suffixes, times, alone=alone)
    made = Join(
        keys=keys,
        within=None if within is None else microseconds(within),
        last=last,
        how=how,  # type: ignore[arg-type]
        condition=None if condition is None else pair_condition(condition, left.schema, right.schema),
        left=given[0],
        right=given[1],
        time=moment,
        window=window,
        keep=None if keep is None else _kept(keep),
        times=_pair_time(time, within=within, last=last, window=window, how=how),
        late=_late(late, window),
    )
    made.check_setting((left, right), DEFAULT)
    return made


def _kept(keep: Keep) -> tuple[int, int]:
    """How long rows of each side are kept."""
    if isinstance(keep, (list, tuple)):
        if len(keep) != 2:
            raise BadJoin(f"keep={keep!r}; give one duration, or one for the left and one for the right side")
        left, right = keep
        return _kept_for(left), _kept_for(right)
    return _kept_for(keep), _kept_for(keep)


def _kept_for(keep: Duration) -> int:
    return FOREVER if keep == "forever" else microseconds(keep)


def _pair_time(
    time: str | None, *, within: Duration | None, last: int | None, window: Window | None, how: str
) -> PairTime:
    if time is None:
        usual: PairTime = "latest" if within is None else "earliest"
        return "left" if how in _ONE_SIDED else usual
    known: dict[str, PairTime] = {each: each for each in get_args(PairTime)}
    if time not in known:
        raise BadJoin(f"time={time!r}; give one of {', '.join(known)}")
    if window is not None:
        raise BadJoin(f"time={time!r} in a join by window; a result has the start of its window as its time")
    if last is not None and time != "latest":
        raise BadJoin(
            f"time={time!r} in a join with the last rows; a pair carries the time of its later row there, "
            "since the other may be of any age"
        )
    if how in _ONE_SIDED and time != "left":
        raise BadJoin(f"time={time!r} in a {how} join; its results are left rows with their own time")
    return known[time]


def _late(late: Late | None, window: Window | None) -> Late:
    if late is None:
        return "count"
    if late not in get_args(Late):
        raise BadJoin(f"late={late!r}; it is 'count' or 'drop'")
    if window is None:
        raise BadJoin(
            f"late={late!r} in a join without a window; a tuple below the frontier of its side is late there"
        )
    return late


def _pairs(on: On) -> list[tuple[str, str]]:
    if isinstance(on, Mapping):
        return list(on.items())
    return [(name, name) for name in ([on] if isinstance(on, str) else on)]


def _key(one: str, other: str, left: Schema, right: Schema) -> JoinKey:
    ours, theirs = left.column(one), right.column(other)
    type_ = common_type(ours.type, theirs.type)
    if type_ == "":
        raise WrongType(
            f"the keys {ours.name} {ours.type} and {theirs.name} {theirs.type} cannot be compared; cast one"
        )
    if type_:
        check_key(ours.name, type_)
    return JoinKey(ours.name, theirs.name, type_)


def _given(  # noqa: PLR0913 -- both sides, and what the result has of them
    left: InputRelation,
    right: InputRelation,
    keys: tuple[JoinKey, ...],
    suffixes: Suffixes,
    times: frozenset[str],
    *,
    alone: bool,
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """The columns that each side adds to the keys and ``times``, which carry the event time of the result.

    The event times of both sides are columns like others. What a former join or window made under the names
    of ``times`` gives way to what this join makes.
    """
    # A select may have written the name of the time in another case.
    gone = {name.lower() for name in times & {*left.pinned, *((left.time,) if alone else ())}}
    gone |= {key.left.lower() for key in keys}
    ours = [name for name in left.schema.names if name.lower() not in gone]
    gone = {name.lower() for name in (*(times & {*right.pinned}), *(key.right for key in keys))}
    theirs = [name for name in right.schema.names if name.lower() not in gone]
    if alone:
        theirs = []
    taken = [name.lower() for name in (*times, *(key.left for key in keys))]
    shared = {name.lower() for name in ours} & {name.lower() for name in theirs}
    shared |= {name.lower() for name in (*ours, *theirs)}.intersection(taken)
    one, other = suffixes
    found = (
        tuple((name, name + (one if name.lower() in shared else "")) for name in ours),
        tuple((name, name + (other if name.lower() in shared else "")) for name in theirs),
    )
    counts = Counter([*taken, *(name.lower() for side in found for _, name in side)])
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise BadName(
            f"two columns of the join would have the name {', '.join(twice)}; give other suffixes than "
            f"{suffixes}, or rename by select()"
        )
    return found
