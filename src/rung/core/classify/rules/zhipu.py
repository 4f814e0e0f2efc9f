"""Classification rules for Zhipu's error numbers."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind

_ZHIPU: Final = ("zhipu", "zai", "z.ai", "glm", "bigmodel", "zhipuai", "zai-coding-plan")

# Zhipu's numbers: its messages are often translated or left out by gateways.
NUMBERED: Final = (
    ClassifyRule(
        id="zhipu-quota",
        kind=Kind.QUOTA_EXHAUSTED,
        why="Zhipu's number for arrears, or for a plan's limit that is used up.",
        example=Evidence(status=429, provider="zhipu", text='{"error": {"code": "1113", "message": "x"}}'),
        code=("1113", "1304", "1308", "1309", "1310"),
        provider=_ZHIPU,
    ),
    ClassifyRule(
        id="zhipu-rate",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="Zhipu's number for too many requests at once or in a short time.",
        example=Evidence(status=429, provider="zhipu", text='{"error": {"code": "1302", "message": "x"}}'),
        code=("1302", "1303"),
        provider=_ZHIPU,
    ),
    ClassifyRule(
        id="zhipu-busy",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="Zhipu's number for a model that has too much traffic.",
        example=Evidence(status=429, provider="zhipu", text='{"error": {"code": "1305", "message": "x"}}'),
        code=("1305", "1312"),
        provider=_ZHIPU,
    ),
    ClassifyRule(
        id="zhipu-key",
        kind=Kind.AUTH_ERROR,
        why="Zhipu's number for a key that it rejects.",
        example=Evidence(status=404, provider="zhipu", text='{"error": {"code": "1000", "message": "x"}}'),
        code=("1000", "1002", "1003", "1004"),
        provider=_ZHIPU,
    ),
    ClassifyRule(
        id="zhipu-model",
        kind=Kind.MODEL_UNAVAILABLE,
        why="Zhipu's number for a model that is unknown, or not part of the plan.",
        example=Evidence(status=400, provider="zhipu", text='{"error": {"code": "1211", "message": "x"}}'),
        code=("1211", "1221", "1222", "1311"),
        provider=_ZHIPU,
    ),
    ClassifyRule(
        id="zhipu-filter",
        kind=Kind.CONTENT_FILTER,
        why="Zhipu's number for sensitive content.",
        example=Evidence(status=400, provider="zhipu", text='{"error": {"code": "1301", "message": "x"}}'),
        code=("1301",),
        provider=_ZHIPU,
    ),
)
