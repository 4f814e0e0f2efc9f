"""The scripted agents of `rung demo`: one per built-in ladder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rung.core.domain.errors import AttemptError
from rung.core.domain.request import Request
from rung.testing import HttpError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One agent: the results of its attempts in order, how long each takes, and the ladder that recovers it."""

    ladder: str
    story: str
    request: Request
    script: tuple[Any, ...]
    attempt_seconds: float = 20.0
    settings: dict[str, Any] = field(default_factory=dict)
    cause: str = ""  # what an investigator finds before a new plan


def scenes() -> tuple[Scene, ...]:
    """Return one scene per built-in ladder."""
    return (
        Scene(
            ladder="task",
            story="A coding agent meets an overloaded API, looks for a wrong file, then repeats itself.",
            request=Request(prompt="Fix the failing test", model="small"),
            script=(
                HttpError(529, "Overloaded"),
                FileNotFoundError(2, "No such file or directory: 'test/app.py'"),
                AttemptError("the same edit three times", finding="loop_detected", repeats=3),
                "2 files changed, 41 tests pass",
            ),
            attempt_seconds=42.0,
            settings={"models": ["small", "large"]},
            cause="app.py is generated; the template has to change",
        ),
        Scene(
            ladder="call",
            story="A model call is rate-limited, then truncated twice. The caller gets one complete answer.",
            request=Request(prompt="Write the report", model="small", max_tokens=8_000),
            script=(
                HttpError(429, "slow down", {"retry-after": "4"}),
                AttemptError("stopped at max_tokens", finding="output_limit", output="The first half"),
                AttemptError("stopped at max_tokens", finding="output_limit", output="The first half, "),
                "and the second half.",
            ),
            attempt_seconds=3.0,
        ),
        Scene(
            ladder="pipeline",
            story="A stage omits a section, then runs out of turns. Nobody is there to answer a question.",
            request=Request(prompt="Review the design", model="small", max_turns=10),
            script=(
                AttemptError("a section is missing", finding="partial_output", missing=("risks",), output="…"),
                AttemptError("25 turns used", finding="turns_exhausted"),
            ),
        ),
        Scene(
            ladder="model",
            story="A small model answers badly. A larger one takes over, and its price is announced.",
            request=Request(prompt="Prove it", model="small"),
            script=(*(AttemptError("step 3 does not follow", finding="low_quality"),) * 2, "QED, checked"),
            settings={"models": [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.12}]},
            cause="the small model skips the induction step",
        ),
        Scene(
            ladder="crew",
            story="A worker's fix breaks other tests. The conductor has the cause investigated.",
            request=Request(prompt="Port the parser", agent="worker-3"),
            script=(
                AttemptError("TypeError in parse()", finding="tool_error"),
                AttemptError("2 failed, 41 passed: test_rounding, test_refund", finding="test_failure"),
                "cause found: a stale cache; 43 passed",
            ),
        ),
    )
