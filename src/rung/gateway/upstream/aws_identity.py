"""Signatures (SigV4) with the AWS credentials that botocore finds: environment, profile, SSO, container or instance."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import Any, Final

_SERVICE: Final = "bedrock"


class AwsIdentity:
    """AWS credentials of a profile, loaded on first use and refreshed by botocore."""

    def __init__(self, profile: str, region: str) -> None:
        self._profile = profile
        self._region = region
        self._credentials: Any = None
        self._is_static = False
        self._lock = Lock()

    async def sign(self, url: str, body: bytes) -> list[tuple[bytes, bytes]]:
        """Return the headers that sign a POST of this JSON body.

        Only the host and these headers are signed, so that a proxy may change the others.
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method="POST", url=url, data=body)
        SigV4Auth(await self._current(), _SERVICE, self._region).add_auth(request)
        return [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]

    async def _current(self) -> Any:
        """Return the current credentials; load and refresh them in a thread, because that may call a service."""
        return self._credentials if self._is_static else await asyncio.to_thread(self._load)

    def _load(self) -> Any:
        from botocore.credentials import RefreshableCredentials
        from botocore.exceptions import NoCredentialsError
        from botocore.session import Session

        with self._lock:
            if self._credentials is None:
                self._credentials = Session(profile=self._profile or None).get_credentials()
            if self._credentials is None:
                raise NoCredentialsError
            self._is_static = not isinstance(self._credentials, RefreshableCredentials)
        return self._credentials.get_frozen_credentials()
