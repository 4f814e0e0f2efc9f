"""Bodies of Claude on the platforms of other providers: Messages with the model in the path and the version in the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.gateway.upstream.provider import MESSAGES_API, family_headers, parse_request
from rung.wires.wire_json import dump_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

_BETA: Final = b"anthropic-beta"
_VERSION: Final = b"anthropic-version"
# Vertex rejects a request with any other beta. `betas` of the upstream replaces this list.
_VERTEX_BETAS: Final = (
    "compact-2026-01-12", "compact-2026-09-04", "computer-use-2025-01-24", "computer-use-2025-11-24",
    "context-1m-2025-08-07", "context-management-2025-06-27", "interleaved-thinking-2025-05-14",
    "tool-search-tool-2025-10-19", "web-search-2025-03-05",
)  # fmt: skip


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


def accepted_betas(upstream: UpstreamSettings) -> tuple[str, ...] | None:
    """Return the betas that an upstream may be asked for: those of its settings, else those of its platform; None: all."""
    return _VERTEX_BETAS if upstream.betas is None and upstream.type == "vertex" else upstream.betas


def beta_headers(headers: Headers) -> Headers:
    """Return the headers that name betas."""
    return [each for each in headers if each[0] == _BETA]


def requested_betas(headers: Headers, allowed: Sequence[str] | None) -> list[str]:
    """Return the betas that a client asks for, in its order; only the allowed ones, if the settings name any."""
    values = [value.decode("latin-1") for name, value in headers if name == _BETA]
    betas = [beta.strip() for value in values for beta in value.split(",") if beta.strip()]
    return betas if allowed is None else [beta for beta in betas if beta in allowed]


def removed_betas(headers: Headers, sent: Sequence[str]) -> tuple[str, ...]:
    """Return the betas that a client asks for and an upstream is not asked for."""
    return tuple(beta for beta in dict.fromkeys(requested_betas(headers, None)) if beta not in sent)


def claude_headers(headers: Headers, betas: Sequence[str]) -> Headers:
    """Return the headers for a platform: with these betas, and without the version, which is in the body."""
    kept = [each for each in family_headers(headers, MESSAGES_API) if each[0] not in (_BETA, _VERSION)]
    return [*kept, (_BETA, ",".join(betas).encode("latin-1"))] if betas else kept
