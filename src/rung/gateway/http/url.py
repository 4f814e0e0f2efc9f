"""URLs of upstreams and proxies, checked before anything connects to them, and the request targets below them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MAX_HOST_CHARACTERS: Final = 253
_HOST: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_DOT_SEGMENT: Final = re.compile(r"(?:^|[/\\])(?:\.|%2e){1,2}(?:$|[/\\])", re.IGNORECASE)
_WITHOUT_V1: Final = re.compile(r"/v1$|/openai/deployments/[^/]+$")  # below an Azure deployment there is no /v1

_GOOGLE_VERSIONS: Final = ("/v1beta", "/v1alpha")
_VERSION: Final = re.compile(r"^/v1(?:beta|alpha)?(?=/)")


class HttpUrl(NamedTuple):
    """Parts of an HTTP URL; an international host name is encoded, an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def authority(self) -> str:
        """Return host and port as in a Host header: without the default port of the scheme."""
        return self.address if self.port != _DEFAULT_PORTS[self.scheme] else self.address.rpartition(":")[0]

    @property
    def address(self) -> str:
        """Return host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}" + (f"?{self.query}" if self.query else "")

    def target(self, target: str) -> str:
        """Return the request target for an API target: with the base path, without a second version, with the URL's query.

        Raise ValueError if the target would leave the base path.
        """
        path, _, query = target.partition("?")
        if "." in path or "%" in path or "\\" in path:
            check_path(path)
        if path.startswith("/v1/") and _WITHOUT_V1.search(self.path):
            path = path.removeprefix("/v1")
        elif self.path.endswith(_GOOGLE_VERSIONS):
            path = _VERSION.sub("", path)
        if self.query:
            names = {_name(pair) for pair in self.query.split("&")}
            own = [pair for pair in query.split("&") if pair and _name(pair) not in names]
            query = "&".join([*own, self.query])
        return f"{self.path}{path}?{query}" if query else self.path + path


def parse_url(text: object) -> HttpUrl:
    """Return the parts of an http or https URL; raise ValueError that says what the URL must be."""
    if not isinstance(text, str) or not text.startswith(("http://", "https://")):
        raise ValueError("a URL that begins with http:// or https://")
    if not text.isprintable() or " " in text:
        raise ValueError("a URL without spaces and control characters")
    if "#" in text:
        raise ValueError("a URL without a fragment (#)")
    try:
        parts = urlsplit(text)
        port = parts.port if parts.port is not None else _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        raise ValueError("a URL with a valid host and a port from 1 to 65535") from None
    if "@" in parts.netloc:
        raise ValueError("a URL without user and password")
    if not port:
        raise ValueError("a URL with a port from 1 to 65535")
    if not (parts.path + parts.query).isascii():
        raise ValueError("a URL with a percent-encoded path and query")
    check_path(parts.path)
    return HttpUrl(parts.scheme, _host(parts.hostname or ""), port, parts.path.rstrip("/"), parts.query)


def check_path(path: str) -> None:
    """Raise ValueError for a path with . or .. segments, encoded ones included: servers resolve them differently."""
    if _DOT_SEGMENT.search(path):
        raise ValueError("a path without . and .. segments")


def _host(name: str) -> str:
    try:
        if ":" in name and "%" not in name:
            return str(IPv6Address(name))
        host = name if name.isascii() else name.encode("idna").decode()
        if host.rpartition(".")[2].isdigit():
            return str(IPv4Address(host))
    except ValueError:
        host = ""
    if len(host) > _MAX_HOST_CHARACTERS or not _HOST.fullmatch(host):
        raise ValueError("a URL with a valid host name or IP address")
    return host


def _name(pair: str) -> str:
    return pair.partition("=")[0].lower()
