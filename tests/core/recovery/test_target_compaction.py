"""A model handed over to that has a smaller context window: the conversation is compacted for it, and for it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rung
from rung.core.domain import events as ev
from rung.core.domain.ladder import Action
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

OVERLOADED = rung.AttemptError("Overloaded", status=529)
TALK: tuple[dict[str, Any], ...] = tuple(
    {"role": role, "content": f"{n} {'word ' * 200}"} for n in range(12) for role in ("user", "assistant")
)
FIRST = rung.Request(messages=(*TALK, {"role": "user", "content": "go on"}), model="own")
LIMIT = 8_000  # characters that the other model accepts


def too_long(size: int, limit: int) -> rung.AttemptError:
    return rung.AttemptError(f"prompt is too long: {size} tokens > {limit} maximum", status=400)


class Models:
    """The own model, which is overloaded for some seconds, and others with a smaller context window."""

    def __init__(self, seconds: float, limit: int = LIMIT, then: Exception | None = None) -> None:
        self.clock = FakeClock()
        self.ends, self.limit, self.then = self.clock.now() + seconds, limit, then
        self.requests: list[rung.Request] = []

    def __call__(self, request: rung.Request) -> str:
        self.requests.append(request)
        if request.model == "own":
            if self.clock.now() < self.ends:
                raise OVERLOADED
            return "own answer"
        if request.size() > self.limit:
            raise too_long(request.size(), self.limit)
        if self.then is not None:
            raise self.then
        return "other answer"

    def to(self, model: str) -> list[rung.Request]:
        return [request for request in self.requests if request.model == model]


def recovered(world: Models, listener: Callable[..., object] | None = None, **settings: Any) -> rung.Outcome[str]:
    return rung.recover_sync(
        world,
        FIRST,
        policy=rung.policy("call", **{"models": ["own", "other"], "patience": 0, **settings}),
        clock=world.clock,
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        listeners=[] if listener is None else [listener],
        jitter=lambda: 0.5,
    )


def test_the_conversation_is_compacted_for_the_model_that_takes_over() -> None:
    """A model handed over to that says that the request is too long gets it compacted; the own one gets the first request."""
    models = Models(seconds=1_000)
    assert recovered(models).value == "other answer"
    assert [request.size() > LIMIT for request in models.to("other")] == [True, False]
    assert all(request == FIRST for request in models.to("own"))


def test_the_own_model_is_asked_again_with_the_whole_conversation() -> None:
    """After the compacted request fails elsewhere, too, the own model is waited for, and gets the request that it had."""
    models = Models(seconds=10, then=OVERLOADED)
    assert recovered(models, patience=280).value == "own answer"
    assert any(request.size() <= LIMIT for request in models.to("other"))
    assert all(request == FIRST for request in models.to("own"))


def test_it_is_compacted_once_for_each_model() -> None:
    """A model that rejects the compacted request, too, is left: the next one gets the whole conversation first."""
    models = Models(seconds=1_000, limit=10)
    outcome = recovered(models, models=["own", "other", "third"])
    for name in ("other", "third"):
        sizes = [request.size() for request in models.to(name)]
        assert (len(sizes), sizes[0]) == (2, FIRST.size())
        assert sizes[1] < sizes[0]
    assert outcome.failure is not None
    assert outcome.failure.kind is rung.Kind.OVERLOADED  # what the own model was left for


def test_a_history_that_cannot_be_compacted() -> None:
    """If compaction cannot shrink the request, the model is left without another attempt, and the first failure stays."""
    models = Models(seconds=1_000, limit=10)
    short = FIRST.replace(messages=FIRST.messages[-1:])
    outcome = rung.recover_sync(
        models,
        short,
        policy=rung.policy("call", models=["own", "other"], patience=0),
        clock=models.clock,
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        jitter=lambda: 0.5,
    )
    assert len(models.to("other")) == 1
    assert outcome.failure is not None
    assert outcome.failure.kind is rung.Kind.OVERLOADED


def test_a_compaction_of_the_own_request_does_not_use_it_up() -> None:
    """A request that was compacted for the own model is compacted further for one with a still smaller window."""
    sizes: list[tuple[str, int]] = []

    def attempt(request: rung.Request) -> str:
        sizes.append((request.model, request.size()))
        limit = {"own": 30_000, "other": LIMIT}[request.model]
        if request.size() > limit:
            raise too_long(request.size(), limit)
        if request.model == "own":
            raise OVERLOADED
        return "other answer"

    result = {"role": "tool", "tool_call_id": "c1", "content": "line " * 2_000}
    outcome = rung.recover_sync(
        attempt,
        FIRST.replace(messages=(FIRST.messages[0], result, *FIRST.messages[1:])),
        policy=rung.policy("call", models=["own", "other"], patience=0),
        clock=FakeClock(),
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        jitter=lambda: 0.5,
    )
    assert outcome.value == "other answer"
    assert [size > LIMIT for name, size in sizes if name == "other"] == [True, False]


def test_the_decision_is_a_compaction_that_stays_with_the_model() -> None:
    """The journal tells the compaction after the handover, and no return to the own model between them."""
    seen: list[ev.Event] = []
    recovered(Models(seconds=1_000), lambda event, _: seen.append(event))
    decisions = [event.decision for event in seen if isinstance(event, ev.Decided)]
    assert isinstance(decisions[-2], ev.HandOver)
    last = decisions[-1]
    assert isinstance(last, ev.Change)
    assert last.action is Action.COMPACT
    assert not any(isinstance(event, ev.ModelRestored) for event in seen)
