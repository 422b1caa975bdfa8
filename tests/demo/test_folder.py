import pytest

from penstock.demo.folder import fresh_folder
from penstock.errors import BadSink


def test_a_new_folder_is_made(tmp_path):
    folder = fresh_folder(tmp_path / "deep" / "demo")
    assert folder.path.is_dir()


def test_what_an_earlier_demo_left_is_deleted(tmp_path):
    folder = fresh_folder(tmp_path / "demo")
    folder.chart.touch()
    fresh_folder(tmp_path / "demo")
    assert not folder.chart.exists()


def test_an_empty_folder_is_taken(tmp_path):
    assert fresh_folder(tmp_path).path == tmp_path


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(BadSink, match="did not write"):
        fresh_folder(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "demo").touch()
    with pytest.raises(BadSink, match="is a file"):
        fresh_folder(tmp_path / "demo")
