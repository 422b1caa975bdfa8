import subprocess

import pytest
from pyarrow import flight

from penstock.errors import BadGate, Refused
from penstock.ingest import TLS, Client, Gate, Security
from penstock.ingest.security import Access
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import Committed, GateStatusRequest, IndexTicket, NextRequest
from raw_push import RawPush, rows


def run(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A root, and certificates that it signed for the gate and for a client; and a client of another root."""
    folder = tmp_path_factory.mktemp("keys")
    elliptic = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for root in ("root", "stranger"):
        subject = ("-subj", f"/CN={root}", "-keyout", f"{root}.key", "-out", f"{root}.pem")
        run(folder, "req", "-x509", *elliptic, "-days", "2", *subject)
    for name, root in (("gate", "root"), ("client", "root"), ("other", "stranger")):
        (folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        run(folder, "req", *elliptic, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signing = ("-CA", f"{root}.pem", "-CAkey", f"{root}.key", "-CAcreateserial", "-days", "2")
        run(
            folder,
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            *signing,
            "-extfile",
            f"{name}.ext",
            "-out",
            f"{name}.pem",
        )
    return folder


def pushes(gate, **connect):
    push = RawPush(gate.address, scheme="grpc+tls", **connect)
    push.send("reports/1", 0, rows(0, 5), connect=True)
    push.finish()
    push.close()
    return push.acknowledged == {"reports/1": 5}


def test_tls(tmp_path, keys):
    security = Security(keys / "gate.pem", keys / "gate.key")
    with Gate("127.0.0.1:0", tmp_path, security=security) as gate:
        assert pushes(gate, tls_root_certs=(keys / "root.pem").read_bytes())
        with pytest.raises(flight.FlightError):
            pushes(gate, tls_root_certs=(keys / "stranger.pem").read_bytes())


def test_mutual_tls(tmp_path, keys):
    security = Security(keys / "gate.pem", keys / "gate.key", keys / "root.pem")
    root = {"tls_root_certs": (keys / "root.pem").read_bytes()}
    with Gate("127.0.0.1:0", tmp_path, security=security) as gate:
        for name, welcome in (("client", True), ("other", False)):
            own = {
                "cert_chain": (keys / f"{name}.pem").read_bytes(),
                "private_key": (keys / f"{name}.key").read_bytes(),
            }
            if welcome:
                assert pushes(gate, **root, **own)
            else:
                with pytest.raises(flight.FlightError):
                    pushes(gate, **root, **own)
        with pytest.raises(flight.FlightError):
            pushes(gate, **root)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "gate-1:7400"])
def test_an_open_address_needs_protection_or_a_waiver(tmp_path, address):
    with pytest.raises(BadGate, match="--insecure"):
        Gate(address, tmp_path)
    assert not list(tmp_path.iterdir())


def test_it_can_be_waived(tmp_path):
    Gate("0.0.0.0:0", tmp_path, security=Security(insecure=True)).stop()


def test_half_of_tls_is_refused(tmp_path):
    with pytest.raises(BadGate, match="both a certificate and its key"):
        Security(certificate=tmp_path / "gate.pem")
    with pytest.raises(BadGate, match="cannot be read"):
        Gate("127.0.0.1:0", tmp_path, security=Security(tmp_path / "no.pem", tmp_path / "no.key"))


def mutual(keys):
    return Access(TLS(keys / "root.pem", keys / "client.pem", keys / "client.key"))


def test_a_certificate_alone_deletes_and_administers_nothing(tmp_path, keys):
    """Defect 23: mutual TLS without a file gives the right to push and to read, and no other."""
    security = Security(keys / "gate.pem", keys / "gate.key", keys / "root.pem")
    with Gate("127.0.0.1:0", tmp_path, security=security) as gate:
        tls = mutual(keys).tls
        with Client(gate.address, "reports/1", "n bigint", tls=tls) as client:
            client.push([{"n": 1}])
        with Endpoint(gate.address, mutual(keys)) as endpoint:
            assert endpoint.index(IndexTicket("reports")).num_rows == 1
            for request, reason in (
                (GateStatusRequest(), "may not look at the gate"),
                (Committed("reports", "me", {"reports/1": 1}), "may not commit"),
            ):
                with pytest.raises(Refused, match=reason):
                    endpoint.ask(request)


@pytest.mark.parametrize("named", ["127.0.0.1", "somebody else"])
def test_a_certificate_has_the_rights_that_the_file_maps_to_it(tmp_path, keys, named):
    """Defect 23: the name is the first alternative name of the certificate."""
    file = tmp_path / "tokens.toml"
    file.write_text(f'[[certificate]]\nname = "{named}"\nread = ["reports/*"]\ncommit = ["reports/*"]\n')
    security = Security(keys / "gate.pem", keys / "gate.key", keys / "root.pem", file)
    with (
        Gate("127.0.0.1:0", tmp_path / "gate", security=security) as gate,
        Endpoint(gate.address, mutual(keys)) as endpoint,
    ):
        if named == "127.0.0.1":
            endpoint.ask(Committed("reports", "me", {"reports/1": 1}))
            with pytest.raises(Refused, match="may not push"):
                endpoint.ask(NextRequest(("reports/1",), claim=True))
        else:
            with pytest.raises(Refused, match="no rights for this certificate"):
                endpoint.ask(Committed("reports", "me", {"reports/1": 1}))
