"""Rates and positions from files that the tests write."""

import gzip
import io
import tarfile

import numpy as np
import pytest

from penstock_lab.errors import BadData
from penstock_lab.workloads import read_positions, read_series, streams_of

CSV = "timestamp,value\n2020-01-01,3\n2020-01-02,5\n"


def test_a_csv_file_has_a_value_a_period(tmp_path):
    (tmp_path / "taxi.csv").write_text(CSV)
    assert read_series(tmp_path / "taxi.csv")["taxi.csv"].tolist() == [3, 5]


def test_an_archive_has_a_series_a_file(tmp_path):
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for name in ("a.csv", "b.csv"):
            member = tarfile.TarInfo(name)
            member.size = len(CSV)
            archive.addfile(member, io.BytesIO(CSV.encode()))
    assert {name: each.tolist() for name, each in read_series(tmp_path / "all.tar.gz").items()} == {
        "a.csv": [3, 5],
        "b.csv": [3, 5],
    }


def test_counts_a_second_are_summed_to_minutes(tmp_path):
    path = tmp_path / "requests.txt.gz"
    path.write_bytes(gzip.compress(b"1\n" * 130))
    assert read_series(path)["requests.txt.gz"].tolist() == [60, 60]


def test_streams_are_pieces_of_a_series_with_means_like_those_of_the_workloads():
    series = np.concatenate([np.zeros(5), np.arange(1.0, 101)])
    made = streams_of([series], np.random.default_rng(1), 20, streams=30)
    assert made.rows.shape == (20, 30)
    assert made.declared == {}
    means = made.rows.mean(axis=0)
    assert (means > 30).all()
    assert (means <= 350 + 1e-9).all()
    assert made.rows.max() <= 900


def test_a_file_without_rates_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,word\n")
    with pytest.raises(BadData, match="last column"):
        read_series(tmp_path / "x.csv")
    with pytest.raises(BadData, match="at least one of 9"):
        streams_of([np.ones(3)], np.random.default_rng(1), 9)


def test_positions_have_tiles_and_times(tmp_path):
    path = tmp_path / "cars.tsv"
    path.write_text(
        "1\t2007-01-01T01:00:00+00:00\t37.775\t-122.446\n"
        "2\t2007-01-01T01:00:02+00:00\t37.775\t-122.446\n"
        "1\t2007-01-01T01:00:01+00:00\t37.785\t-122.446\n"
    )
    positions = read_positions(path)
    assert positions.seconds.tolist() == [3600, 3601, 3602]
    assert positions.tiles(100).tolist() == [0, 1, 0]
    assert positions.tiles(100_000).tolist() == [0, 0, 0]


def test_a_file_without_positions_is_refused(tmp_path):
    (tmp_path / "x.tsv").write_text("1\tnoon\t37\n")
    with pytest.raises(BadData, match="separated by tabs"):
        read_positions(tmp_path / "x.tsv")
