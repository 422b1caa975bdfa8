import tomllib

from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.ingest.security.tokens import TokenFile


def test_a_printed_entry_is_a_token_file(tmp_path):
    result = CliRunner().invoke(
        app, ["token", "vehicles", "--push", "reports/*", "--push", "alarms", "--days", "3"]
    )
    assert result.exit_code == 0
    path = tmp_path / "tokens.toml"
    path.write_text(result.stdout)
    secret = result.stderr.strip()
    rights = TokenFile(path).rights(secret)
    assert rights.push == ("reports/*", "alarms")
    assert not rights.administer
    assert secret not in result.stdout
    assert tomllib.loads(result.stdout)["token"][0]["name"] == "vehicles"


def test_a_name_that_would_break_the_file_is_a_usage_error():
    result = CliRunner().invoke(app, ["token", "a'\nb"])
    assert result.exit_code == 2
