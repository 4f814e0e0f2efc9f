"""What a person does on the page is done: retried, escalated, answered, stopped; each once, each on record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.adapters.system.provider_client import MeteredAnswer
from rung.core.domain.usage import Usage
from rung.service.spending import Spending
from rung.store.queries.incidents import incident_to_retry
from rung.store.queries.spend import charge_keys
from rung.store.recorded_calls import GATEWAY, RecordedCall, record_call
from rung.store.session_usage import session_usage
from rung.testing import HttpError, Script
from tests.service.conftest import MODELS, eventually, in_background

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.conftest import Running

BAD = rung.AttemptError("step 3 does not follow", finding="low_quality")


def waiting(service: Running, *items: Any, session: str = "s-1", **settings: Any) -> tuple[Any, Script]:
    """A recovery in this process that waits for a minute after its first failure."""
    script = Script(*items)
    slow = {"base": 60, "cap": 60, "jitter": False}
    result = in_background(
        lambda: rung.recover_sync(
            script,
            rung.Request(prompt="the task", model="small"),
            policy=rung.policy("model", models=MODELS, backoff=slow, **settings),
            journal=service.journal,
            session=rung.Session("small", session),
            breakers=rung.BreakerRegistry(),
            ask=service.journal.operator_prompt(),
        )
    )
    eventually(lambda: service.journal.read("SELECT 1 FROM session WHERE id = ? AND failures > 0", (session,)))
    return result, script


def test_the_number_of_retries_is_that_of_the_policy(service: Running) -> None:
    """A session that waits for its retry shows which one it is, of as many as its own policy allows."""
    result, _ = waiting(service, HttpError(503, "busy"), "fine", retries=5)
    (row,) = eventually(lambda: [one for one in service.get("/api/sessions")["items"] if one["status"] == "retrying"])
    assert (row["retry"]["attempt"], row["retry"]["of"]) == (1, 5)
    service.post("/api/sessions/s-1/retry", {"mode": "plain"}, 202)
    assert result().ok


def test_a_waiting_recovery_is_retried(service: Running) -> None:
    """The one who waits gets the result; the list shows it waiting, with the moment it would go on by itself."""
    result, script = waiting(service, HttpError(503, "busy"), "fine")
    (row,) = eventually(lambda: [one for one in service.get("/api/sessions")["items"] if one["status"] == "retrying"])
    assert (row["retry"]["attempt"], row["retry"]["of"]) == (1, 3)
    assert row["retry"]["until"] - row["touchedAt"] == pytest.approx(60, abs=1)
    assert row["lastFailure"]["kind"] == "overloaded"
    done = service.post("/api/sessions/s-1/retry", {"mode": "prompt", "prompt": "try the other door"}, 202)
    assert (done["how"], done["note"]) == ("ordered", "the waiting recovery continues at once")
    assert result().status == "recovered"
    assert script.requests[-1].prompt == "try the other door"
    assert [one["action"] for one in service.get("/api/audit")] == ["retry"]


def test_one_that_has_ended_is_made_again(service: Running, past: None) -> None:
    """With the error beside the task; the earlier attempt stays, and the session is no longer a failed one."""
    preview = service.get("/api/sessions/lost/retry-preview")
    assert preview["possible"]
    assert all(words in preview["prompt"] for words in ("invalid x-api-key", "the task of lost"))
    done = service.post("/api/sessions/lost/retry", {"mode": "context"}, 202)
    assert done["how"] == "replayed"
    session = eventually(lambda: _with_status(service, "lost", "succeeded"))
    assert [one["succeeded"] for one in session["attemptsMade"]] == [False, True]
    assert service.echo.asked[0].prompt == preview["prompt"]
    found = eventually(lambda: _result(service, done["incident"]))
    assert found == "done by small"


def test_the_error_context_is_added_once(service: Running, past: None) -> None:
    """A retry of a retry tells about the last failure, and has the task once."""
    service.echo.fails = [HttpError(401, "invalid x-api-key again")]
    done = service.post("/api/sessions/lost/retry", {"mode": "context"}, 202)
    eventually(lambda: _result(service, done["incident"]))
    service.post("/api/sessions/lost/retry", {"mode": "context"}, 202)
    eventually(lambda: len(service.echo.asked) == 2)
    prompt = service.echo.asked[1].prompt
    assert prompt.count("The previous attempt at this task failed.") == 1
    assert prompt.count("the task of lost") == 1
    assert "invalid x-api-key again" in prompt


def test_the_stack_of_an_exception_is_in_the_context(service: Running) -> None:
    """The preview shows where the work raised, with the causes, and without the frames of the engine."""

    def parse(_: rung.Request) -> str:
        raise ValueError("no number in the answer")

    rung.recover_sync(
        parse,
        rung.Request(prompt="the task", model="small"),
        policy=rung.policy("model", models=MODELS, retries=0, backoff={"base": 0}, report=""),
        journal=service.journal,
        session=rung.Session("small", "raised"),
    )
    assert service.journal.flush()
    prompt = service.get("/api/sessions/raised/retry-preview")["prompt"]
    assert "[begin stack" in prompt
    assert ", in parse" in prompt
    assert "/rung/engine/" not in prompt


def test_again_with_another_model(service: Running, past: None) -> None:
    """And with recovery: it fails once more, and is retried as the policy says."""
    service.admin.put("/api/retry-policy", json={"backoffBase": 0}, headers={"if-match": '"0"'})
    eventually(lambda: service.context.policies.pick().backoff.base == 0)
    service.echo.fails = [HttpError(503, "busy")]
    done = _confirmed_retry(service, "lost", {"mode": "model", "model": "large"})
    eventually(lambda: _result(service, done["incident"]) == "done by large")
    assert [request.model for request in service.echo.asked] == ["large", "large"]


def test_a_dearer_model_is_confirmed_first(service: Running, past: None) -> None:
    """The first request says what it costs, in total and as a difference, and does nothing; the token confirms it once."""
    key = {"Idempotency-Key": "k-1"}
    body = {"mode": "model", "model": "large"}
    estimate = service.post("/api/sessions/lost/retry", body, 202, **key)
    assert (estimate["how"], estimate["fromModel"], estimate["toModel"]) == ("estimated", "small", "large")
    assert (estimate["costEstimate"], estimate["costDifference"]) == (0.1, pytest.approx(0.09))
    assert "policy" in estimate["estimateBasis"]
    assert not service.echo.asked
    wrong = service.post("/api/sessions/saved/retry", {**body, "confirm": estimate["token"]}, 409)
    assert wrong["field"] == "confirm"
    other = {"mode": "model", "model": "small", "confirm": estimate["token"]}
    assert service.post("/api/sessions/lost/retry", other, 409)["field"] == "confirm"
    confirmed = {**body, "confirm": estimate["token"]}
    done = service.post("/api/sessions/lost/retry", confirmed, 202, **key)
    assert service.post("/api/sessions/lost/retry", confirmed, 202, **key) == done
    eventually(lambda: _result(service, done["incident"]) == "done by large")
    (change,) = service.get("/api/sessions/lost")["modelChanges"]
    assert (change["fromModel"], change["toModel"], change["reason"]) == ("small", "large", "manual")
    assert change["costEstimate"] == 0.1


def test_no_question_for_a_model_that_costs_less(service: Running) -> None:
    """A retry on a cheaper model is made at once, unless the policy asks for every handover."""
    rung.recover_sync(
        Script(HttpError(401, "no")),
        rung.Request(prompt="the task", model="large"),
        policy=rung.policy("model", models=MODELS, report=""),
        journal=service.journal,
        session=rung.Session("large", "dear"),
    )
    assert service.journal.flush()
    body = {"mode": "model", "model": "small"}
    assert service.post("/api/sessions/dear/retry", body, 202)["how"] == "replayed"
    service.admin.put("/api/retry-policy", json={"settings": {"confirm": "always"}}, headers={"if-match": '"0"'})
    eventually(lambda: service.context.policies.pick("shop").confirm == "always")
    eventually(lambda: service.journal.flush() and service.get("/api/sessions/dear")["status"] == "succeeded")
    assert service.post("/api/sessions/dear/retry", body, 202)["how"] == "estimated"


def test_the_cost_of_a_retry_is_booked(service: Running, past: None) -> None:
    """What a replay costs is part of the session, from the tokens that the provider reports, else from the text."""
    prices = {"large": {"input": 1_000_000.0, "output": 2_000_000.0}}
    service.context.replayers.spending = Spending(service.journal, None, prices)
    answers = [MeteredAnswer("fine", Usage(input=3, output=4)), MeteredAnswer("four", Usage())]
    service.context.replayers.replayers = [Metered(answers)]
    for dollars in (3 + 2 * 4.0, 11 + len('["the task of lost", []]') // 4 + 2.0):
        done = _confirmed_retry(service, "lost", {"mode": "model", "model": "large"})
        eventually(partial(_result, service, done["incident"]))
        assert service.journal.flush()
        assert service.get("/api/sessions/lost")["dollars"] == pytest.approx(dollars)
    assert session_usage(service.journal, "lost").calls == 2


class Metered:
    """Client that answers with these usages."""

    def __init__(self, answers: list[MeteredAnswer]) -> None:
        self.answers = answers

    def supports(self, request: rung.Request) -> bool:
        return request.model == "large"

    def __call__(self, request: rung.Request) -> MeteredAnswer:
        return self.answers.pop(0)


def test_nothing_is_retried_or_escalated_on_an_empty_budget(service: Running, past: None) -> None:
    """With nothing left, a retry and an escalation are refused, also where the cost is unknown."""
    service.admin.put("/api/budgets", json={"session": 0}, headers={"if-match": '"0"'})
    preview = service.get("/api/sessions/lost/retry-preview")
    assert (preview["possible"], preview["budgetLeft"]) == (False, 0.0)
    assert "budget of $0.00 for this session is spent" in preview["whyNot"]
    for body in ({}, {"mode": "model", "model": "unheard-of"}):
        refused = service.post("/api/sessions/lost/retry", body, 409)
        assert "budget of $0.00 for this session is spent" in refused["detail"]
    refused = service.post("/api/sessions/lost/escalate", {"toModel": "unheard-of"}, 409)
    assert "budget of $0.00 for this session is spent" in refused["detail"]
    assert not service.echo.asked


def test_the_budget_of_a_gateway_key_counts(service: Running) -> None:
    """A session that a key of the gateway has named cannot be retried when the key's budget is spent."""
    digest = "0123456789ab" + "c" * 52
    session = f"{digest[:12]}/s-1"
    rung.recover_sync(
        Script(HttpError(401, "no")), rung.Request(prompt="x", model="small"),
        policy=rung.policy("model", report=""), journal=service.journal, session=rung.Session("small", session),
    )  # fmt: skip
    assert service.journal.flush()
    service.context.replayers.spending = Spending(service.journal, keys={digest: 1.0})
    assert service.get(f"/api/sessions/{session}/retry-preview")["budgetLeft"] == 1.0
    charge_keys(service.journal, {digest: 1.0}, 1.0)
    assert "for this key is spent" in service.post(f"/api/sessions/{session}/retry", {}, 409)["detail"]


