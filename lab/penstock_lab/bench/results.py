"""What an engine delivered, read back from its parquet files with DuckDB."""

from dataclasses import dataclass
from pathlib import Path

import duckdb


@dataclass(frozen=True)
class Delivered:
    """Results up to some time: how many rows, and a checksum that does not depend on their order."""

    rows: int
    checksum: int


def count(folder: Path) -> int:
    """Result rows in the folder."""
    if not _any(folder):
        return 0
    return int(_one("SELECT count(*) FROM read_parquet(?)", _files(folder))[0])


def last_end(folder: Path) -> int | None:
    """The end of the last window delivered, in microseconds since 1970; None without any."""
    if not _any(folder):
        return None
    return _one("SELECT epoch_us(max(window_end)) FROM read_parquet(?)", _files(folder))[0]


def delivered(folder: Path, until: int | None) -> Delivered:
    """Count and checksum of the windows that end by `until` (microseconds since 1970), or of all.

    A sum of hashes, so a row that comes twice shows as much as one that is missing.
    """
    if not _any(folder):
        return Delivered(0, 0)
    rows, checksum = _one(_CHECKSUM, _files(folder), until, until)
    return Delivered(int(rows), int(checksum))


def rows_delivered(folder: Path) -> Delivered:
    """Count and checksum of all results, over all of their columns."""
    if not _any(folder):
        return Delivered(0, 0)
    rows, checksum = _one("SELECT count(*), sum(hash(t)) FROM read_parquet(?) AS t", _files(folder))
    return Delivered(int(rows), int(checksum))


def pairs_delivered(folder: Path, until: int | None) -> Delivered:
    """Count and checksum of a join's results, of those before `until` (microseconds since 1970) if given."""
    if not _any(folder):
        return Delivered(0, 0)
    rows, checksum = _one(_PAIRS, _files(folder), until, until)
    return Delivered(int(rows), int(checksum))


def projected_delivered(folder: Path) -> Delivered:
    """Count and checksum of all rows that passed a filter, with their computed column."""
    if not _any(folder):
        return Delivered(0, 0)
    rows, checksum = _one(_PROJECTED, _files(folder))
    return Delivered(int(rows), int(checksum))


def sums_delivered(folder: Path) -> Delivered:
    """Count and checksum of all results of the query of eight operators."""
    if not _any(folder):
        return Delivered(0, 0)
    rows, checksum = _one(_SUMS, _files(folder))
    return Delivered(int(rows), int(checksum))


def statistics_delivered(folder: Path) -> Delivered:
    """Count and checksum of all running statistics of keys."""
    if not _any(folder):
        return Delivered(0, 0)
    rows, checksum = _one(f"SELECT {_STATISTICS} FROM read_parquet(?)", _files(folder))
    return Delivered(int(rows), int(checksum))


def last_statistics(folder: Path) -> Delivered:
    """Count and checksum of the last running statistics of every key."""
    if not _any(folder):
        return Delivered(0, 0)
    last = "SELECT * FROM read_parquet(?) QUALIFY row_number() OVER (PARTITION BY key ORDER BY n DESC) = 1"
    rows, checksum = _one(f"SELECT {_STATISTICS} FROM ({last})", _files(folder))
    return Delivered(int(rows), int(checksum))


def states_kept(files: Path) -> Delivered:
    """Count and checksum of exported states: keys, two counters and a payload."""
    sql = "SELECT count(*), coalesce(sum(hash(key, n, total, payload)), 0) FROM read_parquet(?)"
    rows, checksum = _one(sql, str(files))
    return Delivered(int(rows), int(checksum))


_STATISTICS = "count(*), coalesce(sum(hash(key, n, round(total, 6), round(top, 6))), 0)"

_CHECKSUM = """
    SELECT count(*), coalesce(sum(hash(
        epoch_us(window_start), epoch_us(window_end), key, reports, round(mean, 6), round(top, 6)
    )), 0)
    FROM read_parquet(?) WHERE CAST(? AS BIGINT) IS NULL OR epoch_us(window_end) <= ?
"""

_PAIRS = """
    SELECT count(*), coalesce(sum(hash(
        epoch_us(time), caller, epoch_us(sent_north), epoch_us(sent_south), round(metres, 3)
    )), 0)
    FROM read_parquet(?) WHERE CAST(? AS BIGINT) IS NULL OR epoch_us(time) < ?
"""

_PROJECTED = """
    SELECT count(*), coalesce(sum(hash(epoch_us(time), key, round(scaled, 6))), 0) FROM read_parquet(?)
"""

_SUMS = """
    SELECT count(*), coalesce(sum(hash(
        epoch_us(window_start), epoch_us(window_end), number, CAST(sums AS BIGINT), most
    )), 0)
    FROM read_parquet(?)
"""


def _any(folder: Path) -> bool:
    return next(folder.rglob("*.parquet"), None) is not None


def _files(folder: Path) -> str:
    return str(folder / "**" / "*.parquet")


def _one(sql: str, *arguments: object) -> tuple[int, ...]:
    with duckdb.connect() as connection:
        row = connection.execute(sql, arguments).fetchone()
    assert row is not None, "an aggregate without groups gives one row"
    return tuple(row)
