"""The verb map: what a user gives, checked."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.checks import short
from penstock.errors import BadName, QueryError, WrongType
from penstock.expressions.schema import schema_of
from penstock.operators.channelled_map.node import ChannelledMap
from penstock.operators.operator import D, Derivable, R
from penstock.operators.steps import Map

__all__ = ["MapVerbs"]

_ANY = "*"


class MapVerbs(Derivable[R, D]):
    """The verb of a relation that calls a function with its rows."""

    def map(
        self,
        function: Callable[[Any], Any],
        schema: Any,
        *,
        by: str | Sequence[str] = (),
        channels: bool = False,
    ) -> D:
        """Go on with what a function makes of the columns in sight, batch by batch.

        It takes a pyarrow.RecordBatch and returns one with as many rows, in the same order, with the
        columns of ``schema``; the event time and the bounds of windows stay as they are.

        A map runs on the way, where its rows happen to be. With ``channels=True`` it is a stage of its own:
        its rows are dealt out to channels, which are measured and can be rescaled. ``by`` names the columns
        on which the cost of a row depends; ``by="*"`` lets the run find them out from samples, and so does
        ``channels=True`` alone. Costs are measured, and rows are placed by them so that all channels take
        equally long: with ``by`` and ``channels=True`` always, else only while that pays.

        >>> from penstock.query import stream
        >>> scans = stream("scans", "time timestamp, code string, image binary", time="time")
        >>> scans.map(len, "size bigint", by="code")
        scans.map(len; by code)
        """
        if not callable(function):
            raise QueryError(f"map() got {function!r}; give a function from a RecordBatch to a RecordBatch")
        if not isinstance(channels, bool):
            raise QueryError(
                f"map(channels={short(channels)}); give True or False, and their number with "
                "start(channels=…) or Run.rescale()"
            )
        made = schema_of(schema)
        kept = self.pinned or ((self.time,) if self.time in self.schema else ())
        for name in made.names:
            if name.lower() in {self.time.lower(), *(each.lower() for each in kept)}:
                raise BadName(f"{name!r} passes a map unchanged; leave it out of the map's schema")
        step = Map(function, self.schema, made, kept)
        values = () if by == _ANY else self._values(by)
        staged = values or channels or by == _ANY
        return self.derive(ChannelledMap(step, values, channels) if staged else step)

    def _values(self, by: str | Sequence[str]) -> tuple[str, ...]:
        """The columns on which costs depend, as the relation spells them."""
        names = (by,) if isinstance(by, str) else by
        if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
            raise BadName(f"map(by={short(by)}); give the name of a column, several names in a list, or '*'")
        found = tuple(self.schema.column(name).name for name in names)
        for name in found:
            type_ = self.schema.column(name).type or ""
            if "map<" in type_:
                raise WrongType(
                    f"map(by={name!r}): {type_} has no hash, so costs cannot go by it; give another column"
                )
        if len(set(found)) < len(found):
            raise BadName(f"map(by={short(by)}) names a column twice; name each once")
        return found
