"""Keys given out: known by their hash alone, good for one project, some models, some dollars, until some day."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from secrets import compare_digest, token_urlsafe
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewayKey

PREFIX: Final = "rung-"


class RequestRejected(Exception):  # it says what happened
    """A request that is not let in, and the status that says so; `close`: its connection is of no more use."""

    def __init__(self, status: int, message: str, *, close: bool = False) -> None:
        self.status = status
        self.close = close
        super().__init__(message)


def new_key() -> tuple[str, str]:
    """A key, and the hash by which it is known here."""
    key = PREFIX + token_urlsafe(32)
    return key, hash_of(key)


def hash_of(key: str) -> str:
    """What is kept of a key: it is long and random, so that no salt is needed."""
    return sha256(key.encode()).hexdigest()


def admit(
    keys: Sequence[GatewayKey], call: InboundRequest | None, secret: bytes, now: float, spent: Mapping[str, float]
) -> GatewayKey:
    """The key somebody has come with; the call then belongs to its project."""
    given = secret.decode("latin-1").removeprefix("Bearer ").strip()
    if not given:
        raise RequestRejected(401, "no key was given: this gateway wants one of its own")
    key = _known(keys, hash_of(given))
    if key is None or key.revoked:
        raise RequestRejected(401, "this key is not known here" if key is None else "this key was revoked")
    if key.expires and datetime.fromtimestamp(now, UTC).date().isoformat() > key.expires[:10]:
        raise RequestRejected(401, f"this key was good until {key.expires[:10]}")
    if key.dollars is not None and spent.get(key.hash, 0.0) >= key.dollars:
        raise RequestRejected(429, f"the ${key.dollars:.2f} of this key are spent (spend limit)")
    if call is not None:
        if key.models:
            model = call.parsed().get("model")
            if model not in key.models:
                raise RequestRejected(
                    403, f"this key is not for the model {model!r}: allowed is {', '.join(key.models)}"
                )
        call.key, call.models = key.hash, key.models
        call.project = key.project or call.project
        call.dollars = None if key.dollars is None else key.dollars - spent.get(key.hash, 0.0)
    return key


def _known(keys: Sequence[GatewayKey], digest: str) -> GatewayKey | None:
    found = None
    for key in keys:  # all of them, each in the same time
        if compare_digest(key.hash, digest):
            found = key
    return found
