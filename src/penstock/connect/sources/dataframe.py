"""Any Spark streaming DataFrame: Kafka, Kinesis, a rate source, or one that is already transformed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.checks import flag
from penstock.connect.source import Source, SourceContext
from penstock.errors import BadSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DataFrameSource", "dataframe"]


@dataclass(frozen=True, repr=False)
class DataFrameSource(Source):
    """A Spark streaming DataFrame; the user says whether it ends."""

    frame: Any
    bounded: bool = False

    def open(self, context: SourceContext) -> "DataFrame":
        """Return the frame unchanged."""
        del context
        frame: DataFrame = self.frame
        return frame

    def __repr__(self) -> str:
        return f"dataframe({', '.join(self.frame.columns)}{'; bounded' if self.bounded else ''})"


def dataframe(frame: "DataFrame", *, bounded: bool = False) -> DataFrameSource:
    """Any Spark streaming DataFrame with the stream's columns; set `bounded` if it ends."""
    if getattr(frame, "isStreaming", False) is not True:
        raise BadSource(f"got {type(frame).__name__} that is not streaming; read it with spark.readStream")
    return DataFrameSource(frame, flag("bounded", bounded, BadSource))
