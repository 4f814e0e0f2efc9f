"""What the gateway remembers of one key's requests never acts on another key's."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import rung
from tests.gateway.behind import Behind
from tests.security.tenant.shared import ALICE, BOB, Shared, asked, key_row
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from rung.gateway.detector_port import RequestView, ResponseView

LADDER = {"models": ["cheap", "opus"], "escalate_after": 0}
BUSY = [{"fault": "overloaded", "model": "cheap"}]
SESSION = {"x-rung-session": "shared-name"}


def test_a_fallback_of_one_key_moves_no_other_key() -> None:
    """A session that falls back to another model for one key stays where it was for a key with the same opening."""
    keys = [key_row(ALICE), key_row(BOB, models=["cheap"])]
    with Shared(BUSY, policy=LADDER, keys=keys) as behind:
        for headers in ({}, SESSION):
            assert behind.post("/v1/messages", ALICE, json=asked(), headers=headers).status_code == 200
            assert behind.post("/v1/messages", BOB, json=asked(), headers=headers).status_code == 529
        models = [(call.model, call.headers["x-api-key"]) for call in behind.lab.calls]
        assert [model for model, _ in models].count("opus") == 2


def test_a_fallback_of_one_credential_moves_no_other() -> None:
    """Without gateway keys, sessions are separated by the clients' own credentials."""
    with Behind(BUSY, policy=LADDER) as behind, behind.http() as client:
        for name in ("alice", "bob"):
            for _ in range(2):
                client.post("/v1/messages", json=asked(), headers={"x-api-key": name, **SESSION})
        assert [call.model for call in behind.lab.calls] == ["cheap", "opus", "opus"] * 2


def test_a_pinned_model_that_a_key_may_not_use(tmp_path: Path) -> None:
    """A model that an operator sets for a session binds a key only if the key may use it, in recoveries, too."""
    journal = rung.journal(tmp_path / "j.db")
    rows = [key_row(ALICE), key_row(BOB, models=["cheap"])]
    names = {key: f"{key_row(key)['hash'][:12]}/shared-name" for key in (ALICE, BOB)}
    with Shared(journal=journal, keys=rows) as behind:
        for name in names.values():
            journal.runs.send(f"model/{name}", {"model": "opus"})

        def model_of(key: str) -> str:
            assert behind.post("/v1/messages", key, json=asked(), headers=SESSION).status_code == 200
            return behind.lab.calls[-1].model

        wait_until(lambda: model_of(ALICE) == "opus", pause=0.2)  # the gateway reads both pins at once
        assert model_of(BOB) == "cheap"
        behind.lab.use([{"fault": "overloaded", "request": 1}])
        assert model_of(BOB) == "cheap"
        assert behind.attempts == 2


def test_an_order_for_a_model_that_a_key_may_not_use(tmp_path: Path) -> None:
    """An operator's order to retry on a model that the key may not use is refused when the attempt is made."""
    journal = rung.journal(tmp_path / "j.db")
    rules = [{"fault": "rate_limit", "retry_after": 30}]
    with Shared(rules, journal=journal, keys=[key_row(BOB, models=["cheap"])]) as behind:
        got: list[httpx.Response] = []
        work = Thread(target=lambda: got.append(behind.post("/v1/messages", BOB, json=asked())))
        work.start()
        found = wait_until(lambda: journal.read("SELECT id FROM incident WHERE status = 'open'"))
        journal.runs.send(f"order/{found[0][0]}", {"action": "retry", "by": "ada", "model": "opus"})
        work.join(60)
        assert (got[0].status_code, got[0].headers["x-rung-failure"]) == (429, "permission_denied")
        assert [call.model for call in behind.lab.calls] == ["cheap"]


def test_a_summary_model_that_a_key_may_not_use() -> None:
    """The gateway's summary model is not used for a key that may not use it."""
    long = [{"role": role, "content": f"{n} " * 600} for n in range(10) for role in ("user", "assistant")]
    rules = [{"fault": "overflow", "window": 1_500, "model": "cheap"}]
    body = asked(messages=[*long, {"role": "user", "content": "count to 40 as apple"}])
    with Shared(rules, keys=[key_row(BOB, models=["cheap"])], summary_model="opus") as behind:
        behind.post("/v1/messages", BOB, json=body)
        assert {call.model for call in behind.lab.calls} == {"cheap"}


class Remembering:
    """Detector that remembers the sessions it saw."""

    def __init__(self) -> None:
        self.sessions: list[str] = []

    def on_request(self, request: RequestView) -> None:
        self.sessions.append(request.session)

    def on_response(self, request: RequestView, response: ResponseView) -> None:
        return


def test_detectors_see_sessions_by_key() -> None:
    """Detectors such as the loop guard get another session name for each key."""
    detector = Remembering()
    with Shared(detectors=(detector,), keys=[key_row(ALICE), key_row(BOB)]) as behind:
        for headers in ({}, SESSION):
            for key in (ALICE, BOB, ALICE):
                assert behind.post("/v1/messages", key, json=asked(), headers=headers).status_code == 200
        seen = detector.sessions
        assert len(set(seen)) == 4
        assert (seen[0], seen[3]) == (seen[2], seen[5])


def test_session_budgets_by_key() -> None:
    """One key cannot spend, or exhaust, the session budget of another key by naming its session."""
    prices = {"cheap": {"input": 0.0, "output": 1_000.0}}  # $0.04 for an answer
    keys = [key_row(ALICE), key_row(BOB)]
    with Shared(keys=keys, prices=prices, budgets={"session": 0.05}) as behind:
        statuses = [
            behind.post("/v1/messages", key, json=asked(max_tokens=40), headers=SESSION).status_code
            for key in (ALICE, ALICE, ALICE, BOB)
        ]
        assert statuses[0] == statuses[-1] == 200
        assert statuses[2] == 429


def test_a_project_of_other_keys() -> None:
    """A key without a project cannot count its requests for a project that belongs to other keys."""
    with Shared(keys=[key_row(ALICE, project="site"), key_row(BOB)]) as behind:
        for path, headers in (("/v1/messages", {"x-rung-project": "site"}), ("/p/site/v1/messages", {})):
            assert behind.post(path, ALICE, json=asked(), headers=headers).status_code == 200
            got = behind.post(path, BOB, json=asked(), headers=headers)
            assert got.status_code == 403
            assert "belongs to other keys" in got.json()["error"]["message"]
        assert behind.post("/p/own/v1/messages", BOB, json=asked()).status_code == 200
