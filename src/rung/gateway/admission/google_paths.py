"""Paths of Google's API, and the credentials that its clients may put into the query of a URL.

A URL is logged and stored in more places than a header. A credential in the query is therefore moved into the header that
means the same as soon as a request comes in, so that nothing else has to know that it can be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from rung.wires.gemini_path import parse_path

if TYPE_CHECKING:
    Scope = dict[str, Any]

_PREFIXES: Final = ("/v1beta", "/v1alpha", "/upload/v1")
_HEADERS: Final = {b"key": (b"x-goog-api-key", b""), b"access_token": (b"authorization", b"Bearer ")}


def is_google_path(path: str) -> bool:
    """Return whether only Google's API has such a path."""
    return path.startswith(_PREFIXES) or parse_path(path) is not None


def may_have_key(path: str) -> bool:
    """Return whether a request to a path may have a key in its query. Google's list of models looks like that of others."""
    return is_google_path(path) or path.startswith("/v1/models")


def with_header_credentials(scope: Scope) -> Scope:
    """Return the request with the credentials of its query in headers. A header that the client has sent itself wins."""
    pairs: list[bytes] = scope["query_string"].split(b"&")
    kept = [pair for pair in pairs if _name(pair) not in _HEADERS]
    if len(kept) == len(pairs):
        return scope
    headers = list(scope["headers"])
    for pair in pairs:
        header, prefix = _HEADERS.get(_name(pair), (b"", b""))
        value = unquote_to_bytes(pair.partition(b"=")[2].replace(b"+", b" ")).strip()
        if (
            header
            and value.isascii()
            and value.decode().isprintable()
            and not any(name == header for name, _ in headers)
        ):
            headers.append((header, prefix + value))
    return {**scope, "query_string": b"&".join(kept), "headers": headers}


def _name(pair: bytes) -> bytes:
    return unquote_to_bytes(pair.partition(b"=")[0]).lower()
