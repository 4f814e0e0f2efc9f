"""Who may do what: tokens with a role each, a signed cookie for the browser, and a limit on guesses."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.errors import ConfigError
from rung.store.settings import trace
from rung.store.tokens import TokenRow, all_tokens, delete_tokens, insert_token, token_by_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rung.store.journal.journal import Journal

DAY_SECONDS: Final = 86_400.0
COOKIE_SECONDS: Final = 30 * DAY_SECONDS  # of a cookie
MAX_FAILED_LOGINS: Final = 10  # wrong tokens from one address, in GUESSING seconds
FAILED_LOGIN_WINDOW_SECONDS: Final = 60.0
TOKEN_CACHE_SECONDS: Final = 5.0  # seconds for which a token is known without looking again
MIN_TOKEN_CHARS: Final = 16  # characters of a token given by hand
COOKIE_NAME: Final = "rung"


class Role(StrEnum):
    """What somebody may do: look; also act on sessions and incidents; also change policies and tokens."""

    READ = "read"
    ACT = "act"
    ADMIN = "admin"

    def includes(self, needed: Role) -> bool:
        """Does this role include that one?"""
        roles = list(Role)
        return roles.index(self) >= roles.index(needed)


class Principal(NamedTuple):
    """Somebody who showed a token. `mark` stands for the token: its hash."""

    name: str
    role: Role
    token_hash: str


class Authenticator:
    """The tokens of one service. The first one, an administrator's, is given; the others are in the journal."""

    def __init__(self, journal: Journal, token: str, now: Callable[[], float] = time.time) -> None:
        self._journal = journal
        self._now = now
        self._first = Principal("admin", Role.ADMIN, _hash(token))
        self._key = hashlib.sha256(b"rung cookie " + token.encode()).digest()
        self._known: dict[str, tuple[float, Principal | None]] = {}
        self._wrong: dict[str, list[float]] = {}

    # -- tokens ---------------------------------------------------------------------------------------

    def by_token(self, token: str) -> Principal | None:
        """Who shows this token."""
        return self._by_mark(_hash(token))

    def _by_mark(self, mark: str) -> Principal | None:
        if hmac.compare_digest(mark, self._first.token_hash):
            return self._first
        now = self._now()
        found = self._known.get(mark)
        if found is not None and now - found[0] < TOKEN_CACHE_SECONDS:
            return found[1]
        row = token_by_hash(self._journal, mark)
        who = None
        if row is not None and (row.ends_at is None or now < row.ends_at):
            who = Principal(row.name, Role(row.role), mark)
        if len(self._known) > 1_000:  # noqa: PLR2004  # a bound, whatever it is
            self._known.clear()
        self._known[mark] = (now, who)
        return who

    # -- guesses --------------------------------------------------------------------------------------

    def record_failed_login(self, address: str) -> None:
        """A wrong token came from this address."""
        if len(self._wrong) > 10_000:  # noqa: PLR2004  # a bound, whatever it is
            self._wrong.clear()
        self._wrong[address] = [*self._recent(address), self._now()]

    def lockout_seconds(self, address: str) -> float:
        """Seconds until this address may try again; 0: now."""
        recent = self._recent(address)
        return recent[-MAX_FAILED_LOGINS] + FAILED_LOGIN_WINDOW_SECONDS - self._now() if len(recent) >= MAX_FAILED_LOGINS else 0.0

    def _recent(self, address: str) -> list[float]:
        return [at for at in self._wrong.get(address, []) if self._now() - at < FAILED_LOGIN_WINDOW_SECONDS]

    # -- cookies --------------------------------------------------------------------------------------

    def make_cookie(self, who: Principal) -> str:
        """What the browser shows from now on, instead of the token."""
        told = f"{who.token_hash}.{int(self._now() + COOKIE_SECONDS)}"
        return f"{told}.{self._sign('cookie', told)}"

    def by_cookie(self, value: str) -> Principal | None:
        """Who shows this cookie; a token that was taken back takes its cookies with it."""
        mark, _, rest = value.partition(".")
        until, _, signed = rest.partition(".")
        if not _same(signed, self._sign("cookie", f"{mark}.{until}")) or self._now() >= int(until):
            return None
        return self._by_mark(mark)

    def csrf_token(self, cookie: str) -> str:
        """What an act must say beside this cookie: only our own page can read it."""
        return self._sign("csrf", cookie)

    def is_csrf_token(self, cookie: str, given: str) -> bool:
        """Whether this is the CSRF token of this cookie."""
        return _same(given, self.csrf_token(cookie))

    def sign(self, what: str) -> str:
        """A mark that only this service can have made."""
        return self._sign("note", what)

    def is_signature(self, what: str, signature: str) -> bool:
        """Whether this service made this signature of this text."""
        return _same(signature, self.sign(what))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), "sha256").hexdigest()[:40]


# -- making tokens ------------------------------------------------------------------------------------


class Token(NamedTuple):
    """A token as it is listed: never the token itself."""

    hash_prefix: str
    name: str
    role: Role
    made_at: float
    ends_at: float | None


def add_token(journal: Journal, name: str, role: str, *, days: float | None, by: str) -> str:
    """A new token: shown once, kept as a hash."""
    if not name.strip():
        raise ConfigError("name", name, "a name: whose token it is")
    if role not in tuple(Role):
        raise ConfigError("role", role, "one of " + ", ".join(Role))
    if days is not None and days <= 0:
        raise ConfigError("days", days, "more than 0, or left out for one that stays")
    token, now = "rung-" + secrets.token_urlsafe(24), time.time()
    ends = None if days is None else now + days * DAY_SECONDS
    insert_token(journal, TokenRow(_hash(token), name.strip(), role, now, ends))
    trace(journal, by, "token.add", f"token/{name}", {"role": role, "days": days})
    return token


def tokens(journal: Journal) -> list[Token]:
    """The tokens there are, but for the first."""
    return [Token(row.hash[:12], row.name, Role(row.role), row.made_at, row.ends_at) for row in all_tokens(journal)]


def revoke_token(journal: Journal, name: str, *, by: str) -> int:
    """Take back the tokens of this name; how many there were."""
    count = delete_tokens(journal, name)
    if count:
        trace(journal, by, "token.revoke", f"token/{name}", {"count": count})
    return count


def admin_token(given: str | None, path: Path) -> str:
    """The administrator's token: the given one, or the one made at the first start, kept for its owner's eyes."""
    if given is not None:
        if len(given) < MIN_TOKEN_CHARS or not given.isascii() or not given.isprintable() or " " in given:
            raise ConfigError("token", "…", f"{MIN_TOKEN_CHARS} or more characters without spaces; leave it out to have one made")
        return given
    with suppress(OSError):
        kept = path.read_text("ascii").strip()
        if len(kept) >= MIN_TOKEN_CHARS:
            return kept
    token = secrets.token_urlsafe(24)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _same(given: str, expected: str) -> bool:
    """Compare in constant time; what is given may hold any character."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
