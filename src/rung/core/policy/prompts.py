"""Recovery prompts: texts sent to a model after a failure, specific to its kind and explicit about what not to do.

Each prompt has an id, so that its effect can be measured. A policy's `prompts` table overrides prompts by id.
`{name}` is a placeholder for one of `FIELDS`; other text in braces is left unchanged. The texts of errors and outputs
become blocks of quoted data on lines of their own: whoever wrote an error must not give instructions to the model.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.domain.failures import INFRASTRUCTURE_KINDS, PROCESS_DEATH_RULE, Kind
from rung.core.domain.ladder import Action
from rung.core.text.quoted_data import on_one_line, quote_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident

CHARACTERS_PER_TOKEN: Final = 4
FIELDS: Final = (
    "kind",
    "error",
    "stack",
    "output",
    "missing",
    "avoid",
    "tried",
    "steps",
    "done",
    "repeats",
    "known_bad",
    "cause",
    "answer",
    "task",
)
QUOTED_FIELDS: Final = frozenset({"error", "stack", "output", "tried", "known_bad", "cause"})

PROMPTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "resume.cut": (
            "Your last answer was cut off at the length limit. Continue from the exact point where it stopped, in "
            "the middle of a sentence or a line of code if necessary. Do not apologise, do not summarise what came "
            "before, do not start over. Do the rest in smaller pieces."
        ),
        "resume.stopped": (
            "You stopped before the work was finished. Continue it now from where you are. Do not apologise, do "
            "not explain why you stopped, do not repeat finished parts. If one part really cannot be done, say "
            "which in one line and do the rest."
        ),
        "resume.broken": (
            "The connection broke while you were answering. Continue from the exact point where your answer stops, in "
            "the middle of a word, a sentence or a line of code if necessary. Do not apologise, do not summarise what "
            "came before, do not start over."
        ),
        "resume.malformed": (
            "Your last answer could not be used:\n{error}\nGive that part again, complete and valid, and continue from "
            "there. Do not repeat what came before it, do not apologise, do not leave anything out to make it fit."
        ),
        "context.error": (
            "The previous attempt at this task failed.\n\nError ({kind}):\n{error}\n{stack}{output}\n{done}"
            "Do the task again so that this error does not occur. {avoid}\n\nThe task:\n{task}"
        ),
        "nudge.path": (
            "The previous attempt failed because something was not where it was looked for, or was not allowed "
            "there.\n\nError ({kind}):\n{error}\n{output}\n{done}Keep the same approach with another path or name: "
            "first check what exists. Do not use the same path again, and do not create an empty file "
            "just to make the error go away.\n\nThe task:\n{task}"
        ),
        "nudge.format": (
            "The previous answer did not have the required format.\n\nProblem:\n{error}\n{output}\n"
            "Give the whole answer again in exactly the required format, and nothing around it: no preface, no "
            "code fence unless required, no comment. Do not change the content to make it fit.\n\nThe task:\n{task}"
        ),
        "nudge.missing": (
            "Parts of the previous answer are missing. Complete only: {missing}. Do not repeat or rewrite the "
            "parts that are there.\n\n{output}\nThe task:\n{task}"
        ),
        "nudge.test": (
            "The tests fail after the previous attempt.\n\n{error}\n{output}\n{done}Find the cause in the code and fix "
            "it there. Do not change, skip or weaken the tests, do not special-case their inputs, and run them "
            "before you say you are done.\n\nThe task:\n{task}"
        ),
        "nudge.evidence": (
            "The work was reported as done, but there is no evidence of it:\n{error}\n\n{done}Do what is still missing, then "
            "prove it: name the files that changed and the command that proves it, with its output. Do not claim "
            "anything you have not run.\n\nThe task:\n{task}"
        ),
        "nudge.refused": (
            "The previous request was refused:\n{error}\n\nIf the task can be done in an acceptable way, do "
            "that part and say plainly what you leave out. Do not argue and do not try to get around the "
            "rule.\n\nThe task:\n{task}"
        ),
        "nudge.general": (
            "The previous attempt at this task failed.\n\nError ({kind}):\n{error}\n{output}\n{done}Keep the approach "
            "but adjust it to this error. Do not repeat the step that failed with the same inputs. {avoid}\n\n"
            "The task:\n{task}"
        ),
        "replan.loop": (
            "The same action with the same outcome has now been repeated {repeats} times; it will not help the "
            "next time either. Stop. In two sentences: what do you know now, and what do you not know? Then "
            "choose a different tool or method to find that out. Do not repeat:\n{error}\n{known_bad}\n{cause}\n"
            "The task:\n{task}"
        ),
        "replan.approach": (
            "This approach does not work and is abandoned.\n\nWhat was tried:\n{tried}\nWhy it failed ({kind}):\n"
            "{error}\n{known_bad}\n{cause}\nSay in one sentence what the root cause is, then make a new plan that reaches the same goal in another way, then carry it out. Do not go "
            "back to a variation of what is listed above, and keep what already works: {steps}\n\nThe task:\n{task}"
        ),
        "replan.test": (
            "The tests fail after the previous attempt.\n\nWhat was tried:\n{tried}\nThe failure:\n{error}\n{output}\n"
            "{known_bad}\n{cause}\nSay in one sentence what the root cause is, then make a plan that fixes it in the code, "
            "then carry it out. Do not change, skip or weaken the tests, do not special-case their inputs, and run them "
            "before you say you are done. Keep what already works: {steps}\n\nThe task:\n{task}"
        ),
        "respawn.fresh": (
            "You take over a task from a worker that did not finish. It ended with ({kind}):\n{error}\n\nDone so "
            "far: {steps}\nDo the rest in the simplest way that completes the task: the core of it first, nothing "
            "optional, nothing outside its scope. Do not redo finished parts. {avoid}\n\nThe task:\n{task}"
        ),
        "respawn.narrower": (
            "You take over a task that was too broad for the worker before you. It ended with ({kind}):\n{error}\n\nDone "
            "so far: {steps}\nDo less at once: {missing} first, then the rest of the core of the task. Complete each part "
            "before the next. Do nothing optional and nothing outside its scope. {avoid}\n\nThe task:\n{task}"
        ),
        "respawn.longer": (
            "You take over a task whose worker ran out of turns. You have more turns than it had:\n{error}\n\nDone so "
            "far: {steps}\nPlan your turns: the result first, checks after it, nothing optional. {avoid}\n\nThe task:\n{task}"
        ),
        "respawn.simpler": (
            "You take over a task whose result was not good enough ({kind}):\n{error}\n{output}\nDo it in the simplest "
            "way that completes it, and check each part before you say you are done. Do not build on the result "
            "above, and do not add anything that was not asked for.\n\nThe task:\n{task}"
        ),
        "restructure.split": (
            "Workers conflicted with each other:\n{error}\n\nSplit the work again so that no two parts touch the "
            "same files or decisions, say who owns what, and do only your own part. Do not resolve the conflict by "
            "overwriting the other's work.\n\nThe task:\n{task}"
        ),
        "handover.context": (
            "You take over from another agent that could not do this.\n\nWhat was tried:\n{tried}\nThe last error "
            "({kind}):\n{error}\n{output}\n{known_bad}\n{cause}\nDone so far: {steps}\nStart from the state as it is now. Do not repeat "
            "what is listed above.\n\nThe task:\n{task}"
        ),
        "session.continue": (
            "Your session was interrupted before your work was finished ({kind}):\n{error}\n\nContinue it from where you "
            "stopped. What this conversation records as done is done: do not do it again. A call whose result is missing "
            "or says that it was interrupted may have taken effect: check that before you make it again. When everything "
            "is done, give your final answer."
        ),
        "session.lost": (
            "An earlier attempt at this work was interrupted ({kind}), and its session cannot be continued:\n{error}\n{output}\n"
            "Reported as done: {steps}\nCheck what exists before you do anything, keep what is done, and do the rest."
        ),
        "fix.proposal": (
            "Your work reported an error.\n\nError ({kind}):\n{error}\n{output}\nCorrect this and only this, then "
            "continue. Do not widen the task and do not work around the error by disabling a check.\n\n"
            "The task:\n{task}"
        ),
        "investigate.cause": (
            "An error persists after attempts to correct it.\n\nError ({kind}):\n{error}\n{stack}{output}\nWhat was "
            "tried:\n{tried}\nBefore changing anything, find the cause: reproduce it, read the code it comes from, "
            "say what the cause is and how you know. Only then correct it. Do not guess, and do not try another "
            "variation first.\n\nThe task:\n{task}"
        ),
        "ask.answered": (
            "A person answered your question.\n\nThe question:\n{error}\n\nThe answer:\n{answer}\n\nDo the task as the "
            "answer says. Do not ask again what it settles. Keep what is done: {steps}\n\nThe task:\n{task}"
        ),
        "done.last_turn": (
            "This is the last turn; there will not be another. Do not start anything new and do not call tools. "
            "Write down: what is finished, what is not, where it stopped and why, and what a person should do next. "
            "Do not claim anything that was not done.\n\nThe last error ({kind}):\n{error}\n\nThe task was:\n{task}"
        ),
    }
)

_NUDGES: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.NOT_FOUND: "nudge.path",
        Kind.PERMISSION_DENIED: "nudge.path",
        Kind.MALFORMED_OUTPUT: "nudge.format",
        Kind.PARTIAL_OUTPUT: "nudge.missing",
        Kind.TEST_FAILURE: "nudge.test",
        Kind.UNVERIFIED: "nudge.evidence",
        Kind.CONTENT_FILTER: "nudge.refused",
        Kind.REFUSAL: "nudge.refused",
    }
)
_REPLANS: Final[Mapping[Kind, str]] = MappingProxyType(
    {Kind.LOOP_DETECTED: "replan.loop", Kind.TEST_FAILURE: "replan.test"}
)
# How a respawned worker differs: narrower scope, more turns, or a simpler approach.
_RESPAWNS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.PARTIAL_OUTPUT: "respawn.narrower",
        Kind.CONTEXT_LIMIT: "respawn.narrower",
        Kind.OUTPUT_LIMIT: "respawn.narrower",
        Kind.TIMEOUT: "respawn.narrower",
        Kind.TURNS_EXHAUSTED: "respawn.longer",
        Kind.LOW_QUALITY: "respawn.simpler",
        Kind.CAPABILITY_MISMATCH: "respawn.simpler",
        Kind.TEST_FAILURE: "respawn.simpler",
    }
)
_BY_ACTION: Final[Mapping[Action, str]] = MappingProxyType(
    {
        Action.RETRY_WITH_CONTEXT: "context.error",
        Action.RESTRUCTURE: "restructure.split",
        Action.FALLBACK: "handover.context",
        Action.ESCALATE: "handover.context",
        Action.FIX: "fix.proposal",
        Action.INVESTIGATE: "investigate.cause",
        Action.FORCE_DONE: "done.last_turn",
    }
)
_RESUMES: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.GAVE_UP: "resume.stopped",
        Kind.PARTIAL_OUTPUT: "resume.stopped",
        Kind.MALFORMED_OUTPUT: "resume.malformed",
    }
)
_AVOID: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.TIMEOUT: "Do not start long-running steps; work in steps that end quickly.",
        Kind.CONTEXT_LIMIT: "Do not read whole files or print long output; take only what you need.",
        Kind.TURNS_EXHAUSTED: "Do not explore; go straight to the result.",
        Kind.TOOL_ERROR: "Do not call the tool with the same arguments.",
        Kind.RESOURCE_EXHAUSTED: "Do not use as much memory or disk; work in smaller pieces.",
        Kind.GAVE_UP: "Do not stop to ask or to explain; do the work.",
    }
)


def prompt_id(action: Action, failure: Failure) -> str:
    """Return the id of the prompt for this action and failure."""
    if action is Action.RESUME:
        return _RESUMES.get(failure.kind, "resume.broken" if failure.kind in INFRASTRUCTURE_KINDS else "resume.cut")
    if action is Action.REPLAN:
        return _REPLANS.get(failure.kind, "replan.approach")
    if action is Action.NUDGE:
        if failure.kind is Kind.PARTIAL_OUTPUT and not failure.evidence.missing:
            return "resume.stopped"
        return _NUDGES.get(failure.kind, "nudge.general")
    if action is Action.RESPAWN:
        return _RESPAWNS.get(failure.kind, "respawn.fresh")
    return _BY_ACTION.get(action, "context.error")


def render(
    name: str, incident: Incident, failure: Failure, overrides: Mapping[str, str], *, max_tokens: int = 2_000
) -> str:
    """Return the prompt of this id with its placeholders filled in.

    Errors, output and history are clipped to the token budget; the task is never changed.
    """
    template = overrides.get(name) or PROMPTS[name]
    room = max_tokens * CHARACTERS_PER_TOKEN
    evidence = failure.evidence
    task = incident.first_request.prompt if incident.first_request is not None else ""
    fields = {
        "kind": failure.kind.value,
        "error": quote_data(clip(failure.message or failure.kind.value, room // 4), "error"),
        "stack": quote_data(clip(evidence.stack, room // 4), "stack") if evidence.stack else "",
        "output": quote_data(clip(evidence.output, room // 4), "output") if evidence.output else "",
        "missing": on_one_line(clip(", ".join(evidence.missing), room // 8)) or "what is missing",
        "avoid": _AVOID.get(failure.kind, ""),
        "tried": quote_data(clip(_list_failures(incident), room // 4), "earlier errors"),
        "steps": on_one_line(clip(", ".join(incident.steps), room // 8)) or "nothing yet",
        "done": _list_done(incident, room // 8),
        "known_bad": _list_known_bad(incident, room // 4),
        "cause": quote_data(clip(incident.cause, room // 8), "root cause, as investigated") if incident.cause else "",
        "answer": incident.answer.partition(":")[2].strip() or "(none)",
        "repeats": str(evidence.repeats or len(_failures(incident))),
        "task": task or "(as given before)",
    }
    before, task, after = template.partition("{task}")
    return (_fill(before, fields) + (fields["task"] if task else "") + _fill(after, fields)).strip()


def without_task(text: str) -> str:
    """Return a rendered prompt without the task at its end, for a conversation that already contains the task."""
    head, separator, _ = text.partition("\nThe task")  # no quoted line begins so
    return head.rstrip() if separator else text


_PLACEHOLDER: Final = re.compile(rf"( *)\{{({'|'.join(FIELDS)})\}}")


def _fill(template: str, fields: Mapping[str, str]) -> str:
    """Return the template with its placeholders replaced; quoted data stands on lines of its own."""

    def value(match: re.Match[str]) -> str:
        blanks, name = match.groups()
        if name not in QUOTED_FIELDS or not fields[name]:
            return f"{blanks}{fields[name]}"
        before = "\n" if match.start() and template[match.start() - 1] != "\n" else ""
        return before + fields[name] + ("" if template.startswith("\n", match.end()) else "\n")

    return re.sub(r"\n{3,}", "\n\n", _PLACEHOLDER.sub(value, template))  # empty lines left by empty fields


def _failures(incident: Incident) -> list[Failure]:
    """Return the failures that say something about the work: the death of a process does not."""
    return [failure for failure in incident.failures if failure.rule != PROCESS_DEATH_RULE]


def _list_failures(incident: Incident) -> str:
    lines = [f"{n}. {f.kind}: {clip(f.message.strip(), 160)}" for n, f in enumerate(_failures(incident), 1)]
    return "\n".join(lines) or "nothing"


def _list_done(incident: Incident, room: int) -> str:
    """Return a line with the completed steps, for an attempt that keeps the approach; empty if there are none."""
    steps = on_one_line(clip(", ".join(incident.steps), room))
    return f"Done so far, do not do it again: {steps}\n" if steps else ""


def _list_known_bad(incident: Incident, room: int) -> str:
    """Return the approaches that were given up, quoted: they must not be tried again."""
    if not incident.abandoned:
        return ""
    each = room // len(incident.abandoned)
    text = "\n".join(f"{n}. {clip(known.approach, each)}" for n, known in enumerate(incident.abandoned, 1))
    return quote_data(text, "known-bad approaches, not to be tried again")
