"""Parameters that Claude models accept, by their names: thinking budgets or efforts, sampling parameters, forced tool calls.

A model that is not Claude's has no rules here: servers with a compatible API take what Claude took first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_NAME: Final = re.compile(
    r"claude-(?:(?P<new>opus|sonnet|haiku|fable|mythos)(?:[-.@](?P<version>\d{1,2}(?:[-.]\d{1,2})?))?(?![\d])"
    r"|(?P<old>[123](?:[-.]\d)?)-|instant|v?2)",
    re.IGNORECASE,
)
_CURRENT: Final = (5, 5)  # of a name without a version, such as an alias for the latest model
_FIRST_THINKING: Final = (3, 7)
_FIRST_ADAPTIVE: Final = (4, 6)
_FIRST_WITHOUT_BUDGET: Final = (4, 7)
_FIRST_THINKING_BY_DEFAULT: Final = (5, 0)
_FIRST_WITHOUT_FORCED_CALLS: Final = (5, 1)
_ALWAYS_THINKING: Final = frozenset({"fable", "mythos"})
# Efforts of other APIs, and those that every model with efforts knows.
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_EFFORT_OF_BUDGET: Final = ((16_384, "high"), (4_096, "medium"), (1, "low"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeRules:
    """Parameters that a model accepts. The defaults are those of models up to Claude 4.5, and of other providers' models."""

    is_claude: bool = False
    has_effort: bool = False  # `output_config.effort`
    has_adaptive_thinking: bool = False
    has_thinking_budget: bool = True
    has_sampling: bool = True  # temperature, top_p and top_k
    has_forced_calls: bool = True  # tool_choice `any` and `tool`
    thinks_by_default: bool = False
    can_disable_thinking: bool = True  # thinking `disabled`
    has_xhigh_effort: bool = False

    def effort(self, asked: str) -> str:
        """Return the nearest effort that the model knows."""
        return _EFFORTS.get(asked) or ("xhigh" if self.has_xhigh_effort else "max")


@lru_cache(maxsize=256)
def claude_rules(model: str) -> ClaudeRules:
    """Return the rules of a model: of the API, or as Bedrock and Vertex name it."""
    found = _NAME.search(model)
    if found is None:
        return ClaudeRules()
    line = (found["new"] or "").lower()
    if not line:
        return ClaudeRules(is_claude=True, has_thinking_budget=_version(found["old"] or "2") >= _FIRST_THINKING)
    version = _version(found["version"])
    if "preview" in model:  # Claude Mythos Preview takes both kinds of thinking
        return ClaudeRules(
            is_claude=True, has_effort=True, has_adaptive_thinking=True, has_sampling=False, can_disable_thinking=False
        )
    return ClaudeRules(
        is_claude=True,
        has_effort=version >= _FIRST_ADAPTIVE or (line, version) == ("opus", (4, 5)),
        has_adaptive_thinking=version >= _FIRST_ADAPTIVE,
        has_thinking_budget=version < _FIRST_WITHOUT_BUDGET,
        has_sampling=version < _FIRST_WITHOUT_BUDGET,
        has_forced_calls=version < _FIRST_WITHOUT_FORCED_CALLS or line == "haiku",
        thinks_by_default=version >= _FIRST_THINKING_BY_DEFAULT,
        can_disable_thinking=_can_disable_thinking(line, version),
        has_xhigh_effort=version >= _FIRST_WITHOUT_BUDGET,
    )


def effort_of_budget(tokens: int) -> str:
    """Return the effort that stands for a budget of thinking tokens."""
    return next((effort for least, effort in _EFFORT_OF_BUDGET if tokens >= least), "low")


def _can_disable_thinking(line: str, version: tuple[int, int]) -> bool:
    """Return whether thinking may be `disabled`: by models that take a budget, and by Opus 5 and Sonnet 5."""
    return line not in _ALWAYS_THINKING and (
        version < _FIRST_WITHOUT_BUDGET or _FIRST_THINKING_BY_DEFAULT <= version < _FIRST_WITHOUT_FORCED_CALLS
    )


def _version(text: str | None) -> tuple[int, int]:
    if text is None:
        return _CURRENT
    major, _, minor = text.replace(".", "-").partition("-")
    return int(major), int(minor or 0)
