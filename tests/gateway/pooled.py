"""Test rig: a gateway with a pool of keys, whose upstream answers by the key that it got."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.gateway.scripted import Scripted, completion, refused, whole
from tests.security.upstream.raw_upstream import RawUpstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS = {"KEY_A": "sk-pool-aaaaaaaa", "KEY_B": "sk-pool-bbbbbbbb", "KEY_C": "sk-pool-cccccccc"}
OK = whole(completion("fine"))
LIMITED = refused(
    "429 Too Many Requests", {"message": "Rate limit reached", "code": "rate_limit_exceeded"}, "retry-after: 30"
)
SHORTLY = refused(
    "429 Too Many Requests", {"message": "Rate limit reached", "code": "rate_limit_exceeded"}, "retry-after: 1"
)
EMPTY = refused("429 Too Many Requests", {"message": "You exceeded your current quota", "code": "insufficient_quota"})
REFUSED = refused("401 Unauthorized", {"message": "Incorrect API key provided", "code": "invalid_api_key"})
BROKEN = refused("500 Internal Server Error", {"message": "server had an error", "type": "server_error"})


def key_of(request: bytes) -> str:
    """The name of the variable whose key a request carries."""
    found = re.search(rb"sk-pool-[a-c]+", request)
    return next((name for name, value in KEYS.items() if found and value.encode() == found[0]), "")


@contextmanager
def pool(answer: Callable[[str], bytes], names: str = "ABC", **settings: Any) -> Iterator[Scripted]:
    """A gateway with a pool of keys, whose upstream answers by key."""
    with RawUpstream(lambda request: answer(key_of(request)), close=True) as upstream:
        row = {"wire": "openai", "url": upstream.url, "key_envs": [f"KEY_{name}" for name in names]}
        with Scripted(upstreams={"main": row}, **settings) as front:
            front.upstream = upstream
            yield front


def asked(front: Scripted) -> str:
    """The keys that the upstream got, in order."""
    return "".join(key_of(request)[-1] for request in front.upstream.requests)


def ask(front: Scripted, text: str = "hello", model: str = "small", *, stream: bool = False) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": stream}
    with front.http() as client:
        return client.post("/v1/chat/completions", json=body)
