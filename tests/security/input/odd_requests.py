"""Requests with odd values for everything that an operation of the API takes."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote

import hypothesis
from hypothesis import strategies as st

from rung.service.app import make_api

EXAMPLES = int(os.environ.get("RUNG_FUZZ_EXAMPLES", "60"))
FUZZING = hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
)
DOCUMENT = make_api().openapi()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if path != "/api/events"  # it does not end
]
METHODS = sorted({method for method, _, _ in OPERATIONS})
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


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """Return a request to one of the operations, with odd values for everything that it takes."""
    method = draw(st.sampled_from(METHODS))  # first, so that rare methods are asked as often as others
    _, path, operation = draw(st.sampled_from([each for each in OPERATIONS if each[0] == method]))
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
