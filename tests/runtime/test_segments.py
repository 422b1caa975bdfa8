import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import DamagedCheckpoint
from penstock.runtime.segments import masked, read, store
from penstock.runtime.storage import Location


def stored(folder, rows):
    return store(Location(str(folder)), "s", pa.table({"v": range(rows)}), first=0, end=1)


def test_masks_on_masks_leave_the_file_as_it_is(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 21)
    before = folder.read(segment.name)
    first = masked(folder, segment, np.arange(21) % 2 == 0)
    second = masked(folder, first, np.arange(11) % 3 == 0)
    assert read(folder, second)["v"].to_pylist() == [0, 6, 12, 18]
    assert read(folder, first)["v"].to_pylist() == list(range(0, 21, 2))
    assert folder.read(segment.name) == before
    assert (second.rows, second.held, second.living_bytes) == (4, 21, segment.bytes * 4 / 21)
    assert set(folder.names()) == {*first.files, *second.files}


def test_a_torn_mask_is_named(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 100)
    cut = masked(folder, segment, np.arange(100) > 3)
    (tmp_path / cut.mask).write_bytes((tmp_path / cut.mask).read_bytes()[:-1])
    with pytest.raises(DamagedCheckpoint, match=cut.mask):
        read(folder, cut)
    (tmp_path / cut.mask).unlink()
    with pytest.raises(DamagedCheckpoint, match="missing"):
        read(folder, cut)
