"""Text of a handover: it names the model, and the upstream or agent that serves it."""

from __future__ import annotations

import pytest

from rung.core.domain import events as ev
from rung.core.text.event_text import describe_event


@pytest.mark.parametrize(
    ("model", "agent", "text"),
    [
        ("large", "", "hand over to large"),
        ("", "codex", "hand over to codex"),
        ("large", "second", "hand over to large at second"),
        ("backup/gpt-5.1", "anthropic", "hand over to backup/gpt-5.1"),
    ],
)
def test_the_target_of_a_handover(model: str, agent: str, text: str) -> None:
    """The line names model and upstream; a model that names its upstream is not placed at the one that was left."""
    decided = ev.Decided(0.0, ev.HandOver(1, model, agent, None, "overloaded"))
    assert describe_event(decided, ("retry", "fallback"), 0).text == text
