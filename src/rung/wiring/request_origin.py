"""Checks of Host, Origin and Sec-Fetch-Site: which web pages may talk to a local server."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s\[\]:@/\\?#]+))(?::[0-9]{1,5})?")
_SAME_ORIGIN: Final = ("same-origin", "none")  # "none": opened by the user, not by a page


class OriginRejection(NamedTuple):
    """HTTP status and reason for rejecting a request."""

    status: int
    detail: str


def check_host(host: str, hosts: Container[str], *, allow_ip_hosts: bool = False) -> OriginRejection | None:
    """Reject a Host header that names another server: a web page may point its own name here (DNS rebinding).

    `hosts` are names in lower case. IP addresses cannot be rebound, so that `allow_ip_hosts` may accept all of them.
    """
    match = _HOST.fullmatch(host)
    name = (match[1] or match[2]).lower() if match is not None else ""
    if name in hosts or (allow_ip_hosts and _is_address(name)):
        return None
    return OriginRejection(421, f"unknown host {host[:100]!r}")


def check_origin(host: str, origin: str | None, fetch_site: str | None) -> OriginRejection | None:
    """Reject a request that a browser sends for a page of another origin; absent headers are no browser's."""
    if fetch_site is not None and fetch_site not in _SAME_ORIGIN:
        return OriginRejection(403, f"cross-origin request ({fetch_site[:20]}) rejected")
    if origin is not None and origin.lower() not in {f"http://{host}".lower(), f"https://{host}".lower()}:
        return OriginRejection(403, f"cross-origin request from {origin[:100]!r} rejected")
    return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
