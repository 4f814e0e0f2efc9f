"""Generate the reference page of recovery prompts, with the actions and kinds that use each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from docpages.markdown import bullets, code, codes, fence, page
from rung.core.domain.events import Change, HandOver
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import HANDOVER_ACTIONS, WAITING_ACTIONS, Action
from rung.core.domain.request import Request
from rung.core.policy.prompts import FIELDS, PROMPTS
from rung.core.policy.templates import preset
from rung.core.recovery.apply_rung import ANSWERED_PROMPT, apply_rung
from rung.core.recovery.session_resume import CONTINUE_PROMPT, LOST_PROMPT

if TYPE_CHECKING:
    from collections.abc import Mapping

# Actions that send no recovery prompt.
_WITHOUT_PROMPT = frozenset({Action.RETRY, *WAITING_ACTIONS, Action.ASK, Action.SURFACE})
# Prompts of command-line agents, which `rung run`, pipelines and crew workers send in place of a rung's.
_SESSION_USES = {
    CONTINUE_PROMPT: "`retry`, or any rung after a failure that the work did not cause: the agent continues its own session",
    LOST_PROMPT: "`retry`, or a rung that keeps the approach: the agent starts afresh, because its session cannot be continued",
}
_PARTS_KNOWN = " (if the missing parts are known)"


def pages() -> dict[str, str]:
    """Return the path and text of the page."""
    uses = _uses()
    parts: list[str] = []
    for name, text in PROMPTS.items():
        used = [_SESSION_USES[name]] if name in _SESSION_USES else [_use(*use) for use in uses[name].items()]
        parts += [f"## {code(name)}", bullets(used), fence(text)]
    intro = (
        "A recovery prompt is the text that a rung adds to a request. Each prompt has an id. The `Changed` event "
        "records the id, so the effect of a prompt can be measured. The `prompts` table of a [policy](policy.md) "
        "overrides a prompt by id."
    )
    fields = (
        f"Placeholders: {codes('{' + field + '}' for field in FIELDS)}. Other text in braces is not replaced. Errors, "
        "stacks, outputs and earlier errors become blocks of quoted data (`> ` before each line) on lines of their own, "
        "because whoever causes an error writes its text; missing parts and steps stay on one line. `{done}` is a line with the steps, or nothing if there are none."
    )
    return {"prompts.md": page("Recovery prompts", intro, fields, *parts)}


def _uses() -> Mapping[str, Mapping[str, list[str]]]:
    """Return the kinds that use each prompt, by prompt id and action."""
    uses: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for action in Action:
        if action in _WITHOUT_PROMPT:
            continue
        for kind in Kind:
            unknown, known = _prompt_id(action, kind, ()), _prompt_id(action, kind, ("tests",))
            if unknown == known:
                uses[unknown][action.value].append(kind.value)
            else:
                uses[unknown][action.value].append(f"{kind} (if the missing parts are unknown)")
                uses[known][action.value].append(kind + _PARTS_KNOWN)
    uses[ANSWERED_PROMPT]["ask"].append(f"{Kind.STRATEGIC_AMBIGUITY} (if a person answers in words)")
    return uses


def _prompt_id(action: Action, kind: Kind, missing: tuple[str, ...]) -> str:
    """Return the id of the prompt that an action uses for a kind; empty if it uses none."""
    incident = Incident()
    incident.first_request = incident.request = Request(prompt="the task", model="here", max_turns=10)
    failure = Failure(kind=kind, retryable=False, rule="", evidence=Evidence(missing=missing))
    decision: Change | HandOver = Change(rung=0, action=action, wait=0.0, reason="")
    if action in HANDOVER_ACTIONS:
        decision = HandOver(rung=0, model="there", agent="", estimate=None, reason="")
    return apply_rung(decision, incident, failure, preset())[1]


def _use(action: str, kinds: list[str]) -> str:
    others = [kind.value for kind in Kind if kind.value not in kinds]
    if not others:
        return f"{code(action)}: all kinds"
    if len(others) < len(kinds):
        return f"{code(action)}: all kinds except {codes(others)}"
    return f"{code(action)}: {', '.join(_kind_label(kind) for kind in kinds)}"


def _kind_label(use: str) -> str:
    name, _, condition = use.partition(" ")
    return f"{code(name)} {condition}".rstrip()
