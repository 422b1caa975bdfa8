"""The rows of a Parquet, CSV or JSON file, or of a folder of them, in order and a batch at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.errors import BadSource
from penstock.expressions.schema import Schema

__all__ = ["FileRows"]

FORMATS: Final = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


class FileRows:
    """A file that is read as it is pushed; only a few batches of it are in memory at a time."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise BadSource(f"no file {path}; give a Parquet, CSV or JSON file, or a folder of them")
        name = (
            path if path.is_file() else next((each for each in sorted(path.iterdir()) if each.suffix), path)
        )
        form = FORMATS.get(name.suffix.lower())
        if form is None:
            raise BadSource(f"{name} ends in {name.suffix!r}; give a file that ends in {', '.join(FORMATS)}")
        try:
            self._dataset: Any = ds.dataset(str(path), format=form)
        except (pa.ArrowException, OSError) as error:
            raise BadSource(f"cannot read {path} as {form}: {error}") from error
        self.schema = Schema.from_arrow(self._dataset.schema)

    def batches(self, skip: int = 0) -> Iterator[pa.RecordBatch]:
        """All rows behind the first `skip`."""
        for batch in self._dataset.to_batches(batch_readahead=2, fragment_readahead=1):
            if batch.num_rows > skip:
                yield batch.slice(skip)
            skip = max(skip - batch.num_rows, 0)
