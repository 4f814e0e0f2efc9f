"""The door: which hosts are answered, which pages may ask, who may act, and what a browser may do with our answers."""

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
    """Plain ASGI around the whole app, so that no route can be forgotten."""

    def __init__(
        self, app: ASGIApp, *, auth: Authenticator, hosts: Iterable[str], allow_ip_hosts: bool = False, secure: bool = False
    ) -> None:
        self.app = app
        self.access = auth
        self.hosts = frozenset(host.lower() for host in hosts)
        self.wide = allow_ip_hosts  # reached by its addresses, too: a name may be anybody's, a number is ours
        self.secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it in, or say why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send, scope["path"])
        headers = Headers(scope=scope)
        refusal = self._foreign(scope, headers) or self._sign_in(scope) or self._stranger(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _limited(receive), send)

    def _foreign(self, scope: Scope, headers: Headers) -> Response | None:
        """A name that is not ours (rebinding), or a page that is not."""
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if name.lower() not in self.hosts and not (self.wide and _is_address(name)):
            return problem_response(421, f"this service does not answer to the host {host[:100]!r}: use the printed address")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and scope["path"].startswith("/api"):
            return problem_response(403, "another site's page may not use this service")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return problem_response(403, f"the page {origin[:100]!r} may not use this service")
        return None

    def _sign_in(self, scope: Scope) -> Response | None:
        """The printed address carries the token: change it for a cookie, and take it out of the address bar."""
        if scope["path"] != "/" or scope["method"] != "GET" or b"token=" not in scope["query_string"]:
            return None
        address = _address(scope)
        wait = self.access.lockout_seconds(address)
        if wait > 0:
            return _too_many(wait)
        who = self.access.by_token(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])
        if who is None:
            self.access.record_failed_login(address)
        response = RedirectResponse("./" if who is not None else "./#/sign-in", status_code=303)
        if who is not None:
            self.set_cookie(response, who)
        return response

    def set_cookie(self, response: Response, who: Principal) -> None:
        """From now on the browser is known."""
        response.set_cookie(
            COOKIE_NAME, self.access.make_cookie(who), max_age=int(COOKIE_SECONDS), httponly=True, samesite="strict", secure=self.secure
        )

    def _stranger(self, scope: Scope, headers: Headers) -> Response | None:
        """Everything under /api needs somebody we know; an act needs one who may, and means it."""
        path = scope["path"]
        scope.setdefault("state", {})["guard"] = self
        if path in PUBLIC_PATHS or not (path.startswith("/api/") or path == "/metrics"):
            return self._too_large(scope, headers)
        address = _address(scope)
        wait = self.access.lockout_seconds(address)
        if wait > 0:
            return _too_many(wait)
        bearer, cookie = _bearer(headers), _cookie(headers)
        who = self.access.by_token(bearer) if bearer else self.access.by_cookie(cookie) if cookie else None
        if who is None:
            if bearer:
                self.access.record_failed_login(address)
            return problem_response(
                401,
                "open the address that `rung serve` printed, or send `Authorization: Bearer TOKEN`",
                headers={"www-authenticate": "Bearer"},
            )
        scope["state"]["who"] = who
        scope["state"]["csrf"] = self.access.csrf_token(cookie) if cookie and not bearer else ""
        if scope["method"] in SAFE_METHODS:
            return None
        if not who.role.includes(Role.ACT):
            return problem_response(403, f"the token {who.name!r} may only look; acting needs the role act")
        if not bearer and not self.access.is_csrf_token(cookie, headers.get("x-rung-csrf", "")):
            return problem_response(403, "an act from a browser needs the header X-Rung-CSRF, from /api/me")
        return self._too_large(scope, headers)

    def _too_large(self, scope: Scope, headers: Headers) -> Response | None:
        if scope["method"] in SAFE_METHODS:
            return None
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            return problem_response(413, f"a request may have {MAX_BODY_BYTES:,} bytes, this one has {int(length):,}")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if (length not in ("", "0") or "transfer-encoding" in headers) and kind != "application/json":
            return problem_response(415, f"send application/json, not {kind[:100] or 'nothing said'}")
        return None


def _limited(receive: Receive) -> Receive:
    """A body that was not announced is counted as it comes."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > MAX_BODY_BYTES:
                return {"type": "http.disconnect"}
        return message

    return counted


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


def _too_many(wait: float) -> Response:
    return problem_response(
        429, "too many wrong tokens came from this address", headers={"retry-after": str(max(1, round(wait)))}
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


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def require_role(role: Role) -> Callable[..., Principal]:
    """A route's dependency: who acts, if they have this role."""
    from fastapi import Request

    from rung.service.problems import ApiProblem

    def check(request: Request) -> Principal:
        who: Principal = request.state.who
        if not who.role.includes(role):
            raise ApiProblem(403, f"the token {who.name!r} has the role {who.role}; this needs {role}")
        return who

    check.__annotations__["request"] = Request
    return check
