"""Handovers to models of other providers: accounts and context windows."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.parser import parse_policy
from rung.core.policy.policy import Model
from rung.core.recovery.decide import decide
from rung.core.recovery.handover import hand_over, with_enough_room
from rung.core.recovery.stream_rules import with_accounts
from rung.core.recovery.target_compaction import stays_with_target

MODELS = ["claude", {"name": "other/gpt", "provider": "other"}]


def handed_over(kind: Kind, same_account: tuple[str, ...], **settings: Any) -> ev.Decision | None:
    """Return the handover of a call on `claude` that failed in this way."""
    policy = parse_policy({"ladder": "call", "models": MODELS, **settings})
    policy = with_accounts(policy, same_account)
    failure = classify(Evidence(text="refused", finding=kind))
    incident = Incident.of(
        [
            ev.Opened(0.0, "i", ev.IncidentContext("call", "default"), Request(model="claude", agent="own")),
            ev.AttemptFailed(1.0, failure, 1.0, 0.0, may_retry=False),
        ]
    )
    index = next(n for n, rung in enumerate(policy.ladder.rungs) if rung.action is Action.FALLBACK)
    return hand_over(incident, failure, policy, index, [])


@pytest.mark.parametrize("kind", [Kind.QUOTA_EXHAUSTED, Kind.AUTH_ERROR, Kind.MISSING_CREDENTIALS])
def test_a_model_of_another_account_helps(kind: Kind) -> None:
    """A refused key or an exhausted account does not matter to a provider that has another account."""
    decision = handed_over(kind, ("own",))
    assert isinstance(decision, ev.HandOver)
    assert decision.model == "other/gpt"


@pytest.mark.parametrize("kind", [Kind.QUOTA_EXHAUSTED, Kind.AUTH_ERROR])
def test_a_model_of_the_same_account_does_not_help(kind: Kind) -> None:
    """A more expensive model of the account that is exhausted or refused is not asked."""
    assert handed_over(kind, ("own", "other")) is None


@pytest.mark.parametrize(
    ("providers", "model"),
    [(("one", "two"), "large"), (("one", "one"), None), (("", "two"), None), (("one", ""), None)],
)
def test_another_provider_is_another_account(providers: tuple[str, str], model: str | None) -> None:
    """Without word on accounts, an exhausted quota is handed over if the providers of both models are known and differ."""
    models = [
        {"name": name, "provider": provider} for name, provider in zip(("small", "large"), providers, strict=True)
    ]
    policy = parse_policy({"ladder": "call", "models": models})
    failure = classify(Evidence(text="refused", finding=Kind.QUOTA_EXHAUSTED))
    incident = Incident.of(
        [
            ev.Opened(0.0, "i", ev.IncidentContext("call", "default"), Request(model="small")),
            ev.AttemptFailed(1.0, failure, 1.0, 0.0, may_retry=False),
        ]
    )
    index = next(n for n, rung in enumerate(policy.ladder.rungs) if rung.action is Action.FALLBACK)
    skipped: list[ev.Skip] = []
    decision = hand_over(incident, failure, policy, index, skipped)
    assert (decision.model if isinstance(decision, ev.HandOver) else None) == model
    assert [reason for _, reason in skipped] == (
        [] if model else ["no other model is known to have another account, as one of another `provider` is"]
    )


def test_a_refused_key_enters_at_the_fallback_if_another_account_is_left() -> None:
    """The entry of a refused key is the fallback rung, where a model of another account is configured."""
    policy = parse_policy({"ladder": "call", "models": MODELS})
    assert with_accounts(policy, ("own",)).ladder.entry[Kind.AUTH_ERROR] == "fallback"
    assert with_accounts(policy, ("own", "other")).ladder.entry == policy.ladder.entry


def test_models_with_enough_room_come_alone() -> None:
    """A model whose window is too small is left out while another one has room; else it is better than none."""
    own, small, large = Model(name="own"), Model(name="small", window=1_000), Model(name="large", window=9_000)
    assert with_enough_room((own, small, large), "own", 5_000) == (own, large)
    assert with_enough_room((own, small), "own", 5_000) == (own, small)
    assert with_enough_room((own, small, large), "own", 500) == (own, small, large)


@pytest.mark.parametrize(
    ("evidence", "action"),
    [
        (Evidence(text="cut", finding=Kind.STREAM_INTERRUPTED, phase=Phase.STREAM, output_started=True), Action.RESUME),
        (Evidence(text="truncated", finding=Kind.OUTPUT_LIMIT, phase=Phase.RESULT), Action.RAISE_LIMIT),
        (Evidence(text="half", finding=Kind.PARTIAL_OUTPUT, phase=Phase.RESULT), Action.RESUME),
    ],
)
def test_the_answer_of_a_model_handed_over_to_is_mended(evidence: Evidence, action: Action) -> None:
    """After a handover, the rungs below that mend the form of a request are there for the new model, and it keeps the call."""
    policy = parse_policy({"ladder": "call", "models": ["one", "two"], "patience": 0})
    fallback = next(n for n, rung in enumerate(policy.ladder.rungs) if rung.action is Action.FALLBACK)
    handover = ev.HandOver(fallback, "two", "own", None, Kind.OVERLOADED)
    request = Request(model="two", agent="own")
    incident = Incident.of(
        [
            ev.Opened(0.0, "i", ev.IncidentContext("call", "default"), Request(model="one", agent="own")),
            ev.AttemptFailed(1.0, classify(Evidence(status=529)), 1.0, 0.0, may_retry=True),
            ev.Decided(1.0, handover),
            ev.Changed(1.0, request, request.digest(), ("model",), ""),
        ]
    )
    failure = classify(evidence)
    incident.fold(ev.AttemptFailed(2.0, failure, 1.0, 0.0, may_retry=True))
    decision = decide(incident, failure, policy, 2.0, 0.5)
    assert isinstance(decision, ev.Change), decision
    assert decision.action is action
    assert stays_with_target(handover, decision, incident)
