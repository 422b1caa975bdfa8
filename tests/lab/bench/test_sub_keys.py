import gzip
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import BadSource
from penstock_lab.bench.sub_key_data import SubKeyData
from penstock_lab.bench.sub_keys import Digest


def test_keys_are_skewed_and_the_same_for_the_same_seed(tmp_path):
    data = SubKeyData(rows=5000, epochs=2, seed=3)
    tables = [pq.read_table(each) for each in sorted(data.write(tmp_path / "a").iterdir())]
    counts = np.sort([each["counts"] for each in tables[0]["key"].value_counts().to_pylist()])
    assert counts[-1] > 0.3 * 5000
    again = pq.read_table(data.write(tmp_path / "b") / "epoch-0001.parquet")
    assert again == tables[1]
    assert tables[1]["time"][0].as_py() > tables[0]["time"][-1].as_py()


def test_real_keys_are_taken_in_their_order(tmp_path):
    file = tmp_path / "keys.txt.gz"
    file.write_bytes(gzip.compress(b"".join(b"%d\n" % (key - 5) for key in range(20))))
    folder = SubKeyData(8, 2, 0, file).write(tmp_path / "data")
    assert pq.read_table(folder / "epoch-0001.parquet")["key"].to_pylist() == [str(k) for k in range(3, 11)]
    with pytest.raises(BadSource, match="has 20 keys, 3 epochs of 8 rows need 24"):
        SubKeyData(8, 3, 0, file).write(tmp_path / "more")
    with pytest.raises(BadSource, match="no file"):
        SubKeyData(8, 3, 0, tmp_path / "none").write(tmp_path / "none")


def test_the_costly_aggregate_merges_to_the_same():
    values, groups = pa.array(range(10)), np.array([0, 1] * 5)
    whole = Digest("v").accumulate(groups, 2, values)
    parts = [
        Digest("v").accumulate(groups[at], 2, values.take(at)) for at in (np.arange(4), np.arange(4, 10))
    ]
    assert Digest("v").merge(*parts).equals(whole)


@pytest.mark.soak
def test_sub_keys_are_even_on_a_cluster():
    command = "from penstock.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "bench", "subkeys", "--quick", "--epochs", "3", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    rows, _, results = report["checks"]
    assert (rows["ok"], results["ok"]) == (True, True)
    assert [row["way"] for row in report["rows"]] == ["plain hash", "consistent hash", "sub-keys"]