def test_a_prompt_in_place_of_a_request_that_is_not_recorded(service: Running) -> None:
    """What was too long, or held a secret, is retried with a prompt that the person gives."""
    secret = "the key is sk-ant-" + "api03-" + "a1B2c3D4e5F6g7H8" * 3
    for name, prompt in (("long", "x" * 200_000), ("secret", secret)):
        rung.recover_sync(
            Script(HttpError(401, "no")), rung.Request(prompt=prompt, model="small"),
            policy=rung.policy("model", report=""), journal=service.journal, session=rung.Session("small", name),
        )  # fmt: skip
        assert service.journal.flush()
        preview = service.get(f"/api/sessions/{name}/retry-preview")
        assert not preview["possible"]
        assert "send a prompt of your own" in preview["whyNot"]
        service.post(f"/api/sessions/{name}/retry", {"mode": "context"}, 409)
        done = service.post(f"/api/sessions/{name}/retry", {"mode": "prompt", "prompt": "shorter"}, 202)
        eventually(partial(_result, service, done["incident"]))
        assert service.echo.asked[-1].prompt == "shorter"


def _confirmed_retry(service: Running, session: str, body: dict[str, Any]) -> Any:
    token = service.post(f"/api/sessions/{session}/retry", body, 202)["token"]
    return service.post(f"/api/sessions/{session}/retry", {**body, "confirm": token}, 202)


