"""Python functions over Arrow for map(), each with the SQL that says the same."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Scaled:
    """Twice a number plus one, as a bigint, beside columns taken over under other names."""

    column: str
    name: str
    taken: tuple[tuple[str, str, str], ...] = ()

    @property
    def made(self) -> tuple[tuple[str, str], ...]:
        return ((self.name, "bigint"), *((name, type_) for _, name, type_ in self.taken))

    @property
    def sql(self) -> dict[str, str]:
        return {
            self.name: f"CAST({self.column} AS BIGINT) * 2 + 1",
            **{name: column for column, name, _ in self.taken},
        }

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        number = pc.add(pc.multiply(batch.column(self.column).cast(pa.int64()), 2), 1)
        others = [batch.column(column) for column, _, _ in self.taken]
        return pa.RecordBatch.from_arrays([number, *others], names=[name for name, _ in self.made])


@dataclass(frozen=True)
class Measured:
    """The length of a text in characters, as a bigint, and the text itself turned to capitals."""

    column: str
    name: str
    text: str

    @property
    def made(self) -> tuple[tuple[str, str], ...]:
        return ((self.name, "bigint"), (self.text, "string"))

    @property
    def sql(self) -> dict[str, str]:
        return {self.name: f"CAST(length({self.column}) AS BIGINT)", self.text: f"upper({self.column})"}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        given = batch.column(self.column)
        made = [pc.utf8_length(given).cast(pa.int64()), pc.utf8_upper(given)]
        return pa.RecordBatch.from_arrays(made, names=[self.name, self.text])


Mapping = Scaled | Measured
