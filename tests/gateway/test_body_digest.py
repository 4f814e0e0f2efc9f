"""Digests of request bodies."""

from __future__ import annotations

import json

import httpx
import pytest

from rung.gateway.body_rewriter import body_digest
from tests.gateway.behind import Behind


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": 1, "b": [2]}', b'{"b":[2],"a":1}', True),
        (b'{"a": "\\u00e9"}', '{"a":"é"}'.encode(), True),
        (b'{"a":1}', b'{"a":2}', False),
        (b"not json", b"not  json", False),
    ],
)
def test_a_body_is_its_meaning(one: bytes, other: bytes, same: bool) -> None:
    """The same JSON written otherwise is the same request, so a repair that changes nothing is not sent again."""
    assert (body_digest(one) == body_digest(other)) is same


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")], ids=["spaces", "compact"])
def test_a_rejected_request_is_sent_once(separators: tuple[str, str]) -> None:
    """A 400 that no repair of the history can help is sent once, whether or not the client writes spaces into its JSON."""
    asked = {"model": "small", "max_tokens": 400, "messages": [{"role": "user", "content": "count to 4 as a"}]}
    with Behind([{"fault": "bad_request"}]) as behind:
        headers = {"x-api-key": "any", "anthropic-version": "2023-06-01", "content-type": "application/json"}
        body = json.dumps(asked, separators=separators)
        answer = httpx.post(f"{behind.url}/v1/messages", content=body, headers=headers, timeout=60.0)
        assert (answer.status_code, behind.lab.attempts) == (400, 1)