def _with_status(service: Running, session: str, status: str) -> Any:
    found = service.get(f"/api/sessions/{session}")
    return found if found["status"] == status else None


def _result(service: Running, incident: str) -> Any:
    answer = service.admin.get(f"/api/incidents/{incident}")
    return answer.json()["result"] if answer.status_code == 200 else None


def test_what_cannot_be_retried_says_why(service: Running, past: None) -> None:
    """Beside the button: which fact is missing, and what to do."""
    service.context.replayers.replayers.clear()
    assert "ANTHROPIC_API_KEY" in service.get("/api/sessions/lost/retry-preview")["whyNot"]
    refused = service.post("/api/sessions/lost/retry", {}, 409)
    assert "no client for small is configured" in refused["detail"]
    assert service.post("/api/sessions/none/retry", {}, 404)["detail"] == "there is no session 'none'"
    for body, field in (({"mode": "model"}, "model"), ({"mode": "prompt"}, "prompt"), ({"mode": "x"}, "mode")):
        assert service.post("/api/sessions/lost/retry", body, 422)["field"] == field


def test_once(service: Running, past: None) -> None:
    """A key that comes twice is answered twice and acted on once; for something else it is refused."""
    key = {"Idempotency-Key": "k-1"}
    one = service.post("/api/sessions/lost/retry", {}, 202, **key)
    assert service.post("/api/sessions/lost/retry", {}, 202, **key) == one
    assert len(service.get("/api/audit")) == 1
    service.post("/api/sessions/lost/retry", {"mode": "prompt", "prompt": "x"}, 422, **key)
    service.context.replayers.replayers.clear()
    service.post("/api/sessions/saved/retry", {}, 409, **{"Idempotency-Key": "k-2"})
    service.post("/api/sessions/saved/retry", {}, 409, **{"Idempotency-Key": "k-2"})  # nothing was done: try again


