"""Certificates for TLS tests, made with openssl: a CA, a server and a client that it signed."""

from __future__ import annotations

import ssl
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Certificates(NamedTuple):
    """Paths of PEM files; `server` and `client` hold a certificate and its key."""

    ca: Path
    server: Path
    client: Path

    def server_context(self, *, wants_client: bool = False) -> ssl.SSLContext:
        """Return the TLS settings of a server, which may require a client certificate of the same CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context


def make_certificates(folder: Path, *names: str) -> Certificates:
    """Make the certificates; the server's is for these host names."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *new, "-subj", "/CN=Test CA", "-keyout", "ca.key", "-out", "ca.pem")
    for who, subject in (("server", names), ("client", ("rung",))):
        signed = (
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-addext",
            "subjectAltName=" + ",".join(f"DNS:{name}" for name in subject),
        )
        openssl(
            "req", "-x509", *new, *signed, "-subj", f"/CN={subject[0]}", "-keyout", f"{who}.key", "-out", f"{who}.crt"
        )
        parts = [(folder / f"{who}.{kind}").read_text() for kind in ("key", "crt")]
        (folder / f"{who}.pem").write_text("".join(parts))
    return Certificates(folder / "ca.pem", folder / "server.pem", folder / "client.pem")
