"""Forward proxies: which one the environment names for an upstream, and the tunnel through it.

`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` mean what they mean for curl, in either case. As in Go, loopback
addresses never use a proxy, and `NO_PROXY` may hold networks (10.0.0.0/8).
"""

from __future__ import annotations

import re
from base64 import b64encode
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote
from urllib.request import getproxies_environment

from rung.core.domain.errors import AttemptError, ConfigError
from rung.core.domain.failures import Kind
from rung.gateway.http.url import parse_url

if TYPE_CHECKING:
    import asyncio
    import socket

    from rung.gateway.http.url import HttpUrl

_MAX_HEAD_BYTES: Final = 64 * 1024
_HEAD_END: Final = b"\r\n\r\n"
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)[ \r]")
_REFUSALS: Final = {
    403: "it does not allow this host",
    407: "it requires a user and a password, as in http://user:password@proxy:3128",
}


class Proxy(NamedTuple):
    """A forward proxy that is spoken to in plain HTTP."""

    url: HttpUrl
    header: bytes  # line with the user and password of the proxy's URL; empty without them


def proxy_for(url: HttpUrl) -> Proxy | None:
    """Return the proxy for an upstream; None without one. Raise ConfigError for a proxy that cannot be used."""
    proxies = getproxies_environment()
    variable = url.scheme if url.scheme in proxies else "all"
    if variable not in proxies or _is_bypassed(url, proxies.get("no", "")):
        return None
    scheme, _, rest = proxies[variable].rpartition("://")
    userinfo, _, address = rest.partition("/")[0].rpartition("@")
    name, shown = f"{variable.upper()}_PROXY", f"{scheme}://{address}"  # without the password
    if scheme not in ("http", ""):
        raise ConfigError(name, shown, "a proxy with http://; https:// and SOCKS proxies are not supported")
    try:
        proxy_url = parse_url(f"http://{address}")
    except ValueError as error:
        raise ConfigError(name, shown, str(error)) from None
    user, _, password = userinfo.partition(":")
    secret = b64encode(f"{unquote(user)}:{unquote(password)}".encode())
    return Proxy(proxy_url, b"proxy-authorization: Basic %b\r\n" % secret if userinfo else b"")


def _is_bypassed(url: HttpUrl, no_proxy: str) -> bool:
    try:
        is_loopback = ip_address(url.host).is_loopback
    except ValueError:
        is_loopback = f".{url.host}".endswith(".localhost")
    return is_loopback or any(_matches(entry.strip().lower(), url) for entry in no_proxy.split(","))


def _matches(entry: str, url: HttpUrl) -> bool:
    """Return whether an entry of NO_PROXY is the host, a domain above it, either with the port, or its network."""
    if not entry or entry == "*":
        return bool(entry)
    try:
        return ip_address(url.host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of them is a name
        domain = "." + entry.lstrip("*.")
        return f".{url.host}".endswith(domain) or f".{url.address}".endswith(domain)


async def open_tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, proxy: Proxy, target: HttpUrl) -> None:
    """Make a connected socket to a proxy a tunnel to the target; raise AttemptError if the proxy refuses."""
    address = target.address.encode()
    await loop.sock_sendall(sock, b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (address, address, proxy.header))
    head = b""
    while _HEAD_END not in head and len(head) <= _MAX_HEAD_BYTES:
        data = await loop.sock_recv(sock, 4_096)
        if not data:
            raise ConnectionResetError(f"proxy {proxy.url.address} closed the connection")
        head += data
    match = _STATUS_LINE.match(head)
    status = int(match[1]) if match is not None else 0
    if status != 200 or not head.endswith(_HEAD_END):  # noqa: PLR2004  # HTTP
        text = f"proxy {proxy.url.address} opened no tunnel to {target.address} (status {status or 'missing'})"
        reason = _REFUSALS.get(status)
        raise AttemptError(
            f"{text}: {reason}" if reason else text, finding=Kind.CONFIGURATION if reason else Kind.NETWORK
        )
