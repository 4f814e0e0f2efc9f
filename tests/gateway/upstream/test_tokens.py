"""Access tokens of Google and Microsoft: fetched once, refreshed before they expire, and never on the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Kind
from rung.gateway.http.pool import ConnectionPool
from rung.gateway.settings import settings_from
from rung.gateway.upstream.access_token import REFRESH_SECONDS, RETRY_SECONDS, AccessToken, TokenCache
from rung.gateway.upstream.azure import SCOPE, AzureProvider
from rung.gateway.upstream.google_identity import GoogleIdentity
from rung.gateway.upstream.make_provider import make_provider
from rung.gateway.upstream.secret_filter import SecretFilter
from tests.gateway.upstream.requests_seen import seen, send_to, sent_by_rung, upstream_of
from tests.security.upstream.raw_upstream import RawUpstream, http_answer

if TYPE_CHECKING:
    from pathlib import Path

CLAUDE: dict[str, Any] = {"model": "claude-x", "max_tokens": 5, "messages": []}


class Issuer:
    """Issues tokens that are valid for an hour of a clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.issued = 0
        self.error: Exception | None = None
        self.threads: set[int] = set()
        self.tokens = TokenCache(self.fetch, lambda: self.now)

    def fetch(self) -> AccessToken:
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        self.issued += 1
        return AccessToken(f"token-{self.issued}", self.now + 3_600.0)

    async def get(self) -> str:
        """Return the token after any fetch that was started has ended."""
        token = await self.tokens.get()
        while self.tokens._fetching is not None:  # noqa: SLF001  # wait without sleeping
            await asyncio.wait([self.tokens._fetching])  # noqa: SLF001
            await asyncio.sleep(0)
        return token


def test_one_fetch_for_all_callers() -> None:
    """Concurrent callers share one fetch, which runs in a thread; later ones get the same token."""
    issuer = Issuer()

    async def inside() -> list[str]:
        return [*await asyncio.gather(*(issuer.tokens.get() for _ in range(20))), await issuer.tokens.get()]

    assert asyncio.run(inside()) == ["token-1"] * 21
    assert issuer.issued == 1
    assert threading.get_ident() not in issuer.threads


def test_refresh_before_the_end() -> None:
    """Shortly before a token expires, callers get it at once while the next one is fetched."""
    issuer = Issuer()

    async def inside() -> list[str]:
        tokens = [await issuer.get()]
        for step in (3_600 - REFRESH_SECONDS - 1, 1, 0):
            issuer.now += step
            tokens.append(await issuer.get())
        return tokens

    assert asyncio.run(inside()) == ["token-1", "token-1", "token-1", "token-2"]


def test_a_refresh_that_fails() -> None:
    """A valid token is kept when a refresh fails, which is tried again later; an expired one is not."""
    issuer = Issuer()

    async def inside() -> None:
        await issuer.get()
        issuer.error = OSError("issuer is down")
        issuer.now += 3_600 - REFRESH_SECONDS
        assert await issuer.get() == "token-1"
        issuer.error = None
        assert await issuer.get() == "token-1"
        assert issuer.issued == 1  # not tried again at once
        issuer.now += RETRY_SECONDS
        assert await issuer.get() == "token-1"
        assert await issuer.get() == "token-2"
        issuer.error = OSError("issuer is down")
        issuer.now += 3_600
        with pytest.raises(OSError, match="issuer is down"):
            await issuer.get()
        issuer.error = None
        assert await issuer.get() == "token-3"

    asyncio.run(inside())


def test_a_caller_that_leaves() -> None:
    """A caller that is cancelled does not end the fetch that others wait for."""
    gate = threading.Event()

    def fetch() -> AccessToken:
        gate.wait(10)
        return AccessToken("token", 3_600.0)

    async def inside() -> str:
        tokens = TokenCache(fetch, lambda: 0.0)
        leaving, staying = asyncio.create_task(tokens.get()), asyncio.create_task(tokens.get())
        await asyncio.sleep(0)
        leaving.cancel()
        gate.set()
        return await staying

    assert asyncio.run(inside()) == "token"


# -- Google ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(65_537, 2_048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def service_account(folder: Path, url: str, private_key: str) -> str:
    file = folder / "account.json"
    account = {
        "type": "service_account", "project_id": "p-file", "private_key_id": "1", "private_key": private_key,
        "client_email": "rung@p-file.example", "client_id": "1", "token_uri": f"{url}/token",
    }  # fmt: skip
    file.write_text(json.dumps(account))
    return str(file)


def token_answer(number: int, seconds: int) -> bytes:
    body = {"access_token": f"google-{number}", "expires_in": seconds, "token_type": "Bearer"}
    return http_answer(json.dumps(body).encode(), "content-type: application/json")


