"""Position reports of vehicles from a file: tab-separated trip, time (ISO 8601), latitude and longitude."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from penstock.expressions.duck import evaluate
from penstock.expressions.macros import expand
from penstock.expressions.parsing import parse_scalar
from penstock_lab.errors import BadData

__all__ = ["Positions", "read_positions"]

_COLUMNS = ("trip", "time", "lat", "lon")


@dataclass(frozen=True)
class Positions:
    """Reports in the order of their times."""

    table: pa.Table

    @property
    def seconds(self) -> NDArray[np.int64]:
        """Seconds of every report since the midnight before the first one, UTC."""
        times = np.asarray(pc.cast(self.table["time"], pa.timestamp("s")).cast(pa.int64()))
        found: NDArray[np.int64] = times - times[0] // 86_400 * 86_400
        return found

    def tiles(self, metres: int) -> NDArray[np.int64]:
        """The tile of every report, numbered from 0; tiles are those of the query function `grid`."""
        tile = expand(parse_scalar(f"grid(lon, lat, {metres})")).sql(dialect="duckdb")
        names = evaluate(f"SELECT {tile} AS tile FROM input", self.table)["tile"].combine_chunks()
        numbers: NDArray[np.int64] = np.asarray(names.dictionary_encode().indices, np.int64)
        return numbers


def read_positions(path: Path) -> Positions:
    """The reports of a file, plain or .gz."""
    types = {
        "trip": pa.string(),
        "time": pa.timestamp("s", tz="UTC"),
        "lat": pa.float64(),
        "lon": pa.float64(),
    }
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=_COLUMNS),
            parse_options=arrow_csv.ParseOptions(delimiter="\t"),
            convert_options=arrow_csv.ConvertOptions(column_types=types),
        )
    except (OSError, pa.ArrowInvalid) as error:
        raise BadData(
            f"{path} is no file of positions: {error}; give one with the columns {', '.join(_COLUMNS)}, "
            "separated by tabs, without a header"
        ) from error
    if not table.num_rows:
        raise BadData(f"{path} has no positions; give a file with at least one")
    return Positions(table.sort_by("time"))
