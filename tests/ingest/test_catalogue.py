import pyarrow as pa
import pytest

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
    assert again.readers == {("reports", "traffic")}
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
