"""Client of a running service for `rung retry --service` and `rung escalate --service`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from rung.cli.retry.option import NOT_FOUND, USAGE_STATUSES, refuse
from rung.cli.usage import UsageError
from rung.core.domain.errors import ConfigError

_TIMEOUT_SECONDS: Final = 60.0


class ServiceClient(NamedTuple):
    """Address of a service, and the token for it."""

    url: str
    token: str

    @classmethod
    def of(cls, url: str, token: str | None) -> ServiceClient:
        """Check the options, and return the client."""
        if not url.startswith(("http://", "https://")):
            raise ConfigError("--service", url, "an address such as http://127.0.0.1:8642")
        if not token:
            raise UsageError("--service needs a token: give --token, or set RUNG_TOKEN (see `rung help token`)")
        return cls(url.rstrip("/"), token)

    def session(self, session: str, action: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post an action on a session; return the answer, with names as Python has them."""
        return _snake(self._send(f"/api/sessions/{quote(session, safe='')}/{action}", body))

    def incident(self, name: str) -> dict[str, Any]:
        """Return an incident; nothing while it has not begun."""
        return _snake(self._send(f"/api/incidents/{quote(name, safe='')}", may_be_missing=True))

    def _send(self, path: str, body: dict[str, Any] | None = None, *, may_be_missing: bool = False) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers)  # noqa: S310  # the user's own service
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310  # as above
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            with error:
                detail, field = _problem(error.read())
            if error.code == NOT_FOUND and may_be_missing:
                return {}
            if error.code in USAGE_STATUSES:
                raise UsageError(detail) from None
            refuse(f"{detail} (the service answers {error.code})", field)
        except (urllib.error.URLError, TimeoutError) as error:
            raise ConfigError("--service", self.url, f"a service that can be reached ({error})") from None


def _problem(body: bytes) -> tuple[str, str | None]:
    """Return the detail of a problem and the field that it names."""
    try:
        problem = json.loads(body)
        return str(problem["detail"]), problem.get("field")
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace"), None


def _snake(answer: dict[str, Any]) -> dict[str, Any]:
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in answer.items()}
