"""The functions that a Spark session knows, asked of its registry.

`make functions` writes them into src/penstock/expressions/spark_functions.py.
"""

import textwrap
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from py4j import java_gateway, protocol
from pyspark.sql import SparkSession

from penstock.expressions import spark_functions

TABLE = Path(spark_functions.__file__)
_BEGIN, _END = '_REGISTRY: Final = """\n', '"""  # end of the registry\n'

# A function that takes so many takes any number.
_MANY = 10
# What the registry raises for a call with too few or too many arguments, as opposed to wrong ones.
_WRONG_NUMBER = ("[WRONG_NUM_ARGS", "[REQUIRED_PARAMETER_NOT_FOUND")
_WRONG = object()


def written(session: SparkSession) -> str:
    """The text of the file with the functions of the session."""
    text = TABLE.read_text()
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    entries = " ".join(f"{name}:{_shown(counts)}" for name, counts in registered(session).items())
    lines = textwrap.fill(entries, 110, break_long_words=False, break_on_hyphens=False)
    return f"{before}{_BEGIN}{lines}\n{_END}{after}"


def registered(session: SparkSession) -> dict[str, list[int]]:
    """The names of the built-in functions, and the numbers of arguments with which they can be called."""
    registry = _Registry(session)
    counts = {
        name: [count for count in range(_MANY) if registry.call(name, count) is not _WRONG]
        for name in registry.names
    }
    return {name: found for name, found in counts.items() if found}


def of_kind(session: SparkSession, kind: str) -> set[str]:
    """The functions whose class is a subclass of `kind` of Spark's expressions."""
    registry = _Registry(session)
    wanted = session._jvm.java.lang.Class.forName(f"org.apache.spark.sql.catalyst.expressions.{kind}")
    made = {name: registry.call(name, least) for name in registry.names for (least, _) in _counts(name)[:1]}
    return {name for name, each in made.items() if each is not None and wanted.isInstance(each)}


def _counts(name):
    return spark_functions.argument_counts(name) or ()


class _Registry:
    def __init__(self, session):
        jvm, self._registry = session._jvm, session._jsparkSession.sessionState().functionRegistry()
        found = self._registry.listFunction()
        every = (found.apply(place) for place in range(found.size()))
        self._ids = {each.funcName(): each for each in every}
        literal = _singleton(jvm, "org.apache.spark.sql.catalyst.expressions.Literal$")
        null = literal.create(None, _singleton(jvm, "org.apache.spark.sql.types.NullType$"))
        self._nulls = [jvm.PythonUtils.toSeq([null] * count) for count in range(_MANY)]

    @property
    def names(self):
        """Operators aside."""
        return sorted(name for name in self._ids if name.isidentifier())

    def call(self, name, count):
        """The expression of a call with nulls, `_WRONG` if their number does not suit it; else None."""
        with _plain_errors():
            try:
                return self._registry.lookupFunction(self._ids[name], self._nulls[count])
            except protocol.Py4JJavaError as error:
                return _WRONG if str(error.java_exception.getMessage()).startswith(_WRONG_NUMBER) else None


@contextmanager
def _plain_errors():
    """Py4J's own errors: PySpark asks the JVM forty times about each to make its own of them."""
    before = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        java_gateway.get_return_value = before


def _shown(counts):
    """Numbers as ranges: 1-3,6 or, without an end, 2+."""
    runs = []
    for _, run in groupby(enumerate(counts), lambda each: each[1] - each[0]):
        places = [count for _, count in run]
        first, last = places[0], places[-1]
        many = last == _MANY - 1
        runs.append(f"{first}+" if many else str(first) if first == last else f"{first}-{last}")
    return ",".join(runs)


def _singleton(jvm, name):
    return jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)


if __name__ == "__main__":
    from penstock.runtime.spark.session import spark_session

    TABLE.write_text(written(spark_session("local[1]")))