def test_escalation(service: Running) -> None:
    """First what it would cost, then done: what waits goes on with the new model, and so does the next call."""
    result, script = waiting(service, HttpError(503, "busy"), "fine")
    estimate = service.post("/api/sessions/s-1/escalate", {})
    assert (estimate["fromModel"], estimate["toModel"], estimate["costEstimate"]) == ("small", "large", 0.1)
    assert (estimate["done"], len(script.requests)) == (False, 1)
    done = service.post("/api/sessions/s-1/escalate", {"confirm": estimate["token"]})
    assert done["done"]
    assert result().status == "recovered"
    assert script.requests[-1].model == "large"
    (change,) = service.get("/api/sessions/s-1")["modelChanges"]
    assert (change["reason"], change["by"], change["toModel"]) == ("manual", "admin", "large")
    eventually(lambda: _model_of_the_next_call(service) == "large")


def _model_of_the_next_call(service: Running) -> str:
    script = Script("fine")
    request, session = rung.Request(prompt="x", model="small"), rung.Session("small", "s-1")
    rung.recover_sync(script, request, journal=service.journal, session=session)
    return script.requests[0].model


def test_escalation_that_is_not_possible(service: Running, past: None) -> None:
    """No model above, a budget that is spent, a token of something else: said, and nothing changed."""
    token = service.post("/api/sessions/lost/escalate", {})["token"]
    assert "not of this session" in service.post("/api/sessions/saved/escalate", {"confirm": token}, 409)["detail"]
    service.admin.put("/api/budgets", json={"session": 0.05}, headers={"if-match": '"0"'})
    assert "remaining budget is $0.05" in service.post("/api/sessions/lost/escalate", {}, 409)["detail"]
    assert service.journal.runs.received("model/lost") is None


def test_an_escalation_to_a_model_without_a_price_is_refused_under_a_limit(service: Running, past: None) -> None:
    """Under a spend limit the gateway would reject the next call: the escalation is refused, with the setting that helps."""
    _call_of_gateway(service, "by-gateway")
    model = "unheard-of"
    for session in ("lost", "by-gateway"):
        service.post(f"/api/sessions/{session}/escalate", {"toModel": model})
    service.admin.put("/api/budgets", json={"session": 1.0}, headers={"if-match": '"0"'})
    program = service.post("/api/sessions/lost/escalate", {"toModel": model}, 409)["detail"]
    assert "set its `cost` in the policy's models, or `input` and `output`" in program
    gateway = service.post("/api/sessions/by-gateway/escalate", {"toModel": model}, 409)["detail"]
    assert "the price of unheard-of is unknown" in gateway
    assert "[gateway.prices.'unheard-of']" in gateway
    assert "policy" not in gateway
    assert (
        "[gateway.prices" in service.post("/api/sessions/by-gateway/escalate", {}, 409)["detail"]
    )  # its `cost` is set
    prices = {model: {"input": 1.0, "output": 1.0}}
    service.context.replayers.spending = Spending(service.journal, None, prices)
    assert service.post("/api/sessions/by-gateway/escalate", {"toModel": model})["token"]


