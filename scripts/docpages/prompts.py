"""The page of recovery prompts: when each is used is found by asking for it, kind by kind."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from docpages.markdown import bullets, code, codes, fence, page
from rung.core.change import change
from rung.core.events import Change, HandOver
from rung.core.failures import Evidence, Failure, Kind
from rung.core.incident import Incident
from rung.core.ladder import HAND_OVERS, Action
from rung.core.policy import preset
from rung.core.prompts import FIELDS, PROMPTS
from rung.core.request import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

# These make no request, so they have nothing to say.
_SILENT = frozenset({Action.RETRY, Action.ASK, Action.SURFACE})
_MISSING = " (with the missing parts named)"


def pages() -> dict[str, str]:
    """Path and text of the page."""
    uses = _uses()
    parts: list[str] = []
    for name, text in PROMPTS.items():
        parts += [f"## {code(name)}", bullets(_words(action, said) for action, said in uses[name].items()), fence(text)]
    intro = (
        "What a rung says to the model. Each prompt has an id, which the `Changed` event carries, so that its effect "
        "can be measured; the `prompts` table of [a policy](policy.md) overrides one by its id."
    )
    holes = f"Filled in: {codes('{' + field + '}' for field in FIELDS)}. Anything else in braces is left alone."
    return {"prompts.md": page("Recovery prompts", intro, holes, *parts)}


def _uses() -> Mapping[str, Mapping[str, list[str]]]:
    """By prompt id and action, the kinds (or all of them) it is used for."""
    uses: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for action in Action:
        if action in _SILENT:
            continue
        for kind in Kind:
            plain, listed = _prompt(action, kind, ()), _prompt(action, kind, ("tests",))
            if plain == listed:
                uses[plain][action.value].append(kind.value)
            else:
                uses[plain][action.value].append(f"{kind} (with nothing named as missing)")
                uses[listed][action.value].append(kind + _MISSING)
    return uses


def _prompt(action: Action, kind: Kind, missing: tuple[str, ...]) -> str:
    """The id of the prompt this action uses for a failure of this kind; empty when it says nothing."""
    incident = Incident()
    incident.origin = incident.request = Request(prompt="the task", model="here")
    failure = Failure(kind=kind, retryable=False, rule="", evidence=Evidence(missing=missing))
    decision: Change | HandOver = Change(rung=0, action=action, wait=0.0, reason="")
    if action in HAND_OVERS:
        decision = HandOver(rung=0, model="there", agent="", estimate=None, reason="")
    return change(decision, incident, failure, preset())[1]


def _words(action: str, kinds: list[str]) -> str:
    left = [kind.value for kind in Kind if kind.value not in kinds]
    if not left:
        return f"{code(action)}: every kind"
    if len(left) < len(kinds):
        return f"{code(action)}: every kind but {codes(left)}"
    return f"{code(action)}: {', '.join(_kind(kind) for kind in kinds)}"


def _kind(words: str) -> str:
    name, _, when = words.partition(" ")
    return f"{code(name)} {when}".rstrip()
