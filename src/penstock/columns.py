"""The names of columns that Penstock adds to rows; all begin with a prefix that users cannot use."""

from typing import Final

__all__ = ["CELL", "HASH", "KEY", "PANE", "TIME"]

TIME: Final = "_ps_time"
"""The event time, in whole microseconds since 1970-01-01 UTC."""
KEY: Final = "_ps_key{}"
"""The key columns, by their place."""
HASH: Final = "_ps_hash"
"""The 64-bit hash of the key columns, as a signed number."""
CELL: Final = "_ps_cell"
"""In files of state, the first 16 bits of the hash by which a row finds its channel."""
PANE: Final = "_ps_pane"
"""The number of the pane that a row lies in."""
