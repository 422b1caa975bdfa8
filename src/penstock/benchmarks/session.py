"""The Spark session in which everything is measured."""

from pyspark.sql import SparkSession

from penstock.reports.machine import this_machine
from penstock.runtime.spark.session import spark_session

__all__ = ["measuring_session"]


def measuring_session() -> SparkSession:
    """The active session, or Penstock's own with half of the machine's memory as heap.

    Spark's default of 1 GB is too little for the state of its own `window()` at a hundredfold overlap, and
    the heap cannot be changed once the JVM runs.
    """
    return spark_session(settings={"spark.driver.memory": f"{this_machine().memory // 2}m"})
