"""A web page in the user's browser cannot sign in at the service, nor keep its owner out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from rung.service.auth import MAX_FAILED_LOGINS
from tests.service.conftest import TOKEN

if TYPE_CHECKING:
    from tests.service.conftest import Running

OPENED_BY_THE_USER = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site", None])
def test_no_sign_in_by_a_foreign_get(service: Running, site: str | None) -> None:
    """A GET that the browser does not call the user's own sets no cookie, even with a valid token."""
    browser = service.client(follow_redirects=False)
    answer = browser.get("/", params={"token": TOKEN}, headers={"sec-fetch-site": site} if site else {})
    assert (answer.status_code, answer.headers["location"]) == (303, "./#/sign-in")
    assert "set-cookie" not in answer.headers


def test_no_sign_in_by_a_subresource(service: Running) -> None:
    """Only a document that the user opens signs in: an image or a frame on any page does not."""
    browser = service.client(follow_redirects=False)
    for kind in ("image", "iframe", "empty"):
        headers = {**OPENED_BY_THE_USER, "sec-fetch-dest": kind}
        assert "set-cookie" not in browser.get("/", params={"token": TOKEN}, headers=headers).headers


def test_images_do_not_lock_the_owner_out(service: Running) -> None:
    """Wrong tokens in image addresses count for nobody: the owner's cookie, token and address still work."""
    owner = service.browser()
    page = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}
    for _ in range(2 * MAX_FAILED_LOGINS):
        httpx.get(f"{service.url}/?token=x", headers=page)
    assert owner.get("/api/me").status_code == 200
    assert service.admin.get("/api/me").status_code == 200
    assert service.client("wrong").get("/api/me").status_code == 401


def test_wrong_tokens_never_lock_right_ones_out(service: Running) -> None:
    """After any number of wrong tokens the right one and its cookie pass; wrong ones are told to wait."""
    owner = service.browser()
    for _ in range(MAX_FAILED_LOGINS):
        assert service.client("wrong").get("/api/me").status_code == 401
    for limited in (
        service.client("wrong").get("/api/me"),
        service.client().post("/api/login", json={"token": "wrong"}),
    ):
        assert (limited.status_code, int(limited.headers["retry-after"]) > 0) == (429, True)
    assert owner.get("/api/me").status_code == 200
    assert service.admin.get("/api/me").status_code == 200
    assert service.browser().get("/api/me").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "["}, 421),
        ({"host": "[::1"}, 421),
        ({"host": "x@127.0.0.1"}, 421),
        ({"host": "127.0.0.1:port"}, 421),
        ({"origin": "http://["}, 403),
        ({"origin": "ftp://127.0.0.1"}, 403),
    ],
)
def test_names_that_are_no_hosts(service: Running, headers: dict[str, str], status: int) -> None:
    """A Host or Origin that cannot be parsed is a foreign one, never a fault."""
    assert service.admin.get("/api/me", headers=headers).status_code == status
