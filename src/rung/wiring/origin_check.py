"""Host and origin checks of local HTTP servers: against DNS rebinding and against requests of other sites' pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_SAME_SITE: Final = (None, "same-origin", "none")  # values of Sec-Fetch-Site; browsers send `none` for a typed address


class OriginRefusal(NamedTuple):
    """HTTP status and reason of a refused request."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginCheck:
    """Names under which a server is reached, and the pages that may send requests to it."""

    hosts: frozenset[str]  # in lower case
    allow_ip_hosts: bool = False  # accept IP addresses as Host: unlike names, they cannot be DNS-rebound
    origins: frozenset[str] = frozenset()  # foreign origins whose pages may send requests
    hint: str = ""  # what to do about an unknown host

    def refusal(self, host: str, origin: str | None, fetch_site: str | None) -> OriginRefusal | None:
        """Return why a request is refused, from its headers Host, Origin and Sec-Fetch-Site; None if it is not."""
        name = _host_name(host)
        if name not in self.hosts and not (self.allow_ip_hosts and _is_address(name)):
            return OriginRefusal(421, f"unknown host {host[:100]!r}{self.hint}")
        if origin is None and fetch_site in _SAME_SITE:
            return None
        if origin is not None and origin in self.origins:
            return None
        if fetch_site not in _SAME_SITE:
            return OriginRefusal(403, "cross-origin request rejected")
        if _authority(origin or "") != host.lower():
            return OriginRefusal(403, f"cross-origin request from {(origin or '')[:100]!r} rejected")
        return None


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    """Return the name in a Host header, in lower case; empty if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
