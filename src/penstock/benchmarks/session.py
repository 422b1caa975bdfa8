"""The Spark session in which everything is measured."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from penstock.benchmarks.machine import this_machine
from penstock.runtime.session import SETTINGS, spark_session

__all__ = ["measuring_session"]


def measuring_session() -> SparkSession:
    """The active session, or Penstock's own with half of the machine's memory as heap.

    Spark's default of 1 GB is too little for the state of its own `window()` at a hundredfold overlap, and
    the heap cannot be changed once the JVM runs.
    """
    if SparkSession.getActiveSession() is None:
        # Workers must be the interpreter that has Penstock installed.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder: Any = SparkSession.builder.appName("penstock").master("local[*]")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.config("spark.driver.memory", f"{this_machine().memory // 2}m").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    return spark_session()
