"""Authentication: access tokens with roles, signed session cookies, CSRF tokens and a login rate limit."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.errors import ConfigError
from rung.store.settings import record_audit
from rung.store.tokens import TokenRow, all_tokens, delete_tokens, insert_token, token_by_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

DAY_SECONDS: Final = 86_400.0
COOKIE_SECONDS: Final = 30 * DAY_SECONDS
MAX_FAILED_LOGINS: Final = 10  # wrong tokens per client address and window
FAILED_LOGIN_WINDOW_SECONDS: Final = 60.0
TOKEN_CACHE_SECONDS: Final = 5.0  # a revoked token works for at most this long
COOKIE_NAME: Final = "rung"


class Role(StrEnum):
    """Permission level: read only; also act on sessions and incidents; also change policies and tokens."""

    READ = "read"
    ACT = "act"
    ADMIN = "admin"

    def includes(self, needed: Role) -> bool:
        """Return whether this role includes the permissions of `needed`."""
        roles = list(Role)
        return roles.index(self) >= roles.index(needed)


class Principal(NamedTuple):
    """An authenticated user; identified by the SHA-256 hash of the token."""

    name: str
    role: Role
    token_hash: str


class Authenticator:
    """Checks tokens and cookies. The admin token is passed in; all others are stored in the journal."""

    def __init__(self, journal: Journal, token: str, now: Callable[[], float] = time.time) -> None:
        self._journal = journal
        self._now = now
        self._admin = Principal("admin", Role.ADMIN, _hash(token))
        self._key = hashlib.sha256(b"rung cookie " + token.encode()).digest()
        self._cache: dict[str, tuple[float, Principal | None]] = {}
        self._failures: dict[str, list[float]] = {}

    # -- tokens ---------------------------------------------------------------------------------------

    def by_token(self, token: str) -> Principal | None:
        """Return the owner of this token, or None."""
        return self._by_hash(_hash(token))

    def _by_hash(self, token_hash: str) -> Principal | None:
        if hmac.compare_digest(token_hash, self._admin.token_hash):
            return self._admin
        now = self._now()
        cached = self._cache.get(token_hash)
        if cached is not None and now - cached[0] < TOKEN_CACHE_SECONDS:
            return cached[1]
        row = token_by_hash(self._journal, token_hash)
        principal = None
        if row is not None and (row.ends_at is None or now < row.ends_at):
            principal = Principal(row.name, Role(row.role), token_hash)
        if len(self._cache) > 1_000:  # noqa: PLR2004  # bounds the memory
            self._cache.clear()
        self._cache[token_hash] = (now, principal)
        return principal

    # -- login rate limit ------------------------------------------------------------------------------

    def record_failed_login(self, address: str) -> float:
        """Count a wrong token from this address; return the seconds until the next one is worth an answer, or 0.

        Only wrong tokens are limited. A right token always passes: otherwise any web page could lock its owner out.
        """
        if len(self._failures) > 10_000:  # noqa: PLR2004  # bounds the memory
            self._failures.clear()
        recent = self._recent(address)
        if len(recent) >= MAX_FAILED_LOGINS:
            return recent[0] + FAILED_LOGIN_WINDOW_SECONDS - self._now()
        self._failures[address] = [*recent, self._now()]
        return 0.0

    def _recent(self, address: str) -> list[float]:
        return [at for at in self._failures.get(address, []) if self._now() - at < FAILED_LOGIN_WINDOW_SECONDS]

    # -- cookies --------------------------------------------------------------------------------------

    def make_cookie(self, principal: Principal) -> str:
        """Return a signed session cookie for this user."""
        payload = f"{principal.token_hash}.{int(self._now() + COOKIE_SECONDS)}"
        return f"{payload}.{self._sign('cookie', payload)}"

    def by_cookie(self, value: str) -> Principal | None:
        """Return the owner of this cookie, or None; revoking a token invalidates its cookies."""
        token_hash, _, rest = value.partition(".")
        until, _, signed = rest.partition(".")
        if not _equal(signed, self._sign("cookie", f"{token_hash}.{until}")) or self._now() >= int(until):
            return None
        return self._by_hash(token_hash)

    def csrf_token(self, cookie: str) -> str:
        """Return the CSRF token that writes with this cookie must send."""
        return self._sign("csrf", cookie)

    def is_csrf_token(self, cookie: str, given: str) -> bool:
        """Return whether this is the CSRF token of this cookie."""
        return _equal(given, self.csrf_token(cookie))

    def sign(self, what: str) -> str:
        """Return this service's signature of a text."""
        return self._sign("note", what)

    def is_signature(self, what: str, signature: str) -> bool:
        """Return whether this service made this signature of this text."""
        return _equal(signature, self.sign(what))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), "sha256").hexdigest()[:40]


# -- token administration -----------------------------------------------------------------------------


class Token(NamedTuple):
    """A stored token, without its secret."""

    hash_prefix: str
    name: str
    role: Role
    made_at: float
    ends_at: float | None


def add_token(journal: Journal, name: str, role: str, *, days: float | None, by: str) -> str:
    """Create a token and return its secret; only the hash is stored."""
    name = name.strip()
    if not name or not name.isprintable():
        raise ConfigError("name", name, "the name of the token's owner, in printable characters")
    if role not in tuple(Role):
        raise ConfigError("role", role, "one of " + ", ".join(Role))
    if days is not None and days <= 0:
        raise ConfigError("days", days, "more than 0, or left out for a token that does not expire")
    token, now = "rung-" + secrets.token_urlsafe(24), time.time()
    ends = None if days is None else now + days * DAY_SECONDS
    insert_token(journal, TokenRow(_hash(token), name, role, now, ends))
    record_audit(journal, by, "token.add", f"token/{name}", {"role": role, "days": days})
    return token


def tokens(journal: Journal) -> list[Token]:
    """Return the stored tokens; the admin token is not among them."""
    return [Token(row.hash[:12], row.name, Role(row.role), row.made_at, row.ends_at) for row in all_tokens(journal)]


def revoke_token(journal: Journal, name: str, *, by: str) -> int:
    """Revoke all tokens of this name and return their number."""
    count = delete_tokens(journal, name)
    if count:
        record_audit(journal, by, "token.revoke", f"token/{name}", {"count": count})
    return count


def _equal(given: str, expected: str) -> bool:
    """Compare in constant time; `given` may contain any character."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
