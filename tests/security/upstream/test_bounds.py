"""An upstream cannot fill the gateway's memory, nor keep it busy, whatever it sends."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
import zlib
from functools import cache
from typing import TYPE_CHECKING

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.decoder import BodyDecoder
from tests.gateway.behind import ASK
from tests.gateway.test_connection import Place, ask, run
from tests.security.upstream.raw_upstream import Front, RawUpstream, http_answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.gateway.http.pool import ConnectionPool
    from rung.gateway.upstream.settings import UpstreamSettings

LIMIT = 1_000_000
BOMB_SIZE = 64 * 2**20
BODY = {"model": "small", "max_tokens": 100, "messages": ASK}
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"
HUNDRED_KB = b"%x\r\n%b\r\n" % (100_000, b" " * 100_000)
EVENT = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': 'x' * 50_000}}]})}\n\n".encode()


def endless(head: bytes, piece: bytes) -> Iterable[bytes]:
    """Return a response that does not end."""
    return itertools.chain([head], itertools.repeat(piece))


@cache
def bomb() -> bytes:
    """Return 64 MiB of zeros, compressed to a few hundred kilobytes."""
    return gzip.compress(bytes(BOMB_SIZE), compresslevel=1)


ENDLESS = {
    "body": (CHUNKED % b"application/json", HUNDRED_KB),
    "error": (CHUNKED.replace(b"200 OK", b"400 Bad Request") % b"application/json", HUNDRED_KB),
    "stream": (CHUNKED % b"text/event-stream", b"%x\r\n%b\r\n" % (len(EVENT), EVENT)),
    "comments": (CHUNKED % b"text/event-stream", b"64\r\n:" + b"x" * 98 + b"\n\r\n"),
    "until it closes": (b"HTTP/1.1 200 OK\r\n\r\n", b" " * 100_000),
}


@pytest.mark.parametrize("case", list(ENDLESS))
def test_an_endless_answer(case: str) -> None:
    """An answer above the limit ends with an error; it is asked for once, and its connection is closed."""
    with RawUpstream(lambda _: endless(*ENDLESS[case])) as upstream:
        with Front(openai=upstream.url, limits={"answer": LIMIT}) as front, front.http() as client:
            got = client.post("/v1/chat/completions", json={**BODY, "stream": "text" in ENDLESS[case][0].decode()})
        assert len(upstream.requests) == 1
    text = got.text.replace(" ", "")
    if case == "error":
        assert got.status_code == 400
        assert len(got.content) <= LIMIT
    else:
        assert f"answerislargerthan{LIMIT}bytes" in text
        assert len(text) < 1.2 * LIMIT


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_a_compression_bomb(path: str) -> None:
    """A small body that decompresses to much more is refused at the limit, without the memory for it."""
    answer = http_answer(bomb(), "content-encoding: gzip", "content-type: application/json")
    with RawUpstream(answer) as upstream:
        front = Front(openai=upstream.url, limits={"answer": LIMIT}, policy={"retries": 0})
        with front, front.http() as client:
            client.get("/healthz")
            tracemalloc.start()
            got = client.post(path, json=BODY) if "chat" in path else client.get(path)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert f"answer is larger than {LIMIT} bytes" in got.text
    assert peak < 30 * LIMIT


def test_a_bomb_is_decoded_in_pieces() -> None:
    """Each piece of output is bounded, and so is what one input can yield at once."""
    decoder = BodyDecoder()
    first = decoder.decode(bomb())
    assert len(first) <= 256 * 1024
    size = len(first)
    while decoder.has_more:
        size += len(decoder.decode())
    assert (size, decoder.is_complete) == (BOMB_SIZE, True)


HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "piece", "kind"),
    [
        (HEAD + b"5\r\nhello\r\n0\r\nx-trailer: ", b"x" * 65_536, Kind.STREAM_INTERRUPTED),
        (HEAD + b"5\r\nhello\r\n0\r\n", b"x-trailer: 1\r\n" * 5_000, Kind.STREAM_INTERRUPTED),
        (HEAD + b"5;", b"x" * 65_536, Kind.STREAM_INTERRUPTED),
        (b"HTTP/1.1 200 OK\r\nx: ", b"x" * 65_536, Kind.NETWORK),
        (b"HTTP/1.1 200 OK\r\n", b"x: 1\r\n" * 10_000, Kind.NETWORK),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1_000, Kind.NETWORK),
        (b"", b"HTTP/1.1 200 " + b"x" * 65_536, Kind.NETWORK),
    ],
    ids=["trailer", "trailers", "chunk extension", "header", "headers", "informational", "status line"],
)
def test_endless_framing(head: bytes, piece: bytes, kind: Kind) -> None:
    """Headers, trailers and chunk headers without an end are refused after a bounded number of bytes."""
    place = Place(head, *[piece] * 400)

    async def work(pool: ConnectionPool, there: UpstreamSettings) -> Kind:
        with pytest.raises(AttemptError) as caught:
            await ask(pool, there)
        return classify(caught.value.evidence).kind

    assert run(place, work) is kind


MEMBERS = gzip.compress(b'{"a": ') + gzip.compress(b"1") + bytes(20) + gzip.compress(b"}")


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_gzip_of_several_members(size: int) -> None:
    """All members of a gzip body are decoded, with padding between them, in pieces of any size."""
    decoder = BodyDecoder()
    parts = [decoder.decode(MEMBERS[at : at + size]) for at in range(0, len(MEMBERS), size)]
    while decoder.has_more:
        parts.append(decoder.decode())
    assert b"".join(parts) == b'{"a": 1}'
    assert decoder.is_complete


def test_members_on_a_passed_on_path() -> None:
    """A client gets all members of a compressed body."""
    with RawUpstream(http_answer(MEMBERS, "content-encoding: gzip")) as upstream:
        front = Front(openai=upstream.url)
        with front, front.http() as client:
            assert client.get("/v1/files").json() == {"a": 1}


def test_a_thousand_small_members() -> None:
    """A body of very many members is decoded completely."""
    decoder = BodyDecoder()
    parts = [decoder.decode(gzip.compress(b"ab") * 10_000)]
    while decoder.has_more:
        parts.append(decoder.decode())
    assert b"".join(parts) == b"ab" * 10_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("path", ["/v1/files", "/v1/chat/completions"])
def test_a_compressed_body_that_is_cut(path: str, encoding: str) -> None:
    """A compressed body without its end is never passed on as complete, also if HTTP says that it is."""
    whole = (gzip.compress if encoding == "gzip" else zlib.compress)(json.dumps(list(range(500))).encode())
    with RawUpstream(http_answer(whole[:-20], f"content-encoding: {encoding}")) as upstream:
        front = Front(openai=upstream.url, policy={"retries": 0})
        with front, front.http() as client:
            if "chat" in path:
                assert client.post(path, json=BODY).status_code == 502
            else:
                with pytest.raises(Exception, match=r"(?i)incomplete|disconnect|closed|peer"):
                    client.get(path)
