"""Failed calls of the gateway are recorded, sealed, and made again when a person asks: by a gateway, with its keys."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

import rung
from rung.core.domain.events import Ordered
from rung.core.domain.incident import Incident
from rung.core.policy.parser import parse_policy_file
from rung.gateway.keys import new_key
from rung.gateway.settings import settings_from
from rung.service.api_problem import ApiProblem
from rung.service.manual_retry import ManualRetries
from rung.service.replay import Replayers
from rung.service.retry_ways import RetryChoice
from rung.service.spending import Spending
from rung.store.session_usage import session_usage
from rung.wiring.policies import PolicyStore
from tests.gateway.behind import TIMEOUTS, WHOLE, WIRES, Behind, ask
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from rung.gateway.settings import GatewaySettings
    from rung.store.journal.journal import Journal

SESSION = "s-1"
SECRET = "a plan that nobody may read"
OWN_KEY = "sk-of-the-gateway"
GIVEN_KEY = "sk-given-for-one-retry"
FAILS_ONCE = [{"fault": "bad_request", "times": 1}]
PRICES = {"small": {"input": 1_000.0, "output": 1_000.0}}


class OwnKey(Behind):
    """A gateway with a key of its own for its upstreams."""

    def settings(self, **more: Any) -> GatewaySettings:
        both = {"key_env": "UPSTREAM_KEY", "url": self.lab.url}
        upstreams = {"claude": {"wire": "anthropic", **both}, "gpt": {"wire": "openai", **both}}
        table = {"upstreams": upstreams, "timeouts": TIMEOUTS, "port": 0, **self._settings, **more}
        recording = table.pop("recording", None)
        return settings_from(table, parse_policy_file({"policy": self.policy_table}), recording=recording)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """A journal, which its gateway closes."""
    monkeypatch.setenv("RUNG_JOURNAL_KEY", "a key that is only for this test")
    monkeypatch.setenv("UPSTREAM_KEY", OWN_KEY)
    return rung.journal(tmp_path / "journal.db")


def fail(behind: Behind, journal: Journal, wire: str = "messages", **more: Any) -> None:
    """Make a call of a session that ends with an error for its client, and wait until it can be retried."""
    told: Any = [{"role": "user", "content": f"{SECRET}: count to 40 as apple"}]
    given = {"input": told[0]["content"]} if wire == "responses" else {"messages": told}
    headers = {"x-rung-session": SESSION, "x-rung-project": "shop", **more.pop("headers", {})}
    with suppress(anthropic.APIError, openai.APIError):
        ask(behind, wire, **{"stream": False, "extra_headers": headers, **given, **more})
        raise AssertionError("the call succeeds")
    wait_until(lambda: journal.read("SELECT 1 FROM message WHERE topic LIKE 'replayer/%'"))
    assert journal.flush()


def acts(journal: Journal, **spending: Any) -> ManualRetries:
    replayers = Replayers(journal, (), Spending(journal, **spending))
    return ManualRetries(journal, PolicyStore(journal, parse_policy_file({})), replayers)


def again(journal: Journal, choice: RetryChoice, session: str = SESSION) -> Any:
    """Retry a session as a person does; return the result that the page shows."""
    retries = acts(journal)
    name = retries.carry_out(retries.plan(session, choice, "ada"), choice)
    result = wait_until(lambda: journal.runs.received(f"result/{name}"))
    assert journal.flush()
    return {"incident": name, **result}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_failed_call_is_made_again_with_its_error(journal: Journal, wire: str, stream: bool) -> None:
    """The request is sent as it was, with the error as a further turn, with the gateway's own key; its cost is booked."""
    with OwnKey(FAILS_ONCE, journal=journal, prices=PRICES) as behind:
        fail(behind, journal, wire, stream=stream)
        first = behind.lab.calls[-1].json
        result = again(journal, RetryChoice("context"))
        assert (result["ok"], result["text"]) == (True, WHOLE)
        made = behind.lab.calls[-1]
        sent = str(made.json)
        assert sent.count(SECRET) == 1
        assert sent.count("The previous attempt at this task failed.") == 1
        assert not made.stream
        assert made.json["model"] == first["model"]
        assert OWN_KEY in str(made.headers)
        wait_until(lambda: session_usage(journal, SESSION).calls == 1)
        ((dollars, status),) = journal.read("SELECT dollars, status FROM session WHERE id = ?", (SESSION,))
        assert (dollars > 0, status) == (True, "succeeded")
        ordered = [event.by for event in journal.events(result["incident"]) if isinstance(event, Ordered)]
        assert ordered == ["ada"]


