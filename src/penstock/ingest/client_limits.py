"""What a client holds and sends at most; every figure has its one default here."""

from dataclasses import dataclass

from penstock.errors import BadLimit

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """A batch goes when it has `batch_rows` rows or `batch_bytes` bytes or is `batch_seconds` old.

    Rows are held until a gate has acknowledged them, at most `buffer_rows` and `buffer_bytes` of them; at
    most `window_batches` batches are under way before the gate has said how much it takes.

    >>> ClientLimits(batch_rows=0)
    Traceback (most recent call last):
    penstock.errors.BadLimit: batch_rows is 0; give a number above 0
    """

    batch_rows: int = 10_000
    batch_bytes: int = 4 * 2**20
    batch_seconds: float = 0.02
    buffer_rows: int = 100_000
    buffer_bytes: int = 64 * 2**20
    window_batches: int = 4

    def __post_init__(self) -> None:
        for name in ("batch_rows", "batch_bytes", "buffer_rows", "buffer_bytes", "window_batches"):
            if getattr(self, name) <= 0:
                raise BadLimit(f"{name} is {getattr(self, name)}; give a number above 0")
        if self.batch_seconds < 0:
            raise BadLimit(f"batch_seconds is {self.batch_seconds}; give 0 or more")
        if self.batch_rows > self.buffer_rows or self.batch_bytes > self.buffer_bytes:
            raise BadLimit(
                f"a batch of {self.batch_rows} rows or {self.batch_bytes} bytes does not fit the buffer of "
                f"{self.buffer_rows} rows or {self.buffer_bytes} bytes; give a larger one or smaller batches"
            )