def _call_of_gateway(service: Running, session: str) -> None:
    """Record a successful call as the gateway does: its body is known by its digest."""
    request = rung.Request(model="small", params={"wire": "anthropic", "body": "0" * 32, "room": 0})
    policy = rung.policy("call", report="")
    rung.recover_sync(
        Script("done"), request, policy=policy, journal=service.journal, session=rung.Session("small", session)
    )
    assert service.journal.flush()


def test_an_escalation_of_a_session_without_usage_is_estimated_by_its_request(service: Running, past: None) -> None:
    """Where no call of a session has reported tokens, the size of its last request is the basis, as for a retry."""
    prices = {"dear": {"input": 1_000_000.0, "output": 2_000_000.0}}
    service.context.replayers.spending = Spending(service.journal, None, prices)
    quote = service.post("/api/sessions/lost/escalate", {"toModel": "dear"})
    assert quote["estimateBasis"].startswith("the size of the request")
    assert quote["costEstimate"] > 2_000


def test_an_estimate_knows_the_output_limit_of_the_request(service: Running) -> None:
    """A request that allows ten tokens is not estimated with a thousand, whether a program or the gateway made it."""
    prices = {"dear": {"input": 0.0, "output": 1_000_000.0}}
    service.context.replayers.spending = Spending(service.journal, None, prices)
    limited = rung.Request(prompt="Say yes.", model="small", max_tokens=10)
    wire = rung.Request(model="small", params={"wire": "messages", "body": "0" * 32, "room": 0})
    for session, request in (("of-program", limited), ("of-gateway", wire)):
        rung.recover_sync(
            Script(HttpError(400, "refused")),
            request,
            policy=rung.policy("call", report=""),
            journal=service.journal,
            session=rung.Session("small", session),
        )
    assert service.journal.flush()
    incident = incident_to_retry(service.journal, "of-gateway")
    assert incident is not None
    body = json.dumps({"model": "small", "max_tokens": 10, "messages": [{"role": "user", "content": "Say yes."}]})
    content = {"body": body, "upstream": "anthropic", "client_key": False}
    record_call(service.journal, "of-gateway", incident, RecordedCall(GATEWAY, content), 3_600.0)
    for session in ("of-program", "of-gateway"):
        quote = service.post(f"/api/sessions/{session}/escalate", {"toModel": "dear"})
        assert (quote["costEstimate"], "an answer of 10 tokens" in quote["estimateBasis"]) == (10.0, True)


@pytest.mark.parametrize(
    "forged",
    [
        "{until}.{mark}.grand",
        "{later}.{mark}.{to}",
        "{until}.{other}.{to}",
        "{until}.ü.{to}",
        "{until}..{to}",
        "",
        "x",
        "1.2.3",
    ],
)
def test_a_forged_estimate_is_refused(service: Running, past: None, forged: str) -> None:
    """Another model, a later end or another signature, whatever characters it holds: refused, and nothing changed."""
    until, mark, to = service.post("/api/sessions/lost/escalate", {})["token"].split(".", 2)
    other = ("1" if mark[0] == "0" else "0") + mark[1:]
    token = forged.format(until=until, later=f"{until}0", mark=mark, other=other, to=to) or "."
    assert "too old" in service.post("/api/sessions/lost/escalate", {"confirm": token}, 409)["detail"]
    assert service.journal.runs.received("model/lost") is None