def test_the_first_call_on_a_model_is_booked(journal: Journal) -> None:
    """A retry on a model that the gateway has not used yet waits for its list price, so that it is not booked as free."""
    with OwnKey(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
        assert again(journal, RetryChoice("model", model="claude-opus-4-1"))["ok"]
        ((dollars,),) = journal.read("SELECT dollars FROM session WHERE id = ?", (SESSION,))
        assert dollars > 0


def test_a_call_that_ends_before_its_order_is_made_again(journal: Journal) -> None:
    """A retry that was planned while the call was recovered, and is ordered when it has ended, is made as a new incident."""
    with OwnKey(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
        retries, choice = acts(journal), RetryChoice("context")
        planned = retries.plan(SESSION, choice, "ada")
        late = planned._replace(incident=Incident.of(planned.events[:-1]))
        assert late.incident.status is None
        name = retries.carry_out(late, choice)
        assert name != planned.incident.id
        assert wait_until(lambda: journal.runs.received(f"result/{name}"))["ok"]


def test_the_record_is_sealed(journal: Journal) -> None:
    """Neither the request nor a client's key can be read in the journal."""
    with Behind(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
        ((body,),) = wait_until(lambda: journal.read("SELECT body FROM message WHERE topic LIKE 'call/%'"))
        assert "sealed:1:" in body
        content = "".join(text for (text,) in journal.read("SELECT body FROM message UNION ALL SELECT body FROM event"))
        assert SECRET not in content
        assert "sk-ant-test" not in content


def test_a_client_that_used_its_own_key_is_asked_for_one(journal: Journal) -> None:
    """Its key is not stored: the retry is refused without one, and the one that is given is used once, and kept nowhere."""
    with Behind(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
        retries = acts(journal)
        incident, _ = retries.incident(SESSION)
        assert retries.replayers.needs(incident) == ("apiKey",)
        with pytest.raises(ApiProblem, match="the client used its own key, which is not stored") as refused:
            again(journal, RetryChoice("context"))
        assert (refused.value.status, refused.value.field) == (409, "apiKey")
        assert "key_env" in refused.value.detail
        assert again(journal, RetryChoice("context", api_key=GIVEN_KEY))["ok"]
        assert GIVEN_KEY in str(behind.lab.calls[-1].headers)
        assert "sk-ant-test" not in str(behind.lab.calls[-1].headers)
        content = "".join(text for (text,) in journal.read("SELECT body FROM message UNION ALL SELECT body FROM event"))
        assert GIVEN_KEY not in content


def test_a_retry_of_a_retry_adds_the_error_once(journal: Journal) -> None:
    """The second retry tells about the second failure, in a request that is otherwise the client's."""
    with OwnKey([{"fault": "bad_request", "times": 2}], journal=journal) as behind:
        fail(behind, journal)
        assert not again(journal, RetryChoice("context"))["ok"]
        assert again(journal, RetryChoice("context"))["ok"]
        sent = str(behind.lab.calls[-1].json)
        assert sent.count("The previous attempt at this task failed.") == 1
        assert sent.count(SECRET) == 1


def test_another_model_and_a_prompt_of_ones_own(journal: Journal) -> None:
    """The recorded request goes to the model that the person chooses; a prompt follows the conversation."""
    with OwnKey(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
        assert again(journal, RetryChoice("prompt", model="large", prompt="count to 40 as apple, slowly"))["ok"]
        made = behind.lab.calls[-1]
        assert made.model == "large"
        assert "slowly" in str(made.json["messages"][-1])


@pytest.mark.parametrize("recording", [{"requests": False}, {"max_bytes": 10}])
def test_without_a_record_it_says_why_and_takes_a_prompt(journal: Journal, recording: dict[str, Any]) -> None:
    """With recording off, or a request that is too large, nothing is kept; a prompt of one's own can still be sent."""
    with OwnKey(FAILS_ONCE, journal=journal, recording=recording) as behind:
        fail(behind, journal)
        assert not journal.read("SELECT 1 FROM message WHERE topic LIKE 'call/%'")
        with pytest.raises(ApiProblem, match="was not recorded"):
            again(journal, RetryChoice("context"))
        result = again(journal, RetryChoice("prompt", prompt="count to 40 as apple"))
        assert (result["ok"], result["text"]) == (True, WHOLE)
        assert SECRET not in str(behind.lab.calls[-1].json)


def test_no_gateway_no_retry(journal: Journal, tmp_path: Path) -> None:
    """When no gateway runs on the journal, it says so and how to start one."""
    with OwnKey(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
    with rung.journal(tmp_path / "journal.db") as later, pytest.raises(ApiProblem, match="no gateway runs on this"):
        again(later, RetryChoice("context"))


def test_a_record_of_another_account(journal: Journal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who does not have the key cannot make the call again, and is told which one is missing."""
    with OwnKey(FAILS_ONCE, journal=journal) as behind:
        fail(behind, journal)
        monkeypatch.setenv("RUNG_JOURNAL_KEY", "the key of somebody else, who reads")
        with (
            rung.journal(tmp_path / "journal.db") as other,
            pytest.raises(ApiProblem, match="sealed under another key"),
        ):
            again(other, RetryChoice("context"))


def test_the_limits_of_the_key_that_made_the_call(journal: Journal) -> None:
    """A retry counts for the key of the call: a model that it may not use, and a budget that is spent, are refused."""
    key, digest = new_key()
    keys = [{"hash": digest, "models": ["small"], "dollars": 0.5}]
    with OwnKey(FAILS_ONCE, journal=journal, keys=keys, prices=PRICES) as behind:
        behind.claude = lambda **options: Behind.claude(behind, **options).with_options(api_key=key)  # type: ignore[method-assign]  # its own key
        fail(behind, journal)
        session = f"{digest[:12]}/{SESSION}"
        refused = again(journal, RetryChoice("model", model="large"), session)
        assert not refused["ok"]
        assert "not allowed for this key" in refused["text"]
        result = again(journal, RetryChoice("context"), session)
        assert result["ok"], result
        wait_until(lambda: journal.read("SELECT 1 FROM message WHERE topic = ?", (f"spent/{digest}",)))
        with pytest.raises(ApiProblem, match="for this key is spent"):
            acts(journal, keys={digest: 0.000001}).plan(session, RetryChoice("context"), "ada")


def test_a_model_that_costs_more_is_estimated_from_the_sessions_tokens(journal: Journal) -> None:
    """The average call of the session at the prices of both models, as a total and as a difference."""
    prices = {"small": {"input": 1.0, "output": 5.0}, "large": {"input": 5.0, "output": 25.0}}
    with OwnKey(journal=journal, prices=prices) as behind:
        ask(behind, "messages", stream=False, extra_headers={"x-rung-session": SESSION})
        behind.lab.use([{"fault": "bad_request", "times": 1}])
        fail(behind, journal)
        used = wait_until(lambda: session_usage(journal, SESSION))
        assert used.calls == 1
        planned = acts(journal, prices=prices).plan(SESSION, RetryChoice("model", model="large"), "ada")
        small = (used.tokens_in * 1.0 + used.tokens_out * 5.0) / 1e6
        assert planned.must_confirm
        assert planned.quote.estimate.total == pytest.approx(5 * small)
        assert planned.quote.estimate.difference == pytest.approx(4 * small)
