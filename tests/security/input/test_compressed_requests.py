"""Compressed request bodies are read within the limits of plain ones."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from tests.gateway.behind import WIRES, Behind
from tests.security.tenant.shared import ALICE, PATHS, Shared, asked, key_row

BODY = json.dumps(asked()).encode()


@pytest.mark.parametrize("wire", WIRES)
def test_a_compressed_body(wire: str) -> None:
    """A gzip or deflate body is decompressed, and reaches every upstream plain."""
    with Behind() as behind, behind.http() as client:
        for encoding, body in (("gzip", gzip.compress(BODY)), ("deflate", zlib.compress(BODY)), ("identity", BODY)):
            got = client.post(PATHS[wire], content=body, headers={"content-encoding": encoding})
            assert got.status_code == 200
            assert json.loads(behind.lab.calls[-1].body) == asked()
            assert behind.lab.calls[-1].headers.get("content-encoding", "identity") == "identity"


def test_what_cannot_be_decompressed() -> None:
    """An unknown encoding, broken data and a bomb are refused with the reason; nothing is sent."""
    bomb = gzip.compress(b"{" + b" " * 5_000_000)
    whole = gzip.compress(BODY)
    with Behind(limits={"body": 1_000_000}) as behind, behind.http() as client:
        for encoding, body, status, words in (
            ("br", BODY, 415, "allowed: gzip, deflate, identity"),
            ("gzip, gzip", BODY, 415, "not supported"),
            ("gzip", BODY, 400, "not valid gzip"),
            ("gzip", whole[:-9], 400, "not one complete gzip stream"),
            ("gzip", whole + whole, 400, "not one complete gzip stream"),
            ("gzip", bomb, 413, "larger than 1000000 bytes"),
        ):
            got = client.post("/v1/messages", content=body, headers={"content-encoding": encoding})
            assert (got.status_code, words in got.json()["error"]["message"]) == (status, True), got.text
        assert behind.attempts == 0


def test_a_compressed_body_hides_no_model() -> None:
    """A key's models bind compressed bodies, too, of model calls and of token counts."""
    body = gzip.compress(json.dumps(asked("opus")).encode())
    with Shared(keys=[key_row(ALICE, models=["cheap"])]) as behind:
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            assert behind.post(path, content=body, headers={"content-encoding": "gzip"}).status_code == 403
        assert behind.lab.requests == []
