"""The exceptions of botocore, as its Bedrock client raises them."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import botocore.config
import botocore.session
import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import Answer, assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider

ASKED: Any = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "hi"}]}]}


@pytest.fixture(autouse=True)
def nobody_is_logged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)


def client_at(url: str, **keys: str) -> Any:
    config = botocore.config.Config(
        retries={"total_max_attempts": 1}, read_timeout=patience(), connect_timeout=patience()
    )
    return botocore.session.Session().create_client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=config, **keys
    )


def ask(url: str) -> object:
    client = client_at(url, aws_access_key_id="x", aws_secret_access_key="y")
    try:
        return client.converse(**ASKED)
    finally:
        client.close()


def listen(url: str) -> list[object]:
    client = client_at(url, aws_access_key_id="x", aws_secret_access_key="y")
    try:
        return list(client.converse_stream(**ASKED)["stream"])
    finally:
        client.close()


def frame(kind: str, name: str, payload: bytes) -> bytes:
    """One message of an AWS event stream."""
    named = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in named.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_throttle_with_its_code_and_wait(provider: Provider) -> None:
    """The service's code, status, headers and message are taken out of the dict they are kept in."""
    provider.says(
        429, {"message": "Too many tokens"}, x_amzn_errortype="ThrottlingException", retry_after="4",
        x_amzn_requestid="r-1",
    )  # fmt: skip
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code, evidence.provider) == (429, "ThrottlingException", "aws")
    assert evidence.retry_after == 4.0
    assert evidence.headers["retry-after"] == "4"
    assert "Too many tokens" in evidence.text
    assert "botocore.exceptions.ClientError" in evidence.exceptions


def test_a_page_of_a_proxy(provider: Provider) -> None:
    """Where the service sent no code, the status that stands in its place is not one."""
    provider.says(502, b"<html>")
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code) == (502, "")


def test_an_exception_in_a_stream(provider: Provider) -> None:
    """It has a code and no status; its phase is the stream."""
    body = frame("event", "messageStart", b'{"role":"assistant"}')
    body += frame("exception", "throttlingException", b'{"message":"Too many requests"}')
    provider.answer = Answer(headers={"content-type": "application/vnd.amazon.eventstream"}, body=body)
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert (evidence.status, evidence.code, evidence.phase) == (None, "throttlingException", Phase.STREAM)
    assert "Too many requests" in evidence.text


def test_a_stream_that_stops(provider: Provider) -> None:
    """Of its own it raises nothing: it lets urllib3's timeout through."""
    start = frame("event", "messageStart", b'{"role":"assistant"}')
    provider.answer = Answer(headers={"content-type": "application/vnd.amazon.eventstream"}, body=start, hang=True)
    evidence = seen(raised_by(lambda: listen(provider.url)))
    assert "urllib3.exceptions.ReadTimeoutError" in evidence.exceptions


def test_no_answer_in_time(provider: Provider) -> None:
    """A read timeout of its own, without a status."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert evidence.exceptions[0] == "botocore.exceptions.ReadTimeoutError"
    assert evidence.status is None


def test_nobody_listens(refused: str) -> None:
    """The errno stands at the end of the chain; no timeout is named on the way."""
    evidence = seen(raised_by(lambda: ask(refused)))
    assert evidence.exceptions[0] == "botocore.exceptions.EndpointConnectionError"
    assert evidence.errno == 111
    assert not any("Timeout" in name for name in evidence.exceptions)


def test_no_credentials(provider: Provider) -> None:
    """Nothing was sent: no status, and the words say what is missing."""
    client = client_at(provider.url)
    evidence = seen(raised_by(lambda: client.converse(**ASKED)))
    client.close()
    assert evidence.status is None
    assert "Unable to locate credentials" in evidence.text