@pytest.mark.parametrize("is_default", [False, True], ids=["file", "application default"])
def test_a_service_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, private_key: str, is_default: bool) -> None:
    """The account signs a request for a token; its project is in the path, and one that pays in a header."""
    with RawUpstream(lambda _: token_answer(1, 3_600)) as issuer:
        file = service_account(tmp_path, issuer.url, private_key)
        row = {"type": "vertex", "region": "us-east5"} | ({} if is_default else {"credentials_file": file})
        if is_default:
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
            monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "p-payer")
        request = sent_by_rung("messages", CLAUDE, [(b"authorization", b"Bearer of-the-client")], **row)
        asked = seen(issuer.requests[0])
    assert request.headers["authorization"] == "Bearer google-1"
    assert request.headers.get("x-goog-user-project") == ("p-payer" if is_default else None)
    assert request.target == "/v1/projects/p-file/locations/us-east5/publishers/anthropic/models/claude-x:rawPredict"
    assert parse_qs(asked.body.decode())["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


def test_google_tokens_are_refreshed(tmp_path: Path, private_key: str) -> None:
    """A token that has expired is replaced by a new one; one that is valid is used again."""
    answers = iter([token_answer(1, -100), token_answer(2, 3_600)])

    async def inside(file: str) -> list[bytes]:
        identity = GoogleIdentity(file)
        return [dict(await identity.headers())[b"authorization"] for _ in range(3)]

    with RawUpstream(lambda _: next(answers)) as issuer:
        tokens = asyncio.run(inside(service_account(tmp_path, issuer.url, private_key)))
        assert len(issuer.requests) == 2
    assert tokens == [b"Bearer google-1", b"Bearer google-2", b"Bearer google-2"]


def test_a_token_that_is_refused(tmp_path: Path, private_key: str) -> None:
    """An issuer that refuses the account is an authentication error; nothing is sent to the upstream."""
    refusal = http_answer(
        b'{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}', status="400 Bad Request"
    )
    with RawUpstream(refusal) as issuer:
        row = {"type": "vertex", "credentials_file": service_account(tmp_path, issuer.url, private_key)}
        provider = make_provider(upstream_of(url="http://127.0.0.1:9", **row))
        with pytest.raises(Exception, match="invalid_grant") as caught:
            asyncio.run(send_to(provider, "messages", CLAUDE))
    assert classify(evidence_of(caught.value)).kind is Kind.AUTH_ERROR


def test_a_token_does_not_come_back(tmp_path: Path, private_key: str) -> None:
    """An upstream that echoes the token of a cloud does not show it to the client."""

    async def inside(url: str, file: str) -> bytes:
        upstream = upstream_of(type="vertex", url=url, credentials_file=file)
        request = await make_provider(upstream).prepare(
            wire="messages", model="claude-x", stream=False, target="/", headers=[], body=json.dumps(CLAUDE).encode()
        )
        client = SecretFilter(ConnectionPool(settings_from({})))
        try:
            response = await client.send(upstream, "POST", *request)
            try:
                return await response.read_chunk()
            finally:
                response.close()
        finally:
            await client.close()

    with RawUpstream(lambda _: token_answer(1, 3_600)) as issuer, RawUpstream(http_answer) as echo:
        answer = asyncio.run(inside(echo.url, service_account(tmp_path, issuer.url, private_key)))
    assert b"google-1" not in answer
    assert b"<secret:upstream-key>" in answer


# -- Microsoft ---------------------------------------------------------------------------------------


class Issued(NamedTuple):
    """Token in the form of azure-core."""

    token: str
    expires_on: int


class Credential:
    """Credential with the method of azure-identity's credentials that is used."""

    def __init__(self) -> None:
        self.scopes: list[tuple[str, ...]] = []

    def get_token(self, *scopes: str) -> Issued:
        self.scopes.append(scopes)
        return Issued("entra-token", 32_503_680_000)


def test_entra_tokens() -> None:
    """Without a key, a request to Azure has a token of the credential instead of the client's key."""
    credential = Credential()
    upstream = upstream_of(type="azure", url="https://r.openai.azure.com")
    provider = AzureProvider(upstream, credential)

    async def inside() -> list[dict[bytes, bytes]]:
        headers = [(b"content-type", b"application/json"), (b"authorization", b"Bearer of-the-client")]
        prepared = [
            await provider.prepare(
                wire="chat", model="gpt-x", stream=False, target="/v1/chat/completions", headers=headers, body=b"{}"
            )
            for _ in range(2)
        ]
        return [dict(each.headers) for each in prepared]

    for headers in asyncio.run(inside()):
        assert headers[b"authorization"] == b"Bearer entra-token"
        assert b"api-key" not in headers
    assert credential.scopes == [(SCOPE,)]


def test_a_managed_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials of azure-identity itself ask the endpoint of the machine's identity for a token."""
    body = {"access_token": "entra-1", "expires_on": "32503680000", "resource": SCOPE, "token_type": "Bearer"}
    answer = http_answer(json.dumps(body).encode(), "content-type: application/json")
    with RawUpstream(answer) as issuer:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{issuer.url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "of-this-machine")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        request = sent_by_rung("chat", {"model": "gpt-x", "messages": []}, [], type="azure")
        asked = seen(issuer.requests[0])
    assert request.headers["authorization"] == "Bearer entra-1"
    assert request.target == "/openai/v1/chat/completions"
    assert asked.headers["x-identity-header"] == "of-this-machine"
    assert parse_qs(asked.target.partition("?")[2])["resource"] == [SCOPE.removesuffix("/.default")]
