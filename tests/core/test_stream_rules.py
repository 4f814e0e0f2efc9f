"""Rules for answers that end early."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.policy.parser import parse_policy
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import preset
from rung.core.recovery.stream_rules import (
    LIMIT_CODES,
    MISTAKE_REPEATS,
    for_streams,
    is_intended,
    is_repeated_mistake,
    is_usable_when_broken,
    seen_by_client,
    why_not_resume,
)


@pytest.mark.parametrize("ladder", LADDERS)
def test_patience_of_streams(ladder: str) -> None:
    """Only the resume rung of the call ladder gets other tries; everything else of a policy stays."""
    before = preset(ladder).with_tries(Action.RETRY, 7)
    after = for_streams(before)
    wanted = {Action.RESUME: 7} if ladder == "call" else {}
    assert [rung.tries for rung in after.ladder.rungs] == [
        wanted.get(rung.action, rung.tries) for rung in before.ladder.rungs
    ]
    assert after.replace(ladder=before.ladder) == before


@pytest.mark.parametrize(
    ("settings", "tries"),
    [
        ({"retries": 0}, 0),
        ({"retries": 1}, 1),
        ({"retries": 12}, 12),
        ({"ladder": {"name": "call", "rungs": [{"action": "resume", "tries": 2}, {"action": "surface"}]}}, 2),
    ],
)
def test_a_users_limit_wins(settings: dict[str, object], tries: int) -> None:
    """A broken stream is resumed as often as the user's own settings say."""
    policy = for_streams(parse_policy({"ladder": "call", **settings}))
    assert {rung.action: rung.tries for rung in policy.ladder.rungs}[Action.RESUME] == tries


@pytest.mark.parametrize("finding", [Kind.MALFORMED_OUTPUT, Kind.PARTIAL_OUTPUT, Kind.STREAM_INTERRUPTED])
@pytest.mark.parametrize("mistakes", range(4))
def test_a_models_mistake_is_passed_on(finding: Kind, mistakes: int) -> None:
    """An invalid or empty answer is passed on after two repeats; a broken one never is."""
    evidence = Evidence(text="bad", finding=finding, phase=Phase.RESULT)
    is_due = finding is not Kind.STREAM_INTERRUPTED and mistakes >= MISTAKE_REPEATS
    assert is_repeated_mistake(evidence, mistakes=mistakes) is is_due


def test_several_choices_end_at_their_limit() -> None:
    """An answer with several choices that was cut at its limit is passed on: it cannot be resumed."""
    evidence = Evidence(text="cut", code="length")
    assert is_intended(evidence, calls=0, limit=None, small_limit=256, may_be_empty=False, choices=2)


@pytest.mark.parametrize(
    ("calls", "bad_call", "ended", "usable"),
    [(1, False, False, True), (0, False, False, False), (2, True, False, False), (1, False, True, False)],
    ids=["complete-call", "no-call", "bad-call", "ended"],
)
def test_a_broken_stream_with_complete_tool_calls(calls: int, bad_call: bool, ended: bool, usable: bool) -> None:
    """A broken stream is a success only with complete, valid tool calls and before its own end."""
    assert is_usable_when_broken(calls=calls, bad_call=bad_call, ended=ended) is usable


@pytest.mark.parametrize("code", sorted(LIMIT_CODES))
@pytest.mark.parametrize(
    ("limit", "calls", "intended"),
    [(256, 0, True), (257, 0, False), (None, 0, False), (4_000, 1, True)],
    ids=["small", "large", "none", "after-a-call"],
)
def test_an_output_limit(code: str, limit: int | None, calls: int, intended: bool) -> None:
    """An answer cut at a small limit is intended, and one cut after a complete tool call is not resumed."""
    evidence = Evidence(text="cut", code=code)
    assert is_intended(evidence, calls=calls, limit=limit, small_limit=256, may_be_empty=False) is intended


@pytest.mark.parametrize("mistakes", range(3))
@pytest.mark.parametrize("allowed", [True, False])
def test_an_empty_answer(allowed: bool, mistakes: int) -> None:
    """An empty answer is intended where the conversation allows one and the answer was empty before."""
    empty = Evidence(text="empty", finding=Kind.PARTIAL_OUTPUT)
    is_believed = is_intended(empty, calls=0, limit=1, small_limit=256, may_be_empty=allowed, mistakes=mistakes)
    assert is_believed is (allowed and mistakes >= 1)


def test_another_end_is_not_intended() -> None:
    """A refusal, or any other reason, is no cut at a limit."""
    assert not is_intended(Evidence(code="refusal"), calls=1, limit=1, small_limit=256, may_be_empty=True)


def test_what_the_client_has_seen() -> None:
    """A failure of the call becomes one of the stream once the client has output; other phases stay."""
    assert seen_by_client(Evidence(phase=Phase.CALL)) == Evidence(phase=Phase.STREAM, output_started=True)
    assert seen_by_client(Evidence(phase=Phase.RESULT)) == Evidence(phase=Phase.RESULT, output_started=True)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, ""),
        ({"choices": 2}, "several choices"),
        ({"has_media": True}, "audio and images"),
        ({"received": False}, "nothing was received"),
    ],
)
def test_what_cannot_be_resumed(facts: dict[str, Any], reason: str) -> None:
    """An answer is resumed only if a part of one text was received, and neither audio nor images."""
    failure = classify(Evidence(text="cut", finding=Kind.STREAM_INTERRUPTED))
    why = why_not_resume(failure, **{"received": True, "choices": 1, "has_media": False, **facts})
    assert why.startswith(reason)
    assert bool(why) is bool(reason)


def test_a_mistake_is_resumed_without_a_part() -> None:
    """A model that gave no output is asked to go on although nothing was received."""
    failure = classify(Evidence(text="empty", finding=Kind.PARTIAL_OUTPUT))
    assert not why_not_resume(failure, received=False, choices=1, has_media=False)
