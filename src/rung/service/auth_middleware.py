"""Authentication middleware: host and origin checks, tokens and cookies, CSRF, body limits, security headers."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse

from rung.service.auth import COOKIE_NAME, COOKIE_SECONDS, Role
from rung.service.limits import MAX_REQUESTS, MAX_REQUESTS_PER_TOKEN, ConcurrencyLimit
from rung.service.problems import ApiProblem, problem_response
from rung.wiring.request_origin import check_host, check_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rung.service.auth import Authenticator, Principal

PUBLIC_PATHS: Final = frozenset({"/healthz", "/readyz", "/api/login"})
STREAM_PATH: Final = "/api/events"  # open as long as a page is; its cost per listener is low
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
HOW_TO_SIGN_IN: Final = "open the address that `rung serve` printed, or send `Authorization: Bearer TOKEN`"
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
    ) -> None:
        self.app = app
        self.access = auth
        self.hosts = frozenset(host.lower() for host in hosts)
        self.requests = ConcurrencyLimit("requests", MAX_REQUESTS, MAX_REQUESTS_PER_TOKEN)
        self.wide = allow_ip_hosts  # accept IP addresses as Host: unlike names, they cannot be DNS-rebound

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or respond with the reason for its rejection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send, scope["path"])
        headers = Headers(scope=scope)
        rejection = (
            self._check_origin(scope, headers) or _foreign_link(scope, headers) or self._authenticate(scope, headers)
        )
        if rejection is not None:
            await rejection(scope, receive, send)
            return
        principal = scope["state"].get("principal")
        if principal is None or scope["path"] == STREAM_PATH:
            await self.app(scope, _limit_body(receive), send)
            return
        try:
            with self.requests.slot(principal):
                await self.app(scope, _limit_body(receive), send)
        except ApiProblem as problem:  # no slot is free; the app answers its own problems
            await problem.response()(scope, receive, send)

    def _check_origin(self, scope: Scope, headers: Headers) -> Response | None:
        """Reject unknown host names (DNS rebinding), cross-origin requests, and paths that no file or name can have."""
        if "\0" in scope["path"]:
            return problem_response(400, "the path contains a NUL character")
        host = headers.get("host", "")
        unknown = check_host(host, self.hosts, allow_ip_hosts=self.wide)
        if unknown is not None:
            return problem_response(unknown.status, f"{unknown.detail}: use the address that `rung serve` printed")
        # Links from other sites may open the dashboard; only the API is closed to them.
        fetch_site = headers.get("sec-fetch-site") if scope["path"].startswith("/api") else None
        foreign = check_origin(host, headers.get("origin"), fetch_site)
        return problem_response(foreign.status, foreign.detail) if foreign is not None else None

    def set_cookie(self, response: Response, principal: Principal, scheme: str) -> str:
        """Set the session cookie of this user; return the CSRF token that every request with it must send."""
        cookie = self.access.make_cookie(principal)
        response.set_cookie(
            COOKIE_NAME,
            cookie,
            max_age=int(COOKIE_SECONDS),
            httponly=True,
            samesite="strict",
            secure=scheme == "https",
        )
        return self.access.csrf_token(cookie)

    def _authenticate(self, scope: Scope, headers: Headers) -> Response | None:
        """Require a valid token or cookie under /api; writes also need a role and, from a browser, a CSRF token."""
        path = scope["path"]
        scope.setdefault("state", {})["auth_middleware"] = self
        if path in PUBLIC_PATHS or not (path.startswith("/api/") or path == "/metrics"):
            return self._check_body(scope, headers)
        bearer, cookie = _bearer(headers), _cookie(headers)
        principal = self.access.by_token(bearer) if bearer else self.access.by_cookie(cookie) if cookie else None
        if principal is None:
            wait = self.access.record_failed_login(_client_address(scope)) if bearer else 0.0
            return _locked_out(wait) if wait > 0 else _unauthorized(HOW_TO_SIGN_IN)
        if not bearer and not self.access.is_csrf_token(cookie, _csrf(scope, headers)):
            return _unauthorized("a request with a cookie needs the header X-Rung-CSRF with the value from /api/login")
        scope["state"]["principal"] = principal
        if scope["method"] in SAFE_METHODS:
            return None
        if not principal.role.includes(Role.ACT):
            return problem_response(403, f"the token {principal.name!r} is read-only; this needs the role act")
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
        429, "too many wrong tokens from this address", headers={"retry-after": str(max(1, round(wait)))}
    )


def _unauthorized(detail: str) -> Response:
    return problem_response(401, detail, headers={"www-authenticate": "Bearer"})


def _foreign_link(scope: Scope, headers: Headers) -> Response | None:
    """Drop the token of a printed address that the user did not open: a web page must not sign anybody in."""
    if scope["path"] != "/" or b"token=" not in scope["query_string"]:
        return None
    opened = headers.get("sec-fetch-site") == "none" and headers.get("sec-fetch-dest", "document") == "document"
    return None if opened else RedirectResponse("./#/sign-in", status_code=303)


def _csrf(scope: Scope, headers: Headers) -> str:
    """Return the CSRF token of a request; a download link has no headers and sends it in the query."""
    given = headers.get("x-rung-csrf", "")
    if given or scope["path"] != "/api/export":
        return given
    return str(parse_qs(scope["query_string"].decode("latin-1")).get("csrf", [""])[0])


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE_NAME)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _client_address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def require_role(role: Role) -> Callable[..., Principal]:
    """Return a FastAPI dependency that yields the user and requires this role."""
    from fastapi import Request

    def check(request: Request) -> Principal:
        principal: Principal = request.state.principal
        if not principal.role.includes(role):
            raise ApiProblem(403, f"the token {principal.name!r} has the role {principal.role}; this needs {role}")
        return principal

    check.__annotations__["request"] = Request
    return check
