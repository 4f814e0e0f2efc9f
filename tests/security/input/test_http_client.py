"""The HTTP client's reader withstands any bytes, and reads the same from them however they are cut."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rung.gateway.http.url import parse_url
from tests.security.input.http_reader import ReadResponse, read_response

BODIES = st.binary(max_size=40) | st.sampled_from([b"{}", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", bytes(300)])
ENCODINGS: dict[str, Any] = {
    "": lambda body: body,
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "x-gzip": lambda body: gzip.compress(body[:3]) + gzip.compress(body[3:]),
    "deflate": zlib.compress,
}


@st.composite
def responses(draw: st.DrawFn) -> tuple[bytes, ReadResponse]:
    """Draw a valid response as bytes, and what it means."""
    status = draw(st.sampled_from([200, 201, 204, 304, 400, 404, 429, 500, 529, 599]))
    body = b"" if status in {204, 304} else draw(BODIES)
    encoding = draw(st.sampled_from(sorted(ENCODINGS)))
    data: bytes = ENCODINGS[encoding](body) if body else b""
    names = st.sampled_from([b"x-a", b"retry-after", b"set-cookie", b"content-type"])
    headers = draw(
        st.lists(st.tuples(names, st.sampled_from([b"1", b"a b", b"text/event-stream", b"\xff"])), max_size=3)
    )
    headers += [(b"content-encoding", encoding.encode())] if encoding else []
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if framing == "length":
        headers.append((b"content-length", str(len(data)).encode()))
    elif framing == "chunked" and status not in {204, 304}:
        headers.append((b"transfer-encoding", b"chunked"))
        cut = draw(st.integers(0, len(data)))
        trailers = draw(st.sampled_from([b"", b"x-trailer: 1\r\n"]))
        chunks = b"".join(
            b"%x%b\r\n%b\r\n" % (len(part), draw(st.sampled_from([b"", b";a=b"])), part)
            for part in (data[:cut], data[cut:])
            if part
        )
        data = chunks + b"0\r\n" + trailers + b"\r\n"
    informational = draw(
        st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"])
    )
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return informational + b"HTTP/1.1 %d Text\r\n%b\r\n%b" % (status, lines, data), ReadResponse(status, headers, body)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """Draw a response with some bytes replaced, removed or inserted; or any bytes."""
    data = bytearray(draw(responses())[0])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = at + draw(st.integers(0, 4))
        data[at:end] = draw(
            st.binary(max_size=4) | st.sampled_from([b"\r\n", b"\n", b"\r\n\r\n", b"0", b"-1", b": ", b"\0"])
        )
    return draw(st.just(bytes(data)) | st.binary(max_size=60))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return the data in pieces."""
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


CUTS = st.lists(st.integers(0, 400), max_size=8)


@given(responses(), CUTS)
def test_every_valid_response(response: tuple[bytes, ReadResponse], places: list[int]) -> None:
    """A response in any framing and encoding, cut anywhere, is read as what was sent."""
    data, expected = response
    assert asyncio.run(read_response(cut(data, places))) == expected


@given(broken(), CUTS, st.booleans())
@example(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", [38], True)  # HEAD, answered with a body
def test_any_bytes(data: bytes, places: list[int], is_head_request: bool) -> None:
    """Broken responses end in a response or a refusal, the same for every cut; the reader never fails itself."""
    whole = asyncio.run(read_response([data], is_head_request=is_head_request))
    assert asyncio.run(read_response(cut(data, places), is_head_request=is_head_request)) == whole
    assert whole is None or 200 <= whole.status < 600


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx : 1\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_ambiguous_framing_is_refused(data: bytes) -> None:
    """A response whose end two readers could see at different places is refused."""
    assert asyncio.run(read_response([data])) is None


URL_PARTS = st.sampled_from(
    [
        "http",
        "https",
        "://",
        ":",
        "/",
        "//",
        "@",
        "#",
        "?",
        "[",
        "]",
        "::1",
        "%",
        "%2e",
        "..",
        ".",
        "a",
        "é",
        "1",
        "99999",
        "\\",
        " ",
        "\0",
        "\n",
        "-",
        "_",
    ]
)


@given(st.lists(URL_PARTS, max_size=10).map("".join).map("http://".__add__) | st.text(max_size=20))
def test_any_url(text: str) -> None:
    """Any text is a URL whose parts are safe in a request, or refused."""
    try:
        url = parse_url(text)
    except ValueError:
        return
    assert parse_url(str(url)) == url
    assert 1 <= url.port <= 65_535
    assert not set(url.authority) & set(" /?#@\\\r\n\0%")
    assert not set(url.target("/v1/x?y=1")) & set(" #\r\n\0")
