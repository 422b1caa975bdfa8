"""What every operator answers, so that no other code ever asks which operator it has.

An operator is a frozen value. It knows nothing of the graph it stands in: where an answer depends on what
feeds it, the method gets the relations of its inputs, one for each port. `Operator` is the whole protocol;
`Step` is a stateless operator with one input, which runs as SQL or as a function on the way between stages;
`Filter` is a step that only drops tuples. Column names in sets are in lower case, since names resolve
without regard to case.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from penstock.errors import QueryError
from penstock.expressions.conditions import substituted
from penstock.expressions.scalar import Expression
from penstock.expressions.schema import Schema, quoted
from penstock.functions import SqlSetting, Types, translated
from penstock.operators.exchange import Form
from penstock.operators.names import Named
from penstock.operators.poison import Refuse
from penstock.routing.resources import LLL, Resources

if TYPE_CHECKING:
    from penstock.operators.kernel import Describe, Kernel

__all__ = [
    "Derivable",
    "Duration",
    "Filter",
    "Groupable",
    "GroupedVerbs",
    "InputRelation",
    "Inputs",
    "Operator",
    "Step",
    "lowered",
]

Duration = str | timedelta


class InputRelation(ABC):
    """What an operator may know of a relation that feeds it."""

    schema: Schema
    time: str

    @property
    @abstractmethod
    def time_type(self) -> str:
        """The type of the event time: timestamp or timestamp_ntz."""

    @property
    def pinned(self) -> tuple[str, ...]:
        """The columns that every select keeps."""
        return ()

    @property
    def label(self) -> str:
        """A short name for people: a stream's own, or the operator that made the relation."""
        return repr(self)

    @property
    def stateful(self) -> bool:
        """Whether an operator with channels makes it."""
        return False

    @abstractmethod
    def meaning(self) -> list[object]:
        """What gives its tuples their meaning, inputs aside, as plain values for a fingerprint."""


Inputs = Sequence[InputRelation]

# The type of a user's relation, and that of a relation made by an operator: the verbs of an operator are
# typed without knowing the classes of the query, which is above.
R = TypeVar("R", bound=InputRelation)
D = TypeVar("D", bound=InputRelation)


