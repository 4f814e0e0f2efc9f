"""Classification rules for a plan's limit that is over and names when it reopens."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind

_LIMIT_IS_OVER: Final = (
    "limit/quota/cap/allowance/credits/messages/requests/budget/capacity * reached/exceeded/exhausted/spent/gone",
    "reached/exceeded/hit/exhausted * limit/limits/quota/cap/allowance/usage",
    "credits/messages/requests/quota used",
    "used all",
    "sent/sending too many messages/prompts/queries",
    "too many messages/prompts/queries sent/recently",
    "used up",
    "run/ran out of",
    "maxed out",
    "no messages/credits/requests/quota left",
    "usage is exhausted",
    "no remaining messages/credits/requests/quota",
    "usage 100",
    "out of usage/requests/messages/quota",
)
_REOPENS: Final = (
    "reset",
    "refresh",
    "renew",
    "replenish",
    "again",
    "available",
    "come back",
    "resume",
    "unlock",
    "restore",
    "wait",
)
_AT_A_TIME: Final = (
    "resets", "reset at", "reset on", "refreshes", "refresh at", "refresh on", "renews", "renew on", "replenish", "again at", "again on", "again after", "resume at",
    "resume on", "back at", "back on", *(f"until {start}" for start in ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "jan", "feb", "mar", "apr", "may", "jun",
    "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "tomorrow", "midnight")),
)  # fmt: skip
_OTHER_LIMITS: Final = (
    "context",
    "too long",
    "max tokens",
    "file size",
    "disk quota",
    "recursion",
    "open files",
    "connection limit",
)

# Sentences of a plan that no other rule knows: a limit is over, and it says when it reopens.
REOPENING: Final = (
    ClassifyRule(
        id="limit-reopens-soon",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="The message names a limit that is over and reopens within the hour.",
        example=Evidence(text="Message cap reached, available again in 12 minutes"),
        message_has=_LIMIT_IS_OVER,
        contains=_REOPENS,
        wait_under=3_600.0,
    ),
    ClassifyRule(
        id="limit-reopens-later",
        kind=Kind.QUOTA_EXHAUSTED,
        why="The message names a limit of a plan that is over, and a wait of an hour or more.",
        example=Evidence(text="You've used all of your messages for today. Come back in 5 hours."),
        message_has=_LIMIT_IS_OVER,
        contains=_REOPENS,
        wait_over=3_599.0,
        except_if=_OTHER_LIMITS,
    ),
    ClassifyRule(
        id="limit-reopens-at",
        kind=Kind.QUOTA_EXHAUSTED,
        why="The message names a limit of a plan that is over, and when it reopens.",
        example=Evidence(text="All premium credits used. Your credits refresh on Aug 1."),
        message_has=_LIMIT_IS_OVER,
        contains=_AT_A_TIME,
        except_if=_OTHER_LIMITS,
    ),
)  # fmt: skip
