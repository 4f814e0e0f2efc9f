"""Webhook requests: never to this machine or a cloud's metadata service unless allowed, and never redirected."""

from __future__ import annotations

import http.client
import urllib.request
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

TIMEOUT_SECONDS: Final = 10.0
METADATA_ADDRESSES: Final = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"))
)  # of clouds that do not use a link-local address
_ALLOWED: Final = "an http or https URL of another machine, or of a host allowed with `rung serve --allow-webhook`"


def check_webhook(url: str, allowed_hosts: Container[str] = ()) -> str:
    """Return the host of a webhook URL; raise ConfigError if the URL is invalid or names a forbidden address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 and parts.username is None else None
    except ValueError:
        raise ConfigError("webhook", url, _ALLOWED) from None
    if not host or parts.scheme not in ("http", "https"):
        raise ConfigError("webhook", url, _ALLOWED)
    if host not in allowed_hosts and (host == "localhost" or _is_forbidden(host)):
        raise ConfigError("webhook", url, _ALLOWED)
    return host


def post_webhook(
    url: str,
    body: bytes,
    allowed_hosts: Container[str] = (),
    *,
    headers: Mapping[str, str] | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> None:
    """POST JSON to a webhook. The address is checked after the name was resolved, on the connection that is used.

    Raises HTTPError unless the answer is a success.
    """
    host = check_webhook(url, allowed_hosts)
    handlers: list[Any] = [_NoRedirect]
    if host not in allowed_hosts and not _is_proxied(url, host):  # a proxy resolves the name itself
        handlers += [_CheckedHTTPHandler, _CheckedHTTPSHandler]
    sent = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, body, sent, method="POST")  # noqa: S310  # the scheme is checked
    with urllib.request.build_opener(*handlers).open(request, timeout=seconds):
        pass


def _is_proxied(url: str, host: str) -> bool:
    return urlsplit(url).scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host)


def _is_forbidden(address: str) -> bool:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False  # a name: checked when it is resolved
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found.sixtofour or found
    special = found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast
    return special or found in METADATA_ADDRESSES


def _check_peer(connection: http.client.HTTPConnection) -> None:
    address = connection.sock.getpeername()[0]
    if _is_forbidden(address):
        connection.close()
        raise ConfigError("webhook", f"{connection.host} ({address})", _ALLOWED)


class _CheckedHTTPConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _check_peer(self)


class _CheckedHTTPSConnection(http.client.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _check_peer(self)


class _CheckedHTTPHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CheckedHTTPConnection, req)


class _CheckedHTTPSHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CheckedHTTPSConnection, req)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: its target may be any address."""

    def redirect_request(self, *_: Any) -> None:
        return None
