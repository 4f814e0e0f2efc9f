"""Digests of request bodies."""

from __future__ import annotations

import pytest

from rung.gateway.body_rewriter import body_digest


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
