"""Rules for answers that end early."""

from __future__ import annotations

import pytest

from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.policy.policy import preset
from rung.core.policy.presets import LADDERS
from rung.core.recovery.stream_rules import (
    LIMIT_CODES,
    STREAM_TRIES,
    for_streams,
    is_intended,
    is_usable_when_broken,
    seen_by_client,
)


@pytest.mark.parametrize("ladder", LADDERS)
def test_patience_of_streams(ladder: str) -> None:
    """Exactly the rungs in `STREAM_TRIES` get other tries; everything else of a policy stays."""
    before, after = preset(ladder), for_streams(preset(ladder))
    wanted = STREAM_TRIES.get(ladder, {})
    assert [rung.tries for rung in after.ladder.rungs] == [
        wanted.get(rung.action, rung.tries) for rung in before.ladder.rungs
    ]
    assert after.replace(ladder=before.ladder) == before


def test_the_call_ladder_is_patient_with_streams() -> None:
    """A streamed answer on the call ladder is resumed ten times."""
    rungs = {rung.action: rung.tries for rung in for_streams(preset("call")).ladder.rungs}
    assert rungs[Action.RESUME] == 10


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


@pytest.mark.parametrize("allowed", [True, False])
def test_an_empty_answer(allowed: bool) -> None:
    """An empty answer is intended exactly where the conversation allows one."""
    empty = Evidence(text="empty", finding=Kind.PARTIAL_OUTPUT)
    assert is_intended(empty, calls=0, limit=1, small_limit=256, may_be_empty=allowed) is allowed


def test_another_end_is_not_intended() -> None:
    """A refusal, or any other reason, is no cut at a limit."""
    assert not is_intended(Evidence(code="refusal"), calls=1, limit=1, small_limit=256, may_be_empty=True)


def test_what_the_client_has_seen() -> None:
    """A failure of the call becomes one of the stream once the client has output; other phases stay."""
    assert seen_by_client(Evidence(phase=Phase.CALL)) == Evidence(phase=Phase.STREAM, output_started=True)
    assert seen_by_client(Evidence(phase=Phase.RESULT)) == Evidence(phase=Phase.RESULT, output_started=True)
