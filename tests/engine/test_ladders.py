"""Every row of the ladder table, as it is climbed in both modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from tests.conftest import World

ASK = rung.Request(prompt="the task", model="small", max_turns=10)
DOWN = HttpError(503, "unavailable")


def trouble(kind: str, **facts: Any) -> rung.AttemptError:
    return rung.AttemptError(f"{kind}!", finding=kind, **facts)


def climbed(outcome: rung.Outcome[Any], policy: rung.Policy) -> list[str]:
    """The names of the rungs, one for each decision."""
    return [policy.ladder.rungs[e.decision.rung].name for e in outcome.events if isinstance(e, ev.Decided)]


@pytest.mark.parametrize(
    ("failure", "rungs"),
    [
        (TimeoutError("slow"), ["retry"]),
        (HttpError(429, "Too Many Requests"), ["retry"]),
        (FileNotFoundError(2, "No such file"), ["nudge"]),
        (PermissionError(13, "Permission denied"), ["nudge"]),
        (trouble("malformed_output"), ["nudge"]),
        (RuntimeError("who knows"), ["nudge"]),
        (trouble("goal_misaligned"), ["replan"]),
        (trouble("loop_detected", repeats=3), ["replan"]),
        (trouble("capability_mismatch"), ["fallback"]),
        (trouble("loop_detected", repeats=5), ["fallback"]),
        (trouble("missing_credentials"), ["force-done"]),
        (trouble("loop_detected", repeats=8), ["force-done"]),
    ],
    ids=str,
)
def test_task_entries(world: World, failure: Exception, rungs: list[str]) -> None:
    """On `task` each kind enters at the rung the table says."""
    policy = rung.policy("task", models=["small", "large"])
    outcome = world.recover(Script(failure, "done"), ASK, policy=policy)
    assert climbed(outcome, policy) == rungs


def test_task_from_bottom_to_top(world: World) -> None:
    """On `task` a failure that nothing mends takes three nudges, a replan, a fallback and a last turn."""
    policy = rung.policy("task", models=["small", "large"])
    outcome = world.recover(Script(trouble("not_found")), ASK, policy=policy)
    assert climbed(outcome, policy) == ["nudge"] * 3 + ["replan", "fallback", "force-done", "force-done"]
    assert (outcome.status, outcome.path) == ("partial", (2, 3, 4, 5))


def test_task_retries_three_times_with_backoff(world: World) -> None:
    """On `task` a blip is repeated at most three times, after up to 1, 2 and 4 seconds."""
    policy = rung.policy("task", patience=0)
    outcome = world.recover(Script(DOWN), ASK, policy=policy)
    assert world.clock.sleeps == [0.5, 1.0, 2.0]  # full jitter, the random number being a half
    assert outcome.attempts == 4


def test_task_retry_is_afresh_after_each_climb(world: World) -> None:
    """On `task` a nudged attempt may be retried again: retry is scoped to the action."""
    policy = rung.policy("task")
    script = Script(DOWN, DOWN, DOWN, trouble("not_found"), DOWN, DOWN, DOWN, "done")
    outcome = world.recover(script, ASK, policy=policy)
    assert climbed(outcome, policy) == ["retry"] * 3 + ["nudge"] + ["retry"] * 3
    assert outcome.status == "recovered"
    assert len({request.digest() for request in script.requests[4:]}) == 1


def test_call_order(world: World) -> None:
    """On `call` a cut-off answer gets a larger limit once, up to three resumptions, then another model."""
    policy = rung.policy("call", models=["small", "large"])
    outcome = world.recover(Script(trouble("output_limit", output="x")), ASK.replace(max_tokens=100), policy=policy)
    assert climbed(outcome, policy) == ["raise-limit"] + ["resume"] * 3 + ["fallback", "surface"]
    assert outcome.status == "failed"


def test_call_surfaces_what_cannot_be_helped(world: World) -> None:
    """On `call` an invalid request in which nothing can be mended is surfaced, and sent to no other model."""
    policy = rung.policy("call", models=["small", "large"])
    outcome = world.recover(Script(HttpError(400, "messages: too few")), ASK, policy=policy)
    assert climbed(outcome, policy) == ["repair", "surface"]
    assert (outcome.status, outcome.attempts) == ("failed", 1)


def test_call_mends_a_history(world: World) -> None:
    """On `call` a history with a call that has no result is mended and sent again, once."""
    talk = (
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
        {"role": "user", "content": "go on"},
    )
    script = Script(HttpError(400, "tool_use ids were found without tool_result blocks"), "done")
    outcome = world.recover(script, rung.Request(messages=talk), policy=rung.policy("call"))
    assert (outcome.status, outcome.attempts) == ("recovered", 2)
    mended = script.requests[1].messages
    assert [block["tool_use_id"] for block in mended[2]["content"]] == ["t1"]
    assert mended[3] == talk[2]


def test_call_goes_on_with_what_trouble_broke_off(world: World) -> None:
    """On `call` an answer that the service broke off when somebody had its beginning is resumed, not begun again."""
    policy = rung.policy("call", models=["small", "large"])
    broken = trouble("overloaded", phase="stream", output_started=True, output="The first half")
    script = Script(broken, " and the second")
    outcome = world.recover(script, ASK, policy=policy)
    assert climbed(outcome, policy) == ["resume"]
    assert outcome.value == "The first half and the second"


def test_call_a_refused_change_leaves_the_trouble_as_it_was(world: World) -> None:
    """On `call` a larger limit that the service turns down is no invalid request of ours: the answer is resumed."""
    policy = rung.policy("call")
    cut = trouble("output_limit", output="One half, ")
    script = Script(cut, HttpError(400, "max_tokens: 64000 > 8192"), "the other")
    outcome = world.recover(script, ASK, policy=policy)
    assert climbed(outcome, policy) == ["raise-limit", "resume"]
    assert outcome.status == "recovered"


@pytest.mark.parametrize(("missing", "first"), [(("a",), "nudge"), (("a", "b"), "nudge"), (("a", "b", "c"), "respawn")])
def test_pipeline_nudges_for_few_missing_sections(world: World, missing: tuple[str, ...], first: str) -> None:
    """On `pipeline` one or two missing sections are asked for by name; more mean a fresh agent."""
    policy = rung.policy("pipeline")
    script = Script(trouble("partial_output", missing=missing, output="draft"), "done")
    outcome = world.recover(script, ASK, policy=policy)
    assert climbed(outcome, policy) == [first]
    if first == "nudge":
        assert f"Complete only: {', '.join(missing)}." in script.requests[1].prompt


def test_pipeline_three_respawns_then_a_person(world: World) -> None:
    """On `pipeline` three spent respawns go to a person; each respawn has more turns, and is told so."""
    questions: list[ev.Ask] = []

    def ask(question: ev.Ask, incident: object) -> str:
        questions.append(question)
        return "stop"

    policy = rung.policy("pipeline", report="")
    script = Script(trouble("turns_exhausted"))
    outcome = world.recover(script, ASK, policy=policy, ask=ask)
    assert climbed(outcome, policy) == ["respawn"] * 3 + ["ask", "ask"]
    assert [request.max_turns for request in script.requests] == [10, 20, 40, 80]
    assert "You have more turns" in script.requests[1].prompt
    assert 2 <= len(questions[0].options) <= 3
    assert outcome.status == "blocked"


@pytest.mark.parametrize("kind", ["strategic_ambiguity", "beyond_authority"])
def test_pipeline_tests_for_a_person_first(world: World, kind: str) -> None:
    """On `pipeline` an ambiguity goes to a person at once."""
    policy = rung.policy("pipeline", report="")
    outcome = world.recover(Script(trouble(kind)), ASK, policy=policy)
    assert (outcome.status, outcome.path, outcome.attempts) == ("blocked", (4,), 1)


def test_pipeline_conflicts_are_restructured(world: World) -> None:
    """On `pipeline` a conflict of scopes is met by cutting the work up differently, once."""
    policy = rung.policy("pipeline", report="")
    outcome = world.recover(Script(trouble("scope_conflict")), ASK, policy=policy)
    assert climbed(outcome, policy) == ["restructure", "ask"]
    assert outcome.pipeline_failure()["failure_level"] == "L4"


def test_pipeline_retries_twice(world: World) -> None:
    """On `pipeline` a tool's error is repeated twice before a fresh agent is tried."""
    policy = rung.policy("pipeline")
    outcome = world.recover(Script(*[trouble("tool_error")] * 3, "done"), ASK, policy=policy)
    assert climbed(outcome, policy) == ["retry", "retry", "respawn"]


