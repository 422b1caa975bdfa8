# ruff: noqa: SLF001 -- Hadoop has no other door
"""Whether Spark itself can use a place."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.errors import BadPath

__all__ = ["check_filesystem"]


def check_filesystem(session: SparkSession, uri: str) -> None:
    """Check that Spark itself has a file system for a place; Hadoop comes without those of object stores."""
    hadoop: Any = session._jvm.org.apache.hadoop  # type: ignore[union-attr]
    try:
        hadoop.fs.Path(uri).getFileSystem(session._jsc.hadoopConfiguration())
    except Py4JJavaError as error:
        version = hadoop.util.VersionInfo.getVersion()
        raise BadPath(
            f"Spark has no file system for {uri}: {str(error.java_exception).splitlines()[0]}; for S3 give a "
            f"session with spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}, or a local path"
        ) from error
