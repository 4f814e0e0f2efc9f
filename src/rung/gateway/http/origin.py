"""One upstream as the pool connects to it: address, proxy, TLS, request prefix, idle connections."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

from rung.core.domain.errors import AttemptError, ConfigError
from rung.core.domain.failures import Kind
from rung.gateway.http.proxy import proxy_for
from rung.gateway.http.url import parse_url

if TYPE_CHECKING:
    from rung.gateway.http.connection import UpstreamConnection
    from rung.gateway.upstream.settings import UpstreamSettings


class Origin:
    """Everything that is fixed for one upstream, with its idle connections."""

    def __init__(self, upstream: UpstreamSettings, tls: ssl.SSLContext | None) -> None:
        self.url = parse_url(upstream.url)
        self.tls = tls
        self.proxy = proxy_for(self.url)
        self.lines = [b"host: %b\r\n" % self.url.authority.encode()]  # of every request
        self.prefix = ""  # of a request target
        if self.proxy is not None and tls is None:  # the proxy forwards requests in plain HTTP
            self.prefix = f"http://{self.url.authority}"
            self.lines += [self.proxy.header] if self.proxy.header else []
        self.idle: list[UpstreamConnection] = []

    def target(self, target: str) -> bytes:
        """Return the target of a request line."""
        try:
            return (self.prefix + self.url.target(target)).encode("latin-1")
        except ValueError as error:
            raise AttemptError(f"invalid request target; must be {error}", finding=Kind.INVALID_REQUEST) from None

    def take_idle(self) -> UpstreamConnection | None:
        """Return the most recently used open connection; None if there is none."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_open and not connection.transport.is_closing():
                return connection
        return None


def tls_context(upstream: UpstreamSettings) -> ssl.SSLContext | None:
    """Return the TLS settings of an upstream; None for plain HTTP. Raise ConfigError for a file that cannot be used."""
    if not upstream.url.startswith("https:"):
        return None
    where = f"gateway.upstreams.{upstream.name}."
    key, file = (
        (where + "tls_ca_file", upstream.tls_ca_file)
        if upstream.tls_ca_file
        else ("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE"))
    )
    try:
        context = ssl.create_default_context(cafile=upstream.tls_ca_file or None)
        if file:
            context.load_verify_locations(file)  # create_default_context ignores a missing SSL_CERT_FILE
    except OSError as error:
        raise ConfigError(key, file, f"a file with CA certificates in PEM format ({error.strerror or error})") from None
    if upstream.tls_cert_file:
        try:  # an empty password: never ask for one on the terminal
            context.load_cert_chain(upstream.tls_cert_file, upstream.tls_key_file or None, password="")
        except OSError as error:
            allowed = "a PEM file with a certificate and its private key, which has no password"
            raise ConfigError(
                where + "tls_cert_file", upstream.tls_cert_file, f"{allowed} ({error.strerror or error})"
            ) from None
    return context
