"""Whatever is sent to the service's API, no answer is a fault of ours."""

from __future__ import annotations

import http.client
import json
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import hypothesis
from hypothesis import strategies as st

from rung.service.app import make_api
from tests.service.conftest import TOKEN

if TYPE_CHECKING:
    from tests.service.conftest import Running

EXAMPLES = int(os.environ.get("RUNG_FUZZ_EXAMPLES", "150"))
DOCUMENT = make_api().openapi()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if path != "/api/events"  # it does not end
]
DEEP = 2_000
ODD_TEXTS = (
    "", "0", "-1", "lost", "a\0b", "%", "%00", "\udcff", "é☃\U0001f600", "../../etc/passwd", "x" * 5_000, "nan", "inf", "1e999",
    "9" * 5_000, "null", "[]", "{", "\r\nx: y", "a/b//c", "\u202e", "'; DROP TABLE event; --", "\x1b[2J", "2026-13-45",
)  # fmt: skip
ODD_JSON = (
    "", "{", "null", "[]", "1", '"x"', '{"a": NaN}', '{"a": Infinity}', '"\\ud800"', "[" * DEEP, '{"settings":' * DEEP, "\0",
    "\ufeff{}", '{"toml": "' + "[" * 3_000 + '"}', '{"toml": "a=' + "9" * 5_000 + '"}', '{"toml": "' + "a." * 900 + 'a=1"}',
    '{"settings": {"retries": 1' + "0" * 400 + "}}", '{"settings": {"retries": ' + "9" * 5_000 + "}}",
    '{"settings": {"name": "\\ud800"}}', '{"settings": {"name": "\\u0000"}}', '{"settings": {"seconds": 1e308, "retries": 9}}',
)  # fmt: skip

odd_text = st.sampled_from(ODD_TEXTS) | st.text(max_size=30)
odd_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | odd_text
    | st.sampled_from([2**63, -(2**63) - 1, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
    max_leaves=6,
)


def send(url: str, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Send a request as it is: nothing is normalised on the way."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in {"authorization": f"Bearer {TOKEN}", **headers}.items():
            connection.putheader(name, value.encode("latin-1", "replace"))
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body or None)
        answer = connection.getresponse()
        return answer.status, answer.read(2_000).decode("utf-8", "replace")
    finally:
        connection.close()


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """Return a request to one of the operations, with odd values for everything that it takes."""
    method, path, operation = draw(st.sampled_from(OPERATIONS))
    path = re.sub(r"\{[^}]+\}", lambda _: quote(draw(odd_text), safe="", errors="surrogateescape") or "x", path)
    query, headers = [], {"content-type": "application/json"}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query" and draw(st.booleans()):
            query.append(f"{parameter['name']}={quote(draw(odd_text), errors='surrogateescape')}")
        elif parameter["in"] == "header" and draw(st.booleans()):
            headers[parameter["name"]] = re.sub(r"[\r\n]", "", draw(odd_text))
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    body = b""
    if content is not None:
        fields = DOCUMENT["components"]["schemas"][content["schema"]["$ref"].rsplit("/")[-1]]["properties"]
        odd_fields = st.dictionaries(st.sampled_from(sorted(fields)), odd_value, max_size=4)
        text = draw(st.sampled_from(ODD_JSON) | odd_fields.map(json.dumps))
        body = draw(st.just(text.encode("utf-8", "surrogatepass")) | st.binary(max_size=20))
    return method, path + "?" * bool(query) + "&".join(query), body, headers


def test_every_operation_with_odd_values(service: Running, past: None) -> None:
    """Every operation answers odd paths, queries, headers and bodies with a problem of the sender, never with a fault."""
    asked: set[str] = set()

    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(request=requests())
    def ask(request: tuple[str, str, bytes, dict[str, str]]) -> None:
        status, text = send(service.url, *request)
        assert status < 500, text
        asked.add(request[0])

    ask()
    assert {"GET", "POST", "PUT"} <= asked


def test_odd_bodies(service: Running) -> None:
    """Deep, huge and malformed documents are refused by every route that reads one."""
    headers = {"content-type": "application/json", "if-match": '"0"'}
    for method, path in (
        ("POST", "retry-policy/validate"),
        ("PUT", "retry-policy"),
        ("POST", "tokens"),
        ("PUT", "budgets"),
    ):
        for body in ODD_JSON:
            status, text = send(service.url, method, f"/api/{path}", body.encode("utf-8", "surrogatepass"), headers)
            assert status < 500, (path, body[:100], text)


ODD_REQUESTS: tuple[tuple[str, dict[str, str], int], ...] = (
    ("/assets/%00", {}, 400),
    ("/%00", {}, 400),
    ("/api/sessions/%00", {}, 400),
    ("/api/sessions/%ff", {}, 404),
    ("/" + "x" * 5_000, {}, 200),
    ("/" + "x/" * 2_000 + "y.js", {}, 404),
    ("/api/me", {"x-rung-csrf": "é☃", "cookie": "rung=é", "authorization": ""}, 401),
    ("/api/me", {"cookie": 'rung="\\777"; =; a', "authorization": ""}, 401),
    ("/api/me", {"authorization": "Bearer é" + "x" * 9_000}, 401),
    ("/api/export?what=%00", {}, 422),
    ("/api/export?since=1e999", {}, 422),
    ("/api/retry-policy/templates?ladder=%00", {}, 422),
)


def test_odd_paths_and_headers(service: Running) -> None:
    """Paths and headers that no client of ours sends have a plain answer."""
    for path, headers, status in ODD_REQUESTS:
        assert (path[:50], send(service.url, "GET", path, b"", headers)[0]) == (path[:50], status)


def test_versions_that_are_none(service: Running) -> None:
    """An If-Match that is no version of ours does not match, however long it is; without one nothing is replaced."""
    plain = {"content-type": "application/json"}
    for path in ("budgets", "retry-policy", "projects/shop/retry-policy"):
        for version in ('"' + "9" * 5_000 + '"', '"²"', "*", "W/", '"-1"'):
            assert send(service.url, "PUT", f"/api/{path}", b"{}", {**plain, "if-match": version})[0] == 412
        assert send(service.url, "PUT", f"/api/{path}", b"{}", plain)[0] == 428
