"""Bodies of Claude on the platforms of other providers: Messages with the model in the path and the version in the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.gateway.upstream.provider import MESSAGES_API, family_headers, parse_request
from rung.wires.wire_json import dump_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    Headers = list[tuple[bytes, bytes]]

_BETA: Final = b"anthropic-beta"
_VERSION: Final = b"anthropic-version"


def claude_body(body: bytes, *, version: str, betas: Sequence[str] = (), keeps_stream: bool = False) -> bytes:
    """Return a Messages body for a path that names the model. A version or betas that the body has stay."""
    parsed = parse_request(body)
    parsed.pop("model", None)
    if not keeps_stream:
        parsed.pop("stream", None)
    parsed.setdefault("anthropic_version", version)
    if betas:
        parsed.setdefault("anthropic_beta", list(betas))
    return dump_json(parsed)


def requested_betas(headers: Headers, allowed: Sequence[str] | None) -> list[str]:
    """Return the betas that a client asks for, in its order; only the allowed ones, if the settings name any."""
    values = [value.decode("latin-1") for name, value in headers if name == _BETA]
    betas = [beta.strip() for value in values for beta in value.split(",") if beta.strip()]
    return betas if allowed is None else [beta for beta in betas if beta in allowed]


def claude_headers(headers: Headers, betas: Sequence[str]) -> Headers:
    """Return the headers for a platform: with these betas, and without the version, which is in the body."""
    kept = [each for each in family_headers(headers, MESSAGES_API) if each[0] not in (_BETA, _VERSION)]
    return [*kept, (_BETA, ",".join(betas).encode("latin-1"))] if betas else kept
