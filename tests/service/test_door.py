"""The door: who gets in, from which page, under which name, and how often they may guess."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import ConfigError
from rung.service.auth import Authenticator, Role, add_token, revoke_token
from rung.service.token_file import admin_token
from tests.service.conftest import TOKEN, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal
    from tests.service.conftest import Running


def test_without_a_token(service: Running) -> None:
    """Nothing of the API, and the metrics neither; whether it is alive anybody may ask."""
    stranger = service.client()
    for path in ("/api/me", "/api/sessions", "/api/events", "/metrics", "/api/openapi.json", "/api/nowhere"):
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), path
        assert "rung serve" in answer.json()["detail"]
    assert stranger.get("/healthz").text == "ok\n"
    assert stranger.get("/readyz").status_code == 200
    assert service.client("wrong").get("/api/me").status_code == 401
    assert service.get("/api/me")["role"] == "admin"


def test_the_printed_address(service: Running) -> None:
    """It is the page, which changes the token for a cookie that scripts cannot read; opening it changes nothing."""
    browser = service.client(follow_redirects=False)
    answer = browser.get("/", params={"token": TOKEN}, headers={"sec-fetch-site": "none"})
    assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
    cookie = browser.post("/api/login", json={"token": TOKEN}).headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict"))
    assert TOKEN not in cookie


def test_a_browser(service: Running) -> None:
    """A cookie alone is not enough, for reading or for acting: only our own page can know the other half."""
    browser = service.browser()
    csrf, version = browser.headers["x-rung-csrf"], {"if-match": '"0"'}
    for wrong in ("", "x" * 40):
        browser.headers["x-rung-csrf"] = wrong
        assert browser.get("/api/me").status_code == 401
        assert browser.put("/api/budgets", json={"monthly": 10}, headers=version).status_code == 401
        assert browser.get("/api/export", params={"csrf": wrong}).status_code == 401
    del browser.headers["x-rung-csrf"]
    assert browser.get("/api/export", params={"csrf": csrf}).status_code == 200
    browser.headers["x-rung-csrf"] = csrf
    assert browser.get("/api/me").json()["name"] == "admin"
    assert browser.put("/api/budgets", json={"monthly": 10}, headers=version).status_code == 200
    assert browser.post("/api/logout").status_code == 200
    assert browser.get("/api/me").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:80"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_another_page(service: Running, headers: dict[str, str], status: int) -> None:
    """A page of another site, or a name that was bent to this machine, gets nothing, token or not."""
    assert service.admin.get("/api/me", headers=headers).status_code == status


def test_what_is_no_json(service: Running) -> None:
    """A form or a plain text, as another site's page could send it, is not read; nor is what is too large."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = service.admin.post("/api/login", content=b'{"token": "x"}', headers={"content-type": kind})
        assert answer.status_code == 415
    assert service.admin.post("/api/login", json={"token": "x" * 2_000_000}).status_code == 413
    large = (b" " * 65_536 for _ in range(40))
    answer = service.admin.post("/api/login", content=large, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 413)


def test_roles(service: Running, past: None) -> None:
    """Who may look may not act; who may act may not set; and each is told what is missing."""
    reader, actor = service.client(service.token("read")), service.client(service.token("act"))
    assert reader.get("/api/sessions").status_code == 200
    refused = reader.post("/api/sessions/lost/retry", json={})
    assert (refused.status_code, "act" in refused.json()["detail"]) == (403, True)
    assert actor.post("/api/sessions/lost/retry", json={}).status_code == 202
    for path in ("/api/audit", "/api/tokens"):
        assert actor.get(path).status_code == 403
    refused = actor.put("/api/retry-policy", json={"maxRetries": 1}, headers={"if-match": '"0"'})
    assert (refused.status_code, "admin" in refused.json()["detail"]) == (403, True)


