"""Gateway keys: stored as hashes, with an optional project, model list, spend limit and expiry date."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from secrets import compare_digest, token_urlsafe
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.purses import refusal
from rung.core.policy.spend_limits import SpendLimit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.gateway.settings import GatewayKey

KEY_PREFIX: Final = "rung-"


class RequestRejected(Exception):
    """A request was rejected with this HTTP status; `close` tells whether to close its connection."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        close: bool = False,
        retry_after: int | None = None,
        should_retry: bool = False,
        code: str = "",
    ) -> None:
        self.status = status
        self.code = code  # of the error, in the client's API
        self.close = close
        self.retry_after = retry_after  # seconds
        self.should_retry = should_retry
        super().__init__(message)


def new_key() -> tuple[str, str]:
    """Return a new key and its hash."""
    key = KEY_PREFIX + token_urlsafe(32)
    return key, hash_key(key)


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key. Keys are long and random, so no salt is needed."""
    return sha256(key.encode()).hexdigest()


def authenticate(
    keys: Sequence[GatewayKey], headers: Mapping[bytes, bytes], now: float, spent: Mapping[str, float]
) -> GatewayKey:
    """Return the key of a request, from its headers alone: a body is not read for an invalid or exhausted key."""
    secret = headers.get(b"x-api-key") or headers.get(b"x-goog-api-key") or headers.get(b"authorization") or b""
    presented = secret.decode("latin-1").removeprefix("Bearer ").strip()
    if not presented:
        raise RequestRejected(401, "missing API key: this gateway requires one of its own keys")
    return usable_key(keys, hash_key(presented), now, spent)


def usable_key(keys: Sequence[GatewayKey], digest: str, now: float, spent: Mapping[str, float]) -> GatewayKey:
    """Return the key with this hash; reject one that is unknown, revoked, expired or exhausted."""
    key = _find(keys, digest)
    if key is None or key.revoked:
        raise RequestRejected(401, "unknown API key" if key is None else "key revoked")
    if key.expires and datetime.fromtimestamp(now, UTC).date().isoformat() > key.expires[:10]:
        raise RequestRejected(401, f"key expired on {key.expires[:10]}")
    if key.dollars is not None and spent.get(key.hash, 0.0) >= key.dollars:
        raise RequestRejected(429, refusal(SpendLimit("key", key.name, key.dollars, key.hash), 0.0, now))
    return key


def check_project(keys: Sequence[GatewayKey], key: GatewayKey, project: str) -> None:
    """Reject a request for a project that belongs to other keys."""
    if project and not key.project and any(each.project == project for each in keys):
        raise RequestRejected(403, f"project {project!r} is not allowed for this key: it belongs to other keys")


def check_models(key: GatewayKey, body: Mapping[str, Any]) -> None:
    """Reject a body that names a model which the key may not use: its own, in a fallback list, or of a tool."""
    if not key.models:
        return
    fallbacks, tools = body.get("models"), body.get("tools")
    tools = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    named = [body.get("model"), *(fallbacks if isinstance(fallbacks, list) else ())]
    for model in (*named, *(tool["model"] for tool in tools if "model" in tool)):
        if model not in key.models:
            raise RequestRejected(
                403, f"model {str(model)[:100]!r} is not allowed for this key; allowed: {', '.join(key.models)}"
            )


def _find(keys: Sequence[GatewayKey], digest: str) -> GatewayKey | None:
    match = None
    for key in keys:  # no early exit: the time must not depend on which key matches
        if compare_digest(key.hash, digest):
            match = key
    return match
