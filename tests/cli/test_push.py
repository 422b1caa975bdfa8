import re

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ingest.held import held, whole
from penstock.cli.app import app
from penstock.errors import BadSource, IngestError
from penstock.ingest import Gate


@pytest.fixture
def gate(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "gate") as one:
        yield one.address


def push(*arguments):
    result = CliRunner().invoke(app, ["push", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_file_is_pushed_once_however_often_one_tries(tmp_path, gate, ending):
    table, file = pa.table({"n": range(1000)}), tmp_path / f"rows.{ending}"
    match ending:
        case "parquet":
            pq.write_table(table, file)
        case "csv":
            pyarrow.csv.write_csv(table, file)
        case _:
            file.write_text("".join(f'{{"n": {n}}}\n' for n in range(1000)))
    for pushed in ("1,000", "0"):
        result = push(file, "--stream", "r/a", "--to", gate)
        assert result.stdout == "schema: `n` bigint\n"
        assert f"{pushed} rows of r/a acknowledged" in result.stderr
    assert whole([gate], "r")["r/a"] == list(range(1000))
    push(file, "--stream", "r/a", "--to", gate, "--append", "--rate", "5000")
    assert whole([gate], "r")["r/a"] == list(range(1000)) * 2


def test_the_city_comes_as_one_stream_for_each_vehicle(gate):
    result = push("--city", "--streams", 10, "--rate", 200, "--seconds", 1, "--to", gate)
    rows, streams = re.search(r"([\d,]+) rows of (\d+) streams acknowledged", result.stderr).groups()
    assert int(rows) >= 20
    assert 1 < int(streams) <= 10


def test_what_is_missing_is_said(tmp_path, gate):
    for arguments, error, reason in [
        ([], IngestError, "either a FILE to push or --city"),
        ([tmp_path / "none.csv", "--stream", "r/a", "--to", gate], BadSource, "no file"),
        ([__file__, "--stream", "r/a", "--to", gate], BadSource, "ends in '.py'"),
        ([__file__, "--to", gate], IngestError, "name it with --stream"),
    ]:
        with pytest.raises(error, match=reason):
            push(*arguments)
    assert held([gate], "r") == {}
