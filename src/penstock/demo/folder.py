"""The demo's own folder, which it empties at each start and which it knows by a marker file."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import BadSink

__all__ = ["Folder", "fresh_folder"]

MARKER = ".penstock-demo"


@dataclass(frozen=True)
class Folder:
    """Where the demo keeps its feed, its checkpoint, its results and its chart."""

    path: Path

    @property
    def feed(self) -> Path:
        """The folder that the city writes its reports to."""
        return self.path / "feed"

    @property
    def checkpoint(self) -> Path:
        """The folder of the run's state."""
        return self.path / "state"

    @property
    def results(self) -> Path:
        """The folder of the Parquet results."""
        return self.path / "results"

    @property
    def late(self) -> Path:
        """The folder of the late tuples."""
        return self.path / "late"

    @property
    def rejects(self) -> Path:
        """The folder of the malformed tuples."""
        return self.path / "rejects"

    @property
    def chart(self) -> Path:
        """The file of the chart."""
        return self.path / "traffic.png"


def fresh_folder(path: Path) -> Folder:
    """An empty folder for the demo; only what an earlier demo made is ever deleted."""
    if path.exists() and not path.is_dir():
        raise BadSink(f"{path} is a file; give --output a folder that is new or from an earlier demo.")
    if path.exists() and any(path.iterdir()):
        if not (path / MARKER).is_file():
            raise BadSink(
                f"{path} holds files that the demo did not write, and the demo empties its folder; "
                "give --output a folder that is new or from an earlier demo."
            )
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)
    (path / MARKER).touch()
    return Folder(path)
