"""Mandatory items of a plan: tasks and things that only a new plan may change, and texts that say they must change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.crew.error_triage import FixProposal
    from rung.core.crew.plan import CrewPlan

_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n\s*\n|\n(?=\s*[-*#\d])")
_CHANGES: Final = re.compile(
    r"\b(?:chang|modif|alter|edit|revis|amend|rework|rewrit|redesign|refactor|overrid|overwrit|adjust|updat|remov|delet|drop"
    r"|relax|replac|renam|mov|extend|skip|patch|mak)(?:e|es|ed|ing|y|ies|ied|ying|s|ation|ations|t|ten|ping|ped|ications?|ement)?\b"
    r"|\b(?:add|insert|append|write|set|put|commit)(?:s|ed|ting|ing)?\b",
    re.IGNORECASE,
)
_NEEDS: Final = re.compile(
    r"\b(?:requir|need|necessit|impl(?:y|ies)|involv)\w*|\b(?:must|shall|should|would|ha[ds] to|have to|having to|only (?:\w+ ){0,2}by"
    r"|calls? for|cannot|can't|unless|without|not (?:allowed|possible)|may not)\b",
    re.IGNORECASE,
)
_KEEPS: Final = re.compile(
    r"\b(?:do not|don't|never|must not|mustn't|without|no need to|not|instead of)\s+(?:\w+\s+){0,2}?(?:chang|modif|alter|edit|touch"
    r"|revis|rewrit|remov|delet|mov|replac|renam|updat|writ|add)\w*|\b(?:leave|keep|stays?|remains?)\b",
    re.IGNORECASE,
)


def mandatory_items(plan: CrewPlan | None, task_id: str) -> tuple[str, ...]:
    """Return the items of the plan that a worker of this task, or a fix for it, must not change.

    They are the plan's `mandatory` list, the ids of mandatory tasks, and what other mandatory tasks write. What the task
    itself writes is its own work.
    """
    if plan is None:
        return ()
    own = next((task.writes for task in plan.active_tasks if task.id == task_id), ())
    items = list(plan.settings.mandatory)
    for task in plan.active_tasks:
        if task.mandatory:
            items += [task.id, *(task.writes if task.id != task_id else ())]
    return tuple(dict.fromkeys(item for item in items if item not in own))


def named_change(report: str, items: tuple[str, ...]) -> str:
    """Return the mandatory item that must be changed, by a worker's error report; empty if it says so of none."""
    for sentence, item in _named(report, items):
        if _CHANGES.search(sentence) and _NEEDS.search(sentence) and not _is_kept(sentence):
            return item
    return ""


def proposed_change(proposal: FixProposal, items: tuple[str, ...]) -> str:
    """Return the mandatory item that a proposed fix would change; empty if it changes none."""
    for sentence, item in _named(f"{proposal.fix}\n\n{proposal.afterwards}", items):
        if _CHANGES.search(sentence) and _KEEPS.search(sentence) is None:
            return item
    return ""


def _is_kept(sentence: str) -> bool:
    """Return whether a report says that the item stays. `Cannot be fixed without changing it` says that it must change."""
    if re.search(r"\b(?:cannot|can't|impossible|not possible|no (?:fix|way))\b", sentence, re.IGNORECASE):
        return False
    return _KEEPS.search(sentence) is not None and not re.search(r"\b(?:must|may) not\b", sentence, re.IGNORECASE)


def _named(text: str, items: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each sentence with a mandatory item that it names."""
    patterns = [(item, _pattern(item)) for item in items if item.strip(" ./*?")]
    for sentence in _SENTENCE.split(text) if patterns else ():
        for item, pattern in patterns:
            without_item = pattern.sub(" ", sentence)
            if without_item != sentence:
                yield without_item, item


def _pattern(item: str) -> re.Pattern[str]:
    """Return the pattern of an item: its words in order; for a folder or a pattern of files, any path below it."""
    words = r"\s+".join(re.escape(word) for word in re.split(r"[*?]", item, maxsplit=1)[0].removeprefix("./").split())
    rest = r"[\w./-]*" if item.endswith("/") or re.search(r"[*?]", item) else r"(?![\w/-]|\.\w)"
    return re.compile(rf"(?<![\w.-])(?:[\w./-]*/)?{words}{rest}", re.IGNORECASE)