def test_a_question_is_answered(service: Running) -> None:
    """It stands in the inbox, with what it would cost; the answer reaches the one who waits."""
    script = Script(BAD, BAD, "fine")
    result = in_background(
        lambda: rung.recover_sync(
            script,
            rung.Request(prompt="the task", model="small"),
            policy=rung.policy("model", models=MODELS, confirm="always", backoff={"base": 0}),
            journal=service.journal,
            session=rung.Session("small", "s-1"),
            ask=service.journal.operator_prompt(),
        )
    )
    (item,) = eventually(lambda: service.get("/api/inbox"))
    assert (item["kind"], item["ask"]["estimate"]) == ("ask", 0.1)
    incident = item["incident"]
    assert service.get(f"/api/incidents/{incident}")["ask"]["question"] == item["detail"]
    assert [one["id"] for one in service.get("/api/sessions", status="waiting")["items"]] == ["s-1"]
    wrong = service.post(f"/api/incidents/{incident}/answer", {"option": "maybe"}, 422)
    assert "approve" in wrong["detail"]
    assert "answer it instead" in service.post("/api/sessions/s-1/retry", {}, 409)["detail"]
    service.post(f"/api/incidents/{incident}/answer", {"option": "approve"})
    service.post(f"/api/incidents/{incident}/answer", {"option": "approve"}, 409)
    assert result().status == "recovered"
    assert script.requests[-1].model == "large"
    assert not service.get("/api/inbox")
    (change,) = service.get("/api/sessions/s-1")["modelChanges"]
    assert (change["toModel"], change["reason"], change["by"]) == ("large", "manual", "admin")