class Operator(ABC):
    """A node of a query graph: what makes a relation of its inputs.

    A new operator has to say `schema`, `meaning` and its text; every other answer has a default that is
    right, if not the fastest, for an operator whose keys are independent of each other.
    """

    __slots__ = ()

    ports: ClassVar[tuple[str, ...]] = ("input",)
    """The names of its inputs."""
    stateful: ClassVar[bool] = False
    """Whether it is a stage with channels: it keeps state between epochs, or wants channels without state."""
    passing: ClassVar[bool] = False
    """Whether it has channels but keeps nothing, and gives what it takes at once.

    A tuple then comes too late for it only where it comes too late for what it feeds.
    """
    transparent: ClassVar[bool] = False
    """Whether a filter passes it only on the way to an operator that is worth passing."""
    merges: ClassVar[bool] = False
    """Whether its result is all tuples of all inputs as they are; the inputs need the same columns then."""

    # -- what it is ------------------------------------------------------------------------------------

    @abstractmethod
    def __str__(self) -> str:
        """The operator as a user would write it."""

    @property
    def kind(self) -> str:
        """One word for plans."""
        return type(self).__name__.lower()

    @abstractmethod
    def meaning(self) -> list[object]:
        """What gives its state and its results their meaning, as plain values for a fingerprint."""

    def as_step(self) -> "Step | None":
        """Itself, if it is a stateless operator with one input."""
        return None

    def as_filter(self) -> "Filter | None":
        """Itself, if it only drops tuples."""
        return None

    # -- its result ------------------------------------------------------------------------------------

    @abstractmethod
    def schema(self, inputs: Inputs) -> Schema:
        """The columns of its result."""

    def event_time(self, inputs: Inputs) -> str:
        """The name of the event time of its result; by default that of its first input."""
        return inputs[0].time

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The columns of its result that every later select keeps; by default those of its first input."""
        return inputs[0].pinned

    # -- keys and columns ------------------------------------------------------------------------------

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys by which tuples of an input find their channel: name in the result, SQL over the input."""
        return ()

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names that the keys have in the result."""
        return tuple(name for name, _ in self.keys_at(0))

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """SQL over an input for each column of the result that a condition on that input can stand for.

        By default the keys: all tuples of a key share its value, so a condition on it drops whole keys.
        """
        return dict(self.keys_at(place))

    def passes(self, condition: Expression, inputs: Inputs) -> dict[int, Expression]:
        """The inputs that can be filtered instead of the result, with the condition as each has to read it.

        Empty if the condition has to stay after the operator. It reads at least one column, and it has a
        value for every tuple. By default it goes to all inputs or to none.
        """
        found: dict[int, Expression] = {}
        for place, each in enumerate(inputs):
            here = substituted(condition, self.origins(place, inputs), each.schema)
            if here is None:
                return {}
            found[place] = here
        return found

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """The columns of an input that it reads to make the wanted columns of its result; by default all."""
        return lowered(inputs[place].schema.names)

    def narrowed(self, wanted: frozenset[str], inputs: Inputs) -> "tuple[Operator, tuple[str, ...]]":
        """The operator that gives only the wanted columns, as far as that saves something, and notes."""
        return self, ()

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """The columns of its result that hold one of these columns of its first input, unchanged."""
        texts = {quoted(name) for name in names}
        return frozenset(name for name, sql in self.keys_at(0) if sql in texts)

    def joint_carriers(self, names: Sequence[frozenset[str]]) -> frozenset[str]:
        """The keys of its result that hold, unchanged and from every input, one of these columns of it."""
        texts = [{quoted(name) for name in each} for each in names]
        found = [
            {name for name, sql in self.keys_at(place) if sql in each} for place, each in enumerate(texts)
        ]
        return frozenset(set.intersection(*found))

    # -- channels --------------------------------------------------------------------------------------

    def why_single(self) -> str | None:
        """Why only one channel can hold its state; None if several can."""
        return None if self.key_names else "without a key there is nothing to tell channels apart by"

    def partition_columns(self, inputs: Inputs) -> frozenset[str]:
        """The columns of its result that decide on the channel of each tuple; empty if something else does.

        An operator that shares channels may run there if its keys carry all of these columns on.
        """
        return frozenset()

    def shares_channels(self) -> bool:
        """Whether it can run in the channels of the stage before it, on the tuples that are there."""
        return False

    def ahead(self) -> int | None:
        """How much later than its latest tuple a result may be when all has ended; None if nobody knows."""
        return 0

    def taken_in_place(self) -> tuple[str, ...]:
        """The SQL over tuples that a channel evaluates, where the operator shares those of another stage."""
        return ()

    def check_setting(self, inputs: Inputs, setting: SqlSetting) -> None:
        """Raise a QueryError if its channels cannot evaluate what a session of this setting means."""
        return

    def refused(self, why: str) -> QueryError:
        """The error for an operator with state that follows it, with `why_last`."""
        return QueryError(why)

    def why_last(self) -> str | None:
        """Why no operator with state can follow it, as an error for people; None if one can."""
        return None

    def compile(self, time_type: str, ports: "Sequence[Describe]") -> "Kernel":
        """What its channels do, for inputs whose types Spark tells; operators without state have none."""
        raise NotImplementedError(f"{self} keeps no state, so nothing runs in channels for it")

    def resources(self, form: Form = "rows") -> Resources:
        """How state, computation and communication of a key grow with its frequency (003, section 3.1).

        `form` is how rows reach its channels.
        """
        return LLL

    # -- words for plans -------------------------------------------------------------------------------

    def words(self) -> list[str]:
        """What its channels do, with the reason for every choice."""
        return []

    @property
    def route(self) -> str:
        """The kind of its router where it has several channels: hash, grid or any."""
        return "hash"

    def route_words(self) -> str:
        """The router and the reason for it, where it has several channels."""
        return f"xxhash64({', '.join(self.key_names)}) by ring and table, {NATIVE}"


NATIVE = "vectorised on Arrow: no Python touches a row to route it"


class Step(Operator):
    """A stateless operator with one input: it makes of each tuple one or none, or several if it says so."""

    __slots__ = ()

    def as_step(self) -> "Step":
        """Itself."""
        return self

    calls: ClassVar[bool] = False
    """Whether it calls a Python function, and has no SQL."""
    multiplies: ClassVar[bool] = False
    """Whether it may make several tuples of one, or none."""

    def select(self, source: str, *carried: str) -> str:
        """The step as Spark SQL over what may stand after FROM, in parentheses.

        `carried` columns are no columns of the relation; they pass unseen.
        """
        raise NotImplementedError(f"{self} calls a function and has no SQL")

    def in_channel(self, source: str, given: Types, setting: SqlSetting, *carried: str) -> tuple[str, Types]:
        """The step as DuckDB's SQL over what may stand after FROM, and the types of the columns it gives.

        Raises Uncertified if only Spark can evaluate it.
        """
        raise NotImplementedError(f"{self} calls a function and has no SQL")

    def renamed(self, names: Sequence[str]) -> dict[str, str] | None:
        """The column behind each of its columns if it makes none anew and keeps all tuples; else None."""
        del names
        return None

    def declared(self, type_of: Callable[[str], str]) -> str:
        """The columns that its function gives, as DDL; `type_of` tells those of columns that pass by."""
        raise NotImplementedError(f"{self} is SQL and calls no function")

    def called(self, schema: Any) -> Any:
        """The Arrow schema of what its function makes of a table of this schema."""
        raise NotImplementedError(f"{self} is SQL and calls no function")

    def call(self, table: Any, refuse: Refuse | None = None) -> Any:
        """What its function makes of an Arrow table; the event time is carried on.

        `refuse` gets the rows for which the function raises; without it the error is raised.
        """
        raise NotImplementedError(f"{self} is SQL and calls no function")


class Filter(Step):
    """A step that only drops tuples."""

    __slots__ = ()

    @property
    @abstractmethod
    def condition(self) -> str:
        """The condition that tuples have to meet, as Spark SQL."""

    @property
    @abstractmethod
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of which the condition is made."""

    @abstractmethod
    def rewritten(self, change: Callable[[Expression], Expression]) -> "Filter":
        """The same filter with every expression changed, as over another relation."""

    def as_filter(self) -> "Filter":
        """Itself."""
        return self

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of its input."""
        return inputs[0].schema

    def meaning(self) -> list[object]:
        """The condition."""
        return ["where", self.condition]

    def origins(self, place: int, inputs: Inputs) -> dict[str, str]:
        """Every column is its own origin."""
        return {name: quoted(name) for name in inputs[place].schema.names}

    def reads(self, place: int, wanted: frozenset[str], inputs: Inputs) -> frozenset[str]:
        """What is wanted and what the condition reads."""
        return wanted | lowered(name for each in self.expressions for name in each.columns)

    def carriers(self, names: frozenset[str]) -> frozenset[str]:
        """The columns themselves."""
        return names

    def select(self, source: str, *carried: str) -> str:
        """All columns of the tuples that meet the condition."""
        # To Spark, `input WHERE (flag)` is a table with the alias WHERE and the column flag.
        return f"(SELECT * FROM {source} WHERE (({self.condition})))"

    def in_channel(self, source: str, given: Types, setting: SqlSetting, *carried: str) -> tuple[str, Types]:
        """All columns of the tuples that meet the condition."""
        return f"(SELECT * FROM {source} WHERE {translated(self.condition, given, setting).sql})", given


class Groupable(Generic[R, D]):
    """Tuples with keys, or without any: what verbs that stand on a relation and after a group_by build on."""

    @property
    @abstractmethod
    def grouping(self) -> "tuple[Derivable[R, D], Named]":
        """The relation, and the keys by which its tuples are grouped."""


class Derivable(InputRelation, Groupable[R, D]):
    """A relation from which operators make others: what the verbs of each operator build on.

    The verbs of an operator are a mixin for the user's relation, so that a new operator is one folder and
    one line in the list of mixins.
    """

    @abstractmethod
    def derive(self, operator: Operator, *others: R) -> D:
        """The relation that an operator makes of this one and the others."""

    @property
    def grouping(self) -> "tuple[Derivable[R, D], Named]":
        """The relation itself, without keys."""
        return self, ()


class GroupedVerbs(Groupable[R, D]):
    """A relation with keys: what the verbs after a group_by build on."""

    relation: Derivable[R, D]
    keys: Named

    @property
    def grouping(self) -> tuple[Derivable[R, D], Named]:
        """The relation and its keys."""
        return self.relation, self.keys


def lowered(names: Iterable[str]) -> frozenset[str]:
    """The names in lower case.

    >>> sorted(lowered(["Phone", "x"]))
    ['phone', 'x']
    """
    return frozenset(name.lower() for name in names)
