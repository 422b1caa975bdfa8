"""Certificates made with the openssl command: a root, and what it signs for 127.0.0.1."""

import subprocess

EXTENSIONS = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"


def root(folder):
    folder.mkdir(parents=True, exist_ok=True)
    key, certificate = folder / "root.key", folder / "root.pem"
    _openssl(
        "req", "-x509", *_NEW_KEY, "-keyout", key, "-out", certificate, "-subj", "/CN=root", "-days", "2"
    )
    return certificate


def signed(folder, name):
    key, request, certificate = (folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
    extensions = folder / f"{name}.ext"
    extensions.write_text(EXTENSIONS)
    _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    by = ("-CA", folder / "root.pem", "-CAkey", folder / "root.key", "-CAcreateserial")
    _openssl("x509", "-req", "-in", request, *by, "-out", certificate, "-days", "2", "-extfile", extensions)
    return certificate, key


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
