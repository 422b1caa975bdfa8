import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock_lab.cli.reproduce import _named
from penstock_lab.errors import UnknownExperiment

KNOWN = ["003", "000/12", "000/13", "002/7a", "002/7e"]


@pytest.mark.parametrize(
    ("given", "named"),
    [("003", ["003"]), ("000/13", ["000/13"]), ("000", ["000/12", "000/13"]), ("002", ["002/7a", "002/7e"])],
)
def test_an_id_names_an_experiment_and_a_number_a_whole_paper(given, named):
    assert _named(given, KNOWN) == named


@pytest.mark.parametrize("given", ["00", "002/7", "004"])
def test_the_beginning_of_an_id_names_nothing(given):
    with pytest.raises(UnknownExperiment, match="002/7a"):
        _named(given, KNOWN)


def test_an_experiment_on_real_data_asks_for_its_file():
    result = CliRunner().invoke(app, ["reproduce", "000/2"])
    assert result.exit_code != 0
    assert "--trace" in str(result.exception) + result.output
