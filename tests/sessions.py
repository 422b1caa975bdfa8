"""Sessions for queries of a few epochs: there compiling takes longer than running, Spark's and Java's."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from penstock.runtime.spark.session import SETTINGS, spark_session

_JAVA = "spark.driver.extraJavaOptions"
# Half the processor time of a run of seconds: no second, optimising compilation of the JVM.
_QUICK = {_JAVA: f"{SETTINGS[_JAVA]} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"}
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def quick_session(master: str | None = None) -> SparkSession:
    """The active session, or one on a JVM that compiles little."""
    return spark_session(master, _QUICK)


def interpret(session: SparkSession) -> SparkSession:
    """Let Spark generate no code."""
    for name, value in _INTERPRETED.items():
        session.conf.set(name, value)
    return session


@contextmanager
def interpreting(session: SparkSession) -> Iterator[SparkSession]:
    """Let Spark generate no code for a while."""
    yield interpret(session)
    for name in _INTERPRETED:
        session.conf.unset(name)
