"""The holder of a read token sees what the journal holds, and nothing of its administration."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rung.wiring.journals import shown_location
from tests.service.conftest import TOKEN
from tests.service.test_up import up

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.conftest import Running


def _acts(service: Running, token: str) -> list[Any]:
    """Return the act events that a listener gets when an administrator adds a token and an actor acknowledges."""
    found: list[Any] = []
    with service.client(token).stream("GET", "/api/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        service.post("/api/tokens", {"name": "ada", "role": "act"}, status=201)
        service.client(service.token("act")).post("/api/alerts/the-last/acknowledge")
        for line in lines:
            if line == "event: act":
                found += [json.loads(each[6:]) for each in islice(lines, 1)]
            if found and (found[-1] == {} or found[-1].get("subject") == "the-last"):
                return found
    raise AssertionError("the stream ended")


def test_acts_of_others_are_not_in_the_stream(service: Running) -> None:
    """A reader learns from the stream that something changed; who did what, only an administrator."""
    assert _acts(service, service.token("read")) == [{}]
    subjects = [act["subject"] for act in _acts(service, TOKEN)]
    assert {"token/ada", "the-last"} <= set(subjects)


def test_the_database_password_is_shown_to_nobody(tmp_path: Path, postgres_url: str) -> None:
    """Neither the terminal nor `/api/me` shows the password of the journal's URL."""
    at = postgres_url.replace("postgresql://rung@", "postgresql://rung:s3cretPW99@")
    assert "s3cretPW99" in at
    with up("--no-gateway", "--token", TOKEN, "--journal", at, cwd=tmp_path) as (process, address):
        assert process.stdout is not None
        printed = process.stdout.readline()
        me = httpx.get(address.partition("?")[0] + "api/me", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert (printed.strip(), me["journal"]) == (f"journal: {me['journal']}", me["journal"])
    assert me["journal"].startswith("postgresql://rung@")
    assert "s3cretPW99" not in me["journal"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/tmp/journal.db", "/tmp/journal.db"),
        ("postgresql://ada:s3cret@db.example:5432/rung?sslmode=require", "postgresql://ada@db.example:5432/rung"),
        ("postgresql://db.example/rung?user=ada&password=s3cret", "postgresql://db.example/rung"),
        ("postgresql://ada:s3@cret@db.example/rung", "postgresql://…"),
        ("postgresql://ada:s3/cret@db.example/rung", "postgresql://…"),
        ("postgresql:///rung", "postgresql:///rung"),
    ],
)
def test_locations_without_their_password(given: str, shown: str) -> None:
    """A location is shown without password and options, however the password is written."""
    assert shown_location(given) == shown