def test_an_answer_to_a_process_that_is_gone_says_what_continues_it(service: Running, tmp_path: Path) -> None:
    """The question and the answer's result name the command that continues; the resumed run takes the answer."""
    (tmp_path / "rung.toml").write_text('[policy]\nladder = "call"\n')
    script = "test -e fixed && exit 0; echo '401 invalid api key' >&2; exit 1"
    rung_run = [sys.executable, "-m", "rung", "run", "--run-id", "job 7", "--ask-service"]
    command = [*rung_run, "--journal", str(tmp_path / "journal.db"), "--idempotent", "--", "sh", "-c", script]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, start_new_session=True)
    (item,) = eventually(lambda: service.get("/api/inbox"))
    assert (item["incident"], item["ask"]["note"]) == ("job 7", "")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (item,) = service.get("/api/inbox")
    assert item["ask"]["note"].startswith("no process waits for the answer: `rung resume 'job 7'`")
    (tmp_path / "fixed").touch()
    answered = service.post("/api/incidents/job 7/answer", {"option": "retry"})
    assert answered["note"].startswith("the answer is recorded; no process waits for the answer: `rung resume 'job 7'`")
    resumed = subprocess.run(
        [sys.executable, "-m", "rung", "resume", "job 7", "--journal", str(tmp_path / "journal.db")],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    assert not service.get("/api/inbox")


def test_an_ambiguity_is_answered_in_words(service: Running) -> None:
    """The note is the answer in words; without one, or with an unknown option, the answer is refused."""
    script = Script(rung.AttemptError("which one? options: a, b", finding="strategic_ambiguity"), "done")
    ask = service.journal.operator_prompt()
    policy = rung.policy("pipeline", report="")
    result = in_background(
        lambda: rung.recover_sync(script, "the task", policy=policy, journal=service.journal, ask=ask)
    )
    (item,) = eventually(lambda: service.get("/api/inbox"))
    assert [one["id"] for one in item["ask"]["options"]] == ["answer:a", "answer:b", "answer", "stop"]
    where = f"/api/incidents/{item['incident']}/answer"
    assert service.post(where, {"option": "answer"}, 422)["detail"].startswith("note:")
    assert "must be one of" in service.post(where, {"option": "answer: "}, 422)["detail"]
    service.post(where, {"option": "answer", "note": "neither: take c"})
    assert result().status == "recovered"
    assert "The answer:\nneither: take c\n" in script.requests[-1].prompt


def test_stopping(service: Running) -> None:
    """It ends at once where it waits; one that has ended cannot be stopped."""
    result, _ = waiting(service, HttpError(503, "busy"), "never")
    (row,) = service.get("/api/incidents", status="open")["items"]
    service.post(f"/api/incidents/{row['id']}/cancel")
    outcome = result()
    assert outcome.status == "partial"
    assert outcome.reason.startswith("stopped by admin; last error: ")
    assert service.journal.flush()
    assert "the incident has ended: partial" in service.post(f"/api/incidents/{row['id']}/cancel", None, 409)["detail"]


def test_an_incident_whole(service: Running, past: None) -> None:
    """The ladder with what was done on it, the timeline, the diff, and the contract."""
    (row,) = service.get("/api/incidents", session="saved")["items"]
    found = service.get(f"/api/incidents/{row['id']}")
    first = found["rungs"][0]
    assert (first["name"], first["state"], first["used"], first["tries"]) == ("retry", "climbed", 1, 3)
    assert [one["state"] for one in found["rungs"][1:]] == ["ahead"] * (len(found["rungs"]) - 1)
    assert [one["subject"] for one in found["timeline"]][:2] == ["opened", "attempt 1"]
    assert found["outcome"]["status"] == "recovered"
    assert service.admin.get("/api/incidents/none").status_code == 404


def test_the_inbox(service: Running, past: None) -> None:
    """Budgets and blocked work stand in it until somebody has seen them."""
    service.admin.put("/api/budgets", json={"monthly": 0, "projects": {"shop": 100}}, headers={"if-match": '"0"'})
    rung.recover_sync(
        Script(rung.AttemptError("which way?", finding="strategic_ambiguity")),
        "x",
        policy=rung.policy("pipeline", report=""),
        journal=service.journal,
    )
    service.journal.flush()
    kinds = [item["kind"] for item in service.get("/api/inbox")]
    assert "blocked" in kinds
    assert "Blocked: it needs a person to go on" in {item["title"] for item in service.get("/api/inbox")}
    for item in service.get("/api/inbox"):
        service.post(f"/api/alerts/{item['id']}/acknowledge")
    assert service.get("/api/inbox") == []
    budgets = service.get("/api/budgets")
    assert [item["scope"] for item in budgets["items"]] == ["month", "project"]


PLAN_LIMIT = rung.AttemptError('{"error": {"type": "usage_limit_reached", "resets_in_seconds": 7200}}', status=429)


def test_a_parked_recovery_is_shown_and_woken_on_another_model(service: Running) -> None:
    """Session, incident and inbox say until when; woken with a model, it goes on there at once."""
    result, script = waiting(service, PLAN_LIMIT, "fine", park=21_600.0)
    (row,) = eventually(lambda: [one for one in service.get("/api/sessions")["items"] if one["status"] == "parked"])
    assert row["parkedUntil"] - row["touchedAt"] == pytest.approx(7_200, abs=5)
    (incident,) = service.get("/api/incidents", status="open")["items"]
    assert incident["parkedUntil"] == pytest.approx(row["parkedUntil"])
    rungs = {one["name"]: one for one in service.get(f"/api/incidents/{incident['id']}")["rungs"]}
    assert (rungs["park"]["action"], rungs["park"]["state"]) == ("park", "here")
    assert "limit reopens" in rungs["park"]["about"]
    assert "failing service" in rungs["wait"]["about"]
    (item,) = [one for one in service.get("/api/inbox") if one["kind"] == "parked"]
    assert (item["incident"], item["parkedUntil"]) == (incident["id"], incident["parkedUntil"])
    service.post(f"/api/incidents/{incident['id']}/wake", {"model": "large"})
    assert result().status == "recovered"
    assert script.requests[-1].model == "large"
    assert service.journal.flush()
    (ended,) = service.get("/api/incidents")["items"]
    assert ended["parkedUntil"] is None
    assert "ended" in service.post(f"/api/incidents/{incident['id']}/wake", {}, 409)["detail"]
    assert [one["action"] for one in service.get("/api/audit")] == ["wake"]


def test_only_a_parked_recovery_is_woken(service: Running) -> None:
    """One that waits for a retry is not parked; stopping a parked one ends it at once."""
    _, _ = waiting(service, HttpError(503, "busy"), "fine", session="s-2")
    (row,) = service.get("/api/incidents", status="open")["items"]
    assert "not parked" in service.post(f"/api/incidents/{row['id']}/wake", {}, 409)["detail"]
    result, _ = waiting(service, PLAN_LIMIT, "never", session="s-3", park=21_600.0)
    (parked,) = eventually(lambda: [one for one in service.get("/api/inbox") if one["kind"] == "parked"])
    assert not service.post(f"/api/incidents/{parked['incident']}/cancel")["note"]
    assert result().reason.startswith("stopped by admin; last error: ")
    service.post(f"/api/incidents/{row['id']}/cancel")
