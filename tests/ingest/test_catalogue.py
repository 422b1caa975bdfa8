import pyarrow as pa
import pytest

from penstock import durable
from penstock.errors import DamagedLog
from penstock.ingest.log.catalogue import Catalogue

SCHEMA = pa.schema([("time", pa.timestamp("us")), ("speed", pa.float64())])


def filled(path):
    catalogue = Catalogue(path)
    catalogue.add_schema("reports", SCHEMA)
    catalogue.declare("reports/1", {"max_rate": 3})
    catalogue.add_reader("reports", "traffic")
    catalogue.add_reader("reports", "alarms")
    catalogue.remove_reader("reports", "alarms")
    catalogue.delete({"reports/1": 10})
    catalogue.delete({"reports/1": 7, "reports/2": 4})
    catalogue.close()


def test_everything_is_there_after_a_restart(tmp_path):
    filled(tmp_path / "catalogue")
    again = Catalogue(tmp_path / "catalogue")
    assert again.schemas["reports"].equals(SCHEMA)
    assert again.declared == {"reports/1": {"max_rate": 3}}
    assert again.readers == {("reports", "traffic"): None}
    assert again.deleted == {"reports/1": 10, "reports/2": 4}


def test_a_torn_last_line_is_dropped_at_any_byte(tmp_path):
    path = tmp_path / "catalogue"
    filled(path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    for end in range(last, len(whole) - 1):
        path.write_bytes(whole[:end])
        again = Catalogue(path)
        assert again.deleted == {"reports/1": 10}
        again.add_reader("reports", "later")
        again.close()
        assert ("reports", "later") in Catalogue(path).readers


def test_damage_before_the_end_is_an_error(tmp_path):
    path = tmp_path / "catalogue"
    filled(path)
    whole = bytearray(path.read_bytes())
    whole[40] ^= 1
    path.write_bytes(whole)
    with pytest.raises(DamagedLog, match="line 1"):
        Catalogue(path)


def test_the_file_stays_in_proportion_to_what_it_says(tmp_path):
    """Defect 14: the catalogue grew with every deletion and declaration, and was read whole at each start."""
    catalogue = Catalogue(tmp_path / "catalogue")
    catalogue.add_schema("reports", SCHEMA)
    for number in range(20_000):
        catalogue.delete({f"reports/{number % 50}": number}, [number])
        catalogue.unlinked([number])
        if number % 100 == 0:
            catalogue.declare(f"reports/{number % 50}", {"max_rate": number})
            catalogue.sync()
    catalogue.sync()
    assert (tmp_path / "catalogue").stat().st_size == catalogue.size < 100_000
    before = (catalogue.schemas, catalogue.declared, catalogue.deleted, catalogue.last_gone)
    catalogue.close()
    again = Catalogue(tmp_path / "catalogue")
    assert (again.schemas, again.declared, again.deleted, again.last_gone) == before
    assert again.deleted["reports/49"] == 19_999


def test_after_a_failed_sync_everything_is_written_anew(tmp_path, monkeypatch):
    """Defect 10: what a failed sync left on disk is unknown, and is not built upon."""
    catalogue = Catalogue(tmp_path / "catalogue")
    catalogue.add_reader("reports", "traffic")
    monkeypatch.setattr(durable, "_failure", durable._Failure("catalogue/sync"))
    with pytest.raises(OSError, match="Input/output error"):
        catalogue.sync()
    first = (tmp_path / "catalogue").stat().st_ino
    catalogue.sync()
    assert (tmp_path / "catalogue").stat().st_ino != first
    catalogue.close()
    assert Catalogue(tmp_path / "catalogue").readers == {("reports", "traffic"): None}


def test_damage_of_the_last_line_is_an_error(tmp_path):
    """Defect 20: a complete last line that is wrong was dropped as if it had never been written."""
    path = tmp_path / "catalogue"
    filled(path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    for at in range(last, len(whole)):
        content = bytearray(whole)
        content[at] ^= 1
        path.write_bytes(content)
        with pytest.raises(DamagedLog, match="line 8"):
            Catalogue(path)
