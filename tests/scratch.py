"""Where tests keep their files: in memory where there is room, for on a disk they mostly wait for it.

The product syncs every file and folder before it goes on. What a loss of power leaves is tested on a record
of all operations, for no test can cut the power of a disk.
"""

import os
import shutil
import tempfile
from pathlib import Path

_ROOM = 4 << 30
_SHARED = Path("/dev/shm")
MEMORY = (
    str(_SHARED) if _SHARED.is_dir() and shutil.disk_usage(_SHARED).free > _ROOM else tempfile.gettempdir()
)
"""Room for a few files: a file system in memory, else where this machine keeps temporary files."""
# Processes of the tests inherit both.
DISK = os.environ.setdefault("PENSTOCK_DISK", tempfile.gettempdir())
"""Where this machine keeps temporary files."""


def in_memory() -> None:
    """Let this process and its children keep their temporary files in memory."""
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY
