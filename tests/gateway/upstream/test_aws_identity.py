"""Signatures for Bedrock: a server recomputes them with botocore from the request that it received."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Kind
from rung.gateway.upstream.make_provider import make_provider
from tests.gateway.upstream.requests_seen import send_to, sent_by, sent_by_rung, upstream_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.upstream.requests_seen import SeenRequest

BODY: dict[str, Any] = {"model": "us.anthropic.claude-x-v1:0", "max_tokens": 5, "messages": []}
ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"


def recomputed(request: SeenRequest, credentials: Credentials, region: str) -> str:
    """Return the authorization of a request by the headers that it declares as signed."""
    given = request.headers["authorization"]
    found = re.search("SignedHeaders=([^,]+)", given)
    assert found is not None
    names = found[1].split(";")
    signed = {name: request.headers[name] for name in names}
    url = f"http://{request.headers['host']}{request.target}"
    again = AWSRequest(method=request.method, url=url, data=request.body, headers=signed)
    again.context["timestamp"] = request.headers["x-amz-date"]
    auth = SigV4Auth(credentials, "bedrock", region)
    signature = auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again)
    return f"AWS4-HMAC-SHA256 Credential={auth.scope(again)}, SignedHeaders={found[1]}, Signature={signature}"


def static_credentials(monkeypatch: pytest.MonkeyPatch, token: str) -> Credentials:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    if token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    return Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token or None)


@pytest.mark.parametrize("token", ["", "session-token=="])
@pytest.mark.parametrize("model", [BODY["model"], ARN, "claude with space"])
@pytest.mark.parametrize("base", ["", "/proxy?stage=a%20b"])
def test_signatures(monkeypatch: pytest.MonkeyPatch, model: str, token: str, base: str) -> None:
    """The signature fits the path, the query and the body as they arrive; the token of a session is signed, too."""
    credentials = static_credentials(monkeypatch, token)
    headers = [
        (b"x-api-key", b"of-the-client"),
        (b"authorization", b"Bearer of-the-client"),
        (b"user-agent", b"claude"),
    ]
    seen = sent_by_rung("messages", BODY | {"model": model}, headers, type="bedrock", region="eu-west-1", base=base)
    assert seen.headers["authorization"] == recomputed(seen, credentials, "eu-west-1")
    assert seen.headers.get("x-amz-security-token", "") == token
    assert "x-api-key" not in seen.headers
    assert seen.headers["user-agent"] == "claude"


def test_a_changed_body_has_another_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of these tests refuses a request that was changed on its way."""
    credentials = static_credentials(monkeypatch, "")
    seen = sent_by_rung("messages", BODY, type="bedrock", region="eu-west-1")
    assert seen.headers["authorization"] != recomputed(seen._replace(body=b"{}"), credentials, "eu-west-1")


def test_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The profile of the settings gives the credentials and the region, also if the environment has a key."""
    config = tmp_path / "config"
    config.write_text("[profile work]\nregion = ap-south-1\naws_access_key_id = A\naws_secret_access_key = B\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bearer-token")
    seen = sent_by_rung("messages", BODY, type="bedrock", profile="work")
    assert seen.headers["authorization"] == recomputed(seen, Credentials("A", "B"), "ap-south-1")


@pytest.mark.parametrize(("minutes", "calls"), [(600, 1), (5, 3)])
def test_credentials_that_expire(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, minutes: int, calls: int) -> None:
    """Credentials of a process are fetched once while they are valid, and for each request when they are about to expire."""
    expires = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
    keys = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "T", "Expiration": expires}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    script = tmp_path / "keys.sh"
    script.write_text(f"#!/bin/sh\necho x >> {tmp_path}/calls\ncat {tmp_path}/keys.json\n")
    script.chmod(0o755)
    (tmp_path / "config").write_text(f"[default]\nregion = ap-south-1\ncredential_process = {script}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    async def ask_twice(url: str) -> None:
        provider = make_provider(upstream_of(type="bedrock", url=url))
        for _ in range(2):
            await send_to(provider, "messages", BODY)

    seen = sent_by(lambda url: asyncio.run(ask_twice(url)))
    assert seen.headers["authorization"] == recomputed(seen, Credentials("A", "B", "T"), "ap-south-1")
    assert (tmp_path / "calls").read_text().split() == ["x"] * calls  # the first request loads them, then refreshes


def test_no_credentials() -> None:
    """Without credentials, the attempt fails before anything is sent."""
    row = {"type": "bedrock", "url": "http://127.0.0.1:9", "region": "us-east-1"}
    with pytest.raises(NoCredentialsError) as caught:
        asyncio.run(send_to(make_provider(upstream_of(**row)), "messages", BODY))
    assert classify(evidence_of(caught.value)).kind is Kind.MISSING_CREDENTIALS
