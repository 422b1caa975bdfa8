"""Spark without generated code: compiling it for a query that runs a few epochs takes longer than the run."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def interpret(session: SparkSession) -> None:
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)


@contextmanager
def interpreting(session: SparkSession) -> Iterator[SparkSession]:
    interpret(session)
    yield session
    for name in _SETTINGS:
        session.conf.unset(name)