def test_tokens(service: Running) -> None:
    """Made, listed without themselves, and taken back with the cookies that were made of them."""
    made = service.post("/api/tokens", {"name": "ada", "role": "read", "days": 1}, status=201)
    ada = service.browser(made["token"])
    assert ada.get("/api/me").json()["name"] == "ada"
    (listed,) = service.get("/api/tokens")
    assert (listed["name"], listed["token"]) == ("ada", None)
    assert service.admin.delete("/api/tokens/ada").status_code == 200
    assert service.admin.delete("/api/tokens/ada").status_code == 404
    eventually(lambda: ada.get("/api/me").status_code == 401)
    assert made["token"] not in service.admin.get("/api/audit").text


def test_headers(service: Running) -> None:
    """What every answer says to a browser."""
    for path in ("/", "/api/me", "/api/nowhere", "/nowhere.js"):
        headers = service.admin.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert service.admin.get("/api/me").headers["cache-control"] == "no-store"
    assert "server" not in service.admin.get("/").headers


@pytest.mark.parametrize(
    "path", ["/../app.py", "/..%2fapp.py", "/%2e%2e/app.py", "/.stamp", "/assets/../../app.py", "/a/.b"]
)
def test_no_way_out_of_the_folder(service: Running, path: str) -> None:
    """Files are served from one folder, and no hidden ones."""
    answer = service.admin.get(path)
    assert answer.status_code == 404 or answer.headers["content-type"].startswith("text/html"), answer.text


def test_the_page(service: Running) -> None:
    """Its files are kept by the browser for good, and a path of a page leads to that page."""
    page = service.client().get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"<script>|<style>|https?://", page.text)
    for path, to in (
        ("/sessions/x", "../#/sessions/x"),
        ("/inbox", "./#/inbox"),
        ("/crew?token=t", "./?token=t#/crew"),
    ):
        moved = service.client().get(path, follow_redirects=False)
        assert (moved.status_code, moved.headers["location"]) == (307, to)
    for name in re.findall(r"(assets/[^\"]+)", page.text):
        assert service.client().get("/" + name).status_code == 200


class ManualClock:
    """Moved by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_cookies_end(journal: Journal) -> None:
    """A cookie is good for a month, and only as it was made."""
    clock = ManualClock()
    access = Authenticator(journal, TOKEN, clock)
    who = access.by_token(TOKEN)
    assert who is not None
    cookie = access.make_cookie(who)
    assert access.by_cookie(cookie) == who
    for wrong in ("", "x", "a.b.c", "a.9.ü", cookie[:-1] + "0", cookie.replace(".", ".9", 1)):
        assert access.by_cookie(wrong) is None, wrong
    assert Authenticator(journal, TOKEN + "x", clock).by_cookie(cookie) is None
    clock.now += 31 * 86_400
    assert access.by_cookie(cookie) is None


def test_tokens_end(journal: Journal) -> None:
    """One for a day is good for a day."""
    import time

    clock = ManualClock()
    clock.now = time.time()
    access = Authenticator(journal, TOKEN, clock)
    token = add_token(journal, "ada", "act", days=1, by="test")
    who = access.by_token(token)
    assert who is not None
    assert who.role is Role.ACT
    clock.now += 2 * 86_400
    assert access.by_token(token) is None
    assert revoke_token(journal, "nobody", by="test") == 0
    for wrong in ({"name": " "}, {"name": "a\0b"}, {"name": "a\x1b[2J"}, {"role": "god"}, {"days": 0}):
        with pytest.raises(ConfigError):
            add_token(journal, **{"name": "x", "role": "act", "days": 1, "by": "test", **wrong})  # type: ignore[arg-type]


def test_the_first_token(tmp_path: Path) -> None:
    """Made once, for its owner's eyes only; a given one must be worth it."""
    file = tmp_path / "new" / "journal.token"
    token = admin_token(None, file)
    assert admin_token(None, file) == token
    assert (len(token) >= 32, file.stat().st_mode & 0o777) == (True, 0o600)
    assert admin_token("x" * 20, file) == "x" * 20
    for wrong in ("short", "with spaces in it all over", "ünïcödé" * 4):
        with pytest.raises(ConfigError, match="16 or more ASCII characters"):
            admin_token(wrong, file)
