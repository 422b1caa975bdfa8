import os
from datetime import UTC, datetime, timedelta

import pytest
from pyarrow import flight

from penstock.errors import BadToken, NotAllowed
from penstock.ingest import Gate, Security
from penstock.ingest.security.tokens import TokenFile, hash_of, new_token
from raw_push import RawPush, ask, get, rows

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def entry(name, token, rights, expires="2031-01-01T00:00:00Z"):
    return f'[[token]]\nname = "{name}"\nsha256 = "{hash_of(token)}"\n{rights}\nexpires = {expires}\n'


def bearer(token):
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


@pytest.fixture
def tokens():
    return {name: new_token() for name in ("vehicles", "query", "operator", "old")}


@pytest.fixture
def file(tmp_path, tokens):
    path = tmp_path / "tokens.toml"
    path.write_text(
        entry("vehicles", tokens["vehicles"], 'push = ["reports/*"]')
        + entry("query", tokens["query"], 'read = ["reports/*"]')
        + entry("operator", tokens["operator"], "administer = true")
        + entry("old", tokens["old"], 'push = ["*"]', "2020-01-01T00:00:00Z")
    )
    return path


@pytest.fixture
def gate(tmp_path, file):
    with Gate("127.0.0.1:0", tmp_path / "gate", security=Security(tokens=file)) as running:
        yield running


def push_with(gate, options):
    """Open a push and close it; its error may come at once or at the end."""
    push = RawPush(gate.address, options=options)
    push.close()
    if push.error:
        raise push.error


def test_a_token_gives_its_rights_and_no_others(gate, tokens):
    with RawPush(gate.address, options=bearer(tokens["vehicles"])) as push:
        push.send("reports/1", 0, rows(0, 5), connect=True)
        push.wait_for("reports/1", 5)
        push.send("alarms/1", 0, rows(0, 5), connect=True)
        assert push.answer()["refused"] == "NotAllowed"
    wanted = {"op": "read", "inlet": "reports", "ranges": [["reports/1", 0, 5]]}
    assert get(gate.address, bearer(tokens["query"]), **wanted).num_rows == 5
    with pytest.raises(flight.FlightUnauthorizedError, match="may not read"):
        get(gate.address, bearer(tokens["vehicles"]), **wanted)
    assert ask(gate.address, "suspend", bearer(tokens["operator"]), streams=["reports/1"])["suspended"]
    with pytest.raises(flight.FlightUnauthorizedError, match="may not suspend"):
        ask(gate.address, "suspend", bearer(tokens["query"]), streams=["reports/1"])


@pytest.mark.parametrize("kind", ["none", "forged", "old", "near"])
def test_nobody_else_gets_in(gate, tokens, kind):
    given = {"none": None, "forged": new_token(), "old": tokens["old"], "near": tokens["vehicles"][:-1]}[kind]
    options = bearer(given) if given else None
    with pytest.raises(flight.FlightUnauthenticatedError) as error:
        push_with(gate, options)
    assert given is None or given not in str(error.value)
    with pytest.raises(flight.FlightUnauthenticatedError):
        ask(gate.address, "status", options)


def test_a_token_taken_from_the_file_no_longer_works(gate, tokens, file):
    options = bearer(tokens["operator"])
    ask(gate.address, "status", options)
    file.write_text(entry("query", tokens["query"], 'read = ["*"]'))
    os.utime(file, (1, 1))
    with pytest.raises(flight.FlightUnauthenticatedError, match="not known"):
        ask(gate.address, "status", options)
    file.write_text("spoilt = [")
    with pytest.raises(flight.FlightUnauthenticatedError, match="cannot read its tokens"):
        ask(gate.address, "status", bearer(tokens["query"]))


def test_a_token_ends_at_its_time(file, tokens):
    times = [NOW]
    known = TokenFile(file, now=lambda: times[0])
    assert known.rights(tokens["vehicles"]).may_push("reports/1")
    times[0] = NOW + timedelta(days=365)
    with pytest.raises(NotAllowed, match="'vehicles' expired at 2031-01-01"):
        known.rights(tokens["vehicles"])


def test_the_file_holds_no_secret(file, tokens):
    assert not any(token in file.read_text() for token in tokens.values())


@pytest.mark.parametrize(
    "text", ["", "x", "[[token]]\nname = 'a'", "[[token]]\nname = 'a'\nsha256 = 'b'\npush = 3", "token = 3"]
)
def test_a_wrong_file_is_refused_at_the_start(tmp_path, text):
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(BadToken):
        TokenFile(path)
