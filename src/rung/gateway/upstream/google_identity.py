"""Tokens of Google Cloud by google-auth: a service account, application default credentials, or the metadata server."""

from __future__ import annotations

from datetime import UTC
from math import inf
from typing import Any, Final

from rung.gateway.upstream.access_token import AccessToken, TokenCache

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)


class GoogleIdentity:
    """Google credentials, loaded on first use in a thread, because that may ask the metadata server."""

    def __init__(self, credentials_file: str = "") -> None:
        self.project = ""  # known once there is a token; empty if the credentials do not say it
        self._file = credentials_file
        self._credentials: Any = None
        self._tokens = TokenCache(self._fetch)

    async def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers with a valid token, and with the project that pays if the credentials name one."""
        headers = [(b"authorization", b"Bearer " + (await self._tokens.get()).encode())]
        payer = getattr(self._credentials, "quota_project_id", None)
        return [*headers, (b"x-goog-user-project", payer.encode())] if payer else headers

    def _fetch(self) -> AccessToken:
        from google.auth.transport.requests import Request

        if self._credentials is None:
            self._credentials, project = self._load()
            self.project = project or ""
        self._credentials.refresh(Request())
        expiry = self._credentials.expiry  # in UTC, without a zone
        expires_at = inf if expiry is None else expiry.replace(tzinfo=UTC).timestamp()
        return AccessToken(self._credentials.token, expires_at)

    def _load(self) -> tuple[Any, str | None]:
        """Return the credentials and their project."""
        if not self._file:
            import google.auth

            found: tuple[Any, str | None] = google.auth.default(scopes=_SCOPES)
            return found
        from google.oauth2 import service_account

        account: Any = service_account.Credentials  # not typed
        credentials = account.from_service_account_file(self._file, scopes=_SCOPES)
        return credentials, credentials.project_id