def test_model_ladder(world: World) -> None:
    """On `model` a bad answer is retried with its error, then each model up is tried, then it surfaces."""
    policy = rung.policy("model", models=["small", "medium", "large"])
    script = Script(trouble("low_quality", output="bad answer"))
    outcome = world.recover(script, ASK, policy=policy)
    assert climbed(outcome, policy) == ["retry-with-context", "escalate", "escalate", "surface"]
    assert [request.model for request in script.requests] == ["small", "small", "medium", "large"]
    assert "bad answer" in script.requests[1].prompt
    assert (outcome.status, outcome.model) == ("failed", "small")


def test_model_backoff_is_capped(world: World) -> None:
    """On `model` the waits are 1, 2, 4 … seconds and never more than 30."""
    policy = rung.policy("model", retries=7, backoff={"jitter": False}, patience=0)
    world.recover(Script(DOWN), ASK, policy=policy)
    assert world.clock.sleeps == [1, 2, 4, 8, 16, 30, 30]


def test_model_context_limit_goes_up(world: World) -> None:
    """On `model` an overflowing context goes to the next model at once."""
    policy = rung.policy("model", models=["small", "large"])
    script = Script(HttpError(400, "prompt is too long: 9 tokens > 8 maximum"), "done")
    world.recover(script, ASK, policy=policy)
    assert [request.model for request in script.requests] == ["small", "large"]


def test_crew(world: World) -> None:
    """On `crew` a worker's error is fixed four times and replanned three times; then an operator is asked."""
    policy = rung.policy("crew", report="")
    outcome = world.recover(Script(trouble("tool_error")), ASK, policy=policy)
    assert climbed(outcome, policy) == ["fix"] * 4 + ["replan"] * 3 + ["person"]
    assert outcome.status == "blocked"


def test_off_does_nothing(world: World) -> None:
    """The template `off` makes one attempt and ends as the ladder ends."""
    for ladder, status in [("task", "partial"), ("call", "failed"), ("pipeline", "blocked")]:
        outcome = world.recover(Script(DOWN), ASK, policy=rung.policy(ladder, "off", report=""))
        assert (outcome.status, outcome.attempts) == (status, 1)
