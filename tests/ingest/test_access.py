import pytest

from ingest.certificates import root, signed
from ingest.held import numbers
from penstock.errors import GateAway, IngestError, Refused
from penstock.ingest import TLS, Client, Connection, Directory, Gate, Security
from penstock.ingest.gate.process import Heartbeat
from penstock.ingest.security.access import Access
from penstock.ingest.security.tokens import hash_of

SCHEMA = "n bigint"
SECRET = "pst_open-sesame"


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    return root(folder), signed(folder, "gate"), signed(folder, "client")


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens.toml"
    file.write_text(f'[[token]]\nname = "cars"\nsha256 = "{hash_of(SECRET)}"\npush = ["r/*"]\n')
    return file


def test_tls_is_spoken_with_those_who_trust_the_gate(tmp_path, certified):
    roots, (certificate, key), _ = certified
    with Gate("127.0.0.1:0", tmp_path / "gate", security=Security(certificate, key)) as gate:
        with Client(gate.address, "r/a", SCHEMA, tls=TLS(roots)) as client:
            client.push(numbers(0, 3))
            client.flush(120)
            assert client.acknowledged == 3
        for tls in (None, TLS()):
            with pytest.raises(GateAway):
                Client(gate.address, "r/a", SCHEMA, tls=tls)


def test_mutual_tls_asks_for_a_certificate(tmp_path, certified):
    roots, (certificate, key), own = certified
    security = Security(certificate, key, client_roots=roots)
    with Gate("127.0.0.1:0", tmp_path / "gate", security=security) as gate:
        with Client(gate.address, "r/a", SCHEMA, tls=TLS(roots, *own)) as client:
            client.push(numbers(0, 3))
            client.flush(120)
        with pytest.raises(GateAway):
            Client(gate.address, "r/a", SCHEMA, tls=TLS(roots))


def push_and_flush(client):
    """Either of the two raises what the stream failed with, by when the gate has answered."""
    client.push(numbers(0, 3))
    client.flush(120)


def test_a_token_opens_its_streams_only(tmp_path, tokens, monkeypatch):
    with Gate("127.0.0.1:0", tmp_path / "gate", security=Security(tokens=tokens)) as gate:
        with pytest.raises(Refused, match="no token"):
            Client(gate.address, "r/a", SCHEMA)
        with pytest.raises(Refused, match="not known here"):
            Client(gate.address, "r/a", SCHEMA, token="pst_wrong")
        monkeypatch.setenv("PENSTOCK_TOKEN", SECRET)
        with Connection(gate.address) as connection:
            with Client(connection, "r/a", SCHEMA) as client:
                client.push(numbers(0, 3))
                client.flush(120)
            other = Client(connection, "q/a", SCHEMA, sequence=0)
            with pytest.raises(Refused, match="may not push to stream 'q/a'"):
                push_and_flush(other)


def test_a_directory_asks_for_tokens_too(tokens, gate):
    with Directory("127.0.0.1:0", security=Security(tokens=tokens)) as directory:
        directory.register(gate.address)
        with Client(directory.address, "r/a", SCHEMA, token=SECRET) as client:
            client.push(numbers(0, 3))
        for token, stream, reason in [(None, "r/a", "no token"), (SECRET, "q/a", "may not push to stream")]:
            with pytest.raises(Refused, match=reason):
                Client(directory.address, stream, SCHEMA, token=token)


def test_a_secret_is_in_no_text(gate):
    with Client(gate.address, "r/a", SCHEMA, token=SECRET) as client:
        shown = [repr(each) for each in (client, client._connection, Access(token=SECRET))]
    with pytest.raises(GateAway) as error:
        Client("127.0.0.1:1", "r/a", SCHEMA, token=SECRET)
    assert not any(SECRET in text for text in [*shown, str(error.value), repr(error.value)])


def test_what_cannot_be_a_token_or_a_certificate_is_said(tmp_path):
    with pytest.raises(IngestError, match="characters that no token has"):
        Access(token="two words")
    with pytest.raises(IngestError, match="needs both files"):
        TLS(certificate=tmp_path / "own.pem")
    with pytest.raises(IngestError, match="give a file in PEM form"):
        Connection("127.0.0.1:1", tls=TLS(tmp_path / "none.pem"))


def test_gates_register_with_a_controller_that_asks_for_tls_and_a_token(tmp_path, certified):
    roots, own, _ = certified
    file = tmp_path / "tokens.toml"
    file.write_text(f'[[token]]\nname = "gates"\nsha256 = "{hash_of(SECRET)}"\nadminister = true\n')
    security = Security(*own, client_roots=roots, tokens=file)
    with (
        Directory("127.0.0.1:0", security=security) as directory,
        Gate("127.0.0.1:0", tmp_path / "gate") as gate,
    ):
        Heartbeat(directory.address, gate, Access(TLS(roots, *own), SECRET)).leave()
        assert [(one["gate"], one["info"]["draining"]) for one in directory.gates()] == [(gate.address, True)]
