"""Authentication middleware: host and origin checks, tokens and cookies, CSRF, body limits, security headers."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse

from rung.service.auth import COOKIE_NAME, COOKIE_SECONDS, Role
from rung.service.problems import problem_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rung.service.auth import Authenticator, Principal

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
PUBLIC_PATHS: Final = frozenset({"/healthz", "/readyz", "/api/login"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_BODY_BYTES: Final = 1_048_576
SECURITY_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self';"
        " frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class AuthMiddleware:
    """ASGI middleware around the whole app, so that no route can bypass it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        auth: Authenticator,
        hosts: Iterable[str],
        allow_ip_hosts: bool = False,
        secure: bool = False,
    ) -> None:
        self.app = app
        self.access = auth
        self.hosts = frozenset(host.lower() for host in hosts)
        self.wide = allow_ip_hosts  # accept IP addresses as Host: unlike names, they cannot be DNS-rebound
        self.secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or respond with the reason for its rejection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send, scope["path"])
        headers = Headers(scope=scope)
        rejection = self._check_origin(scope, headers) or self._sign_in(scope) or self._authenticate(scope, headers)
        if rejection is not None:
            await rejection(scope, receive, send)
            return
        await self.app(scope, _limit_body(receive), send)

    def _check_origin(self, scope: Scope, headers: Headers) -> Response | None:
        """Reject unknown host names (DNS rebinding) and cross-origin requests."""
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if name.lower() not in self.hosts and not (self.wide and _is_address(name)):
            return problem_response(421, f"unknown host {host[:100]!r}: use the address that `rung serve` printed")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and scope["path"].startswith("/api"):
            return problem_response(403, "cross-origin request rejected")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return problem_response(403, f"cross-origin request from {origin[:100]!r} rejected")
        return None

    def _sign_in(self, scope: Scope) -> Response | None:
        """Exchange the token in the printed URL for a cookie, and redirect so that it leaves the address bar."""
        if scope["path"] != "/" or scope["method"] != "GET" or b"token=" not in scope["query_string"]:
            return None
        address = _client_address(scope)
        wait = self.access.lockout_seconds(address)
        if wait > 0:
            return _locked_out(wait)
        principal = self.access.by_token(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])
        if principal is None:
            self.access.record_failed_login(address)
        response = RedirectResponse("./" if principal is not None else "./#/sign-in", status_code=303)
        if principal is not None:
            self.set_cookie(response, principal)
        return response

    def set_cookie(self, response: Response, principal: Principal) -> None:
        """Set the session cookie of this user."""
        response.set_cookie(
            COOKIE_NAME,
            self.access.make_cookie(principal),
            max_age=int(COOKIE_SECONDS),
            httponly=True,
            samesite="strict",
            secure=self.secure,
        )

    def _authenticate(self, scope: Scope, headers: Headers) -> Response | None:
        """Require a valid token or cookie under /api; writes also need a role and, from a browser, a CSRF token."""
        path = scope["path"]
        scope.setdefault("state", {})["auth_middleware"] = self
        if path in PUBLIC_PATHS or not (path.startswith("/api/") or path == "/metrics"):
            return self._check_body(scope, headers)
        address = _client_address(scope)
        wait = self.access.lockout_seconds(address)
        if wait > 0:
            return _locked_out(wait)
        bearer, cookie = _bearer(headers), _cookie(headers)
        principal = self.access.by_token(bearer) if bearer else self.access.by_cookie(cookie) if cookie else None
        if principal is None:
            if bearer:
                self.access.record_failed_login(address)
            return problem_response(
                401,
                "open the address that `rung serve` printed, or send `Authorization: Bearer TOKEN`",
                headers={"www-authenticate": "Bearer"},
            )
        scope["state"]["principal"] = principal
        scope["state"]["csrf"] = self.access.csrf_token(cookie) if cookie and not bearer else ""
        if scope["method"] in SAFE_METHODS:
            return None
        if not principal.role.includes(Role.ACT):
            return problem_response(403, f"the token {principal.name!r} is read-only; this needs the role act")
        if not bearer and not self.access.is_csrf_token(cookie, headers.get("x-rung-csrf", "")):
            return problem_response(403, "a browser write needs the header X-Rung-CSRF with the value from /api/me")
        return self._check_body(scope, headers)

    def _check_body(self, scope: Scope, headers: Headers) -> Response | None:
        if scope["method"] in SAFE_METHODS:
            return None
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            return problem_response(413, f"the request body has {int(length):,} bytes; the limit is {MAX_BODY_BYTES:,}")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if (length not in ("", "0") or "transfer-encoding" in headers) and kind != "application/json":
            return problem_response(415, f"the Content-Type must be application/json, not {kind[:100] or 'empty'}")
        return None


def _limit_body(receive: Receive) -> Receive:
    """Enforce the size limit on bodies without Content-Length."""
    received = 0

    async def counting_receive() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > MAX_BODY_BYTES:
                return {"type": "http.disconnect"}
        return message

    return counting_receive


def _with_headers(send: Send, path: str) -> Send:
    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            if path.startswith("/api") and "cache-control" not in headers:
                headers["cache-control"] = "no-store"
        await send(message)

    return add


def _locked_out(wait: float) -> Response:
    return problem_response(
        429, "too many failed logins from this address", headers={"retry-after": str(max(1, round(wait)))}
    )


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE_NAME)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _client_address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def require_role(role: Role) -> Callable[..., Principal]:
    """Return a FastAPI dependency that yields the user and requires this role."""
    from fastapi import Request

    from rung.service.problems import ApiProblem

    def check(request: Request) -> Principal:
        principal: Principal = request.state.principal
        if not principal.role.includes(role):
            raise ApiProblem(403, f"the token {principal.name!r} has the role {principal.role}; this needs {role}")
        return principal

    check.__annotations__["request"] = Request
    return check
