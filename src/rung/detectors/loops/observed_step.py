"""Analysed form of a step: the digests and flags that loop rules compare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.detectors.loops import normalize
from rung.detectors.loops.side_effects import (
    Effect,
    action_of,
    effect_of,
    is_code,
    is_location_independent,
    is_prose,
    name_words,
    sole_text,
)
from rung.detectors.loops.wasted_calls import intent_of, trouble_of

if TYPE_CHECKING:
    from rung.detectors.loop_settings import LoopSettings

RawStep = tuple[int, str, Any, str, "bool | str"]  # index, tool, arguments, clipped result, error

# Not every tool reports its failures; an outcome that starts like this is step.
LOOKS_FAILED: Final = re.compile(
    r"\s*(?:<returncode>(?!0<)|<error>|[\w. ]{0,24}(?:error|exception|failed|failure)\b\s*[:!\]]|traceback \(most recent"
    r"|invalid\b|fatal:|cannot\b|could not\b|unable to\b|no such file|permission denied|command not found"
    r"|no replacement was performed|your (?:proposed )?edit (?:has|was not|did not|failed)|old_str(?:ing)? not found)",
    re.IGNORECASE,
).match
# Outcomes that many different calls share: success, or no result.
_GENERIC_TEXT: Final = re.compile(
    r"\b(?:success(?:ful|fully)?|done|ok|saved|created|updated|written|completed|applied|clicked|installed|added|removed"
    r"|no (?:results?|matches|match|output|files?|data)|not found|nothing|none|0 results|empty)\b",
    re.IGNORECASE,
).search
_MIN_SPECIFIC_CHARS: Final = 60  # a shorter outcome is shared by many calls
# Words of a call that pages or scrolls: the next outcome looks similar but is different.
_PAGING_WORD: Final = re.compile(
    r"\b(?:next|more|prev\w*|back|forward|scroll\w*|pag(?:e|es|ing)|load|arrow|down|up|tab|newer|older|continue|skip"
    r"|refresh|reload|zoom|expand|weiter\w*|mehr|nächste\w*|zurück|suivant\w*|plus|siguiente|más|próxim\w+|anterior|avanti"
    r"|altr[oi]|successiv\w+|precedent\w+|pagina)\b|[<>»«\u203a\u2039]",
    re.IGNORECASE,
).search
_MAX_PAGING_WORDS: Final = 12  # a longer call only mentions such a word
# Outcomes of work in progress elsewhere: polling is the right thing to do.
_PENDING_TEXT: Final = re.compile(
    r"\b(?:running|pending|in[ _-]progress|waiting|queued|processing|not (?:yet )?(?:ready|finished|complete)|starting|still)\b",
    re.IGNORECASE,
).search
_MAX_NOTE_CHARS: Final = 300  # a longer outcome only mentions it
_SEARCHES: Final = frozenset({"search", "google", "bing", "query", "lookup"})
_MIN_PROSE_WORDS: Final = (
    4  # words: a text with fewer is a name, not a request; step with a mark of code among so many is a program
)
_CODE_CHARS: Final = "{}=;|<>$\\&"
_MAX_STORED_WORDS: Final = 64


class ObservedStep:
    """One call and its outcome, in normalized form for comparison."""

    __slots__ = (
        "action",
        "call",
        "content",
        "echoes_argument",
        "effect",
        "expects_new_result",
        "failed",
        "fault",
        "generic_outcome",
        "index",
        "intent",
        "location_independent",
        "opening",
        "outcome",
        "reported_error",
        "result_text",
        "shape",
        "subject",
        "target_file",
        "tool",
        "trouble",
        "uninformative",
        "waits",
        "words",
    )  # fmt: skip

    index: int
    tool: str
    action: str  # the tool, with its subcommand if it has several
    call: str  # digest
    outcome: str  # digest
    opening: str  # digest of the outcome's first block
    fault: str  # digest of the error; empty if the error is uninformative
    failed: bool  # reported by the tool, or recognised from the outcome
    reported_error: bool  # reported by the tool
    effect: Effect
    content: frozenset[int]  # hashed words of a request in prose; empty for other calls
    shape: str  # digest of the arguments that are not prose
    target_file: str  # digest of the file that the call changes; empty if it names none
    generic_outcome: bool  # many different calls have this outcome
    uninformative: bool  # the outcome only acknowledges the call and does not show progress
    location_independent: bool  # the result does not depend on the agent's current page or directory
    echoes_argument: bool  # the error names an identifier from the call
    expects_new_result: bool  # a repeat should give a new result, so a nearly equal page counts as the same page
    waits: bool
    words: frozenset[int]  # hashed words of the outcome
    result_text: str
    intent: frozenset[int]  # hashed words of the call, without options
    subject: str  # digest of the numbers and ids that the call names; empty for a command
    trouble: str  # class of the failure or of the empty result; empty if there is none


def observe(raw: RawStep, settings: LoopSettings) -> ObservedStep:
    """Analyse a step."""
    index, tool, args, result, error = raw
    step = ObservedStep()
    step.index, step.tool, step.result_text = index, tool, result
    arguments = normalize.parsed_arguments(args)
    significant = normalize.significant_arguments(arguments, settings.ignored_arguments)
    step.action = action_of(tool, arguments)
    step.reported_error = bool(error)
    step.failed = step.reported_error or LOOKS_FAILED(result[:200]) is not None
    step.effect = Effect.CHANGE if tool in settings.mutating_tools else effect_of(tool, arguments)
    key = settings.loop_keys.get(tool)
    form = normalize.normalized_call(tool, significant if key is None else key(arguments))
    step.call = normalize.digest(form)
    stable = normalize.without_volatile_parts(result)
    step.outcome = normalize.digest(("!" if step.failed else "") + stable)
    step.fault, step.echoes_argument = "", False
    if step.failed:
        error_text = error if isinstance(error, str) and len(error) > 1 else result
        fault = normalize.normalized_error(error_text, form)
        step.fault = normalize.digest(fault) if len(_strip_boilerplate(fault).split()) > 1 else ""
        step.echoes_argument = any(name in form for name in _IDENTIFIERS(error_text[:_MAX_NOTE_CHARS]))
    step.content, step.shape = _prose_words(tool, significant)
    step.generic_outcome = len(stable) < _MIN_SPECIFIC_CHARS or (
        len(stable) < 4 * _MIN_SPECIFIC_CHARS and _GENERIC_TEXT(stable) is not None
    )
    step.waits = step.effect is Effect.WAIT or (
        step.effect is Effect.READ
        and not step.failed
        and len(stable) <= _MAX_NOTE_CHARS
        and _PENDING_TEXT(stable) is not None
    )
    step.location_independent = is_location_independent(step.effect, step.action, form, has_arguments=bool(significant))
    if step.effect is Effect.MOVE and step.generic_outcome:
        step.location_independent = False  # the outcome reports the navigation, not the page
    step.expects_new_result = step.effect in _NAVIGATING or not _SEARCHES.isdisjoint(name_words(step.action))
    if step.expects_new_result and (
        not significant or (form.count(" ") < _MAX_PAGING_WORDS and _PAGING_WORD(form.replace("_", " ")))
    ):
        step.expects_new_result = False
    step.uninformative = not step.failed and step.effect in _ACTING and normalize.is_acknowledgement(stable, form)
    step.target_file = _target_file_digest(tool, arguments) if step.effect is Effect.CHANGE else ""
    step.opening, step.words = "", frozenset()
    step.trouble = trouble_of(stable if not step.failed else result, failed=step.failed, fault=step.fault)
    step.intent, step.subject = intent_of(tool, arguments, significant)
    return step


_IDENTIFIERS: Final = re.compile(r"\b(?=[A-Za-z_-]*\d)[\w-]{4,}").findall  # ids, numbers and dates in an error
_NAVIGATING: Final = frozenset({Effect.MOVE, Effect.OTHER})
_ACTING: Final = frozenset({Effect.MOVE, Effect.CHANGE})
_FILE_ARGUMENTS: Final = ("path", "file_path", "file", "filename", "target_file", "notebook_path")
_BOILERPLATE: Final = re.compile(r"\b(?:returncode|output|error|exit|code|status|\d+)\b")


def _strip_boilerplate(fault: str) -> str:
    return _BOILERPLATE.sub(" ", fault)


def _target_file_digest(tool: str, arguments: Any) -> str:
    """Return a digest of the file that a call changes, if an argument names it."""
    if isinstance(arguments, Mapping):
        for name in _FILE_ARGUMENTS:
            if isinstance(arguments.get(name), str):
                return normalize.digest(f"{tool}\x1f{arguments[name]}")
    return ""


def _prose_words(tool: str, significant: Any) -> tuple[frozenset[int], str]:
    """Return the hashed words of a request in prose, and a digest of the other arguments."""
    text = sole_text(significant)
    if is_code(tool):
        return (normalize.content_words(text) if text is not None and is_prose(text) else frozenset()), ""
    if text is not None:
        return (normalize.content_words(text), "") if _is_prose(text) else (frozenset(), "")
    if isinstance(significant, Mapping):
        prose = {name: value for name, value in significant.items() if isinstance(value, str) and _is_prose(value)}
        rest = {name: value for name, value in significant.items() if name not in prose}
        if prose:
            return normalize.content_words(" ".join(prose[name] for name in sorted(prose))), normalize.digest(
                normalize.normalized_call("", rest)
            )
    return frozenset(), ""


def _is_prose(text: str) -> bool:
    spaces = text.count(" ")
    return spaces >= _MIN_PROSE_WORDS - 1 and sum(map(text.count, _CODE_CHARS)) * _MIN_PROSE_WORDS <= spaces


def opening_of(step: ObservedStep) -> str:
    """Return the digest of the outcome's first block; computed on first use."""
    if not step.opening:
        step.opening = normalize.digest(normalize.first_block(step.result_text))
    return step.opening


def words_of(step: ObservedStep) -> frozenset[int]:
    """Return the hashed words of the outcome; computed on first use."""
    if not step.words and step.result_text:
        step.words = normalize.word_hashes(step.result_text)
    return step.words


def to_json(step: ObservedStep, *, words: bool) -> dict[str, Any]:
    """Return a step as JSON: digests only, no text of the session."""
    opening_of(step)
    table = {name: getattr(step, name) for name in _STORED_FIELDS}
    stored_words = sorted(words_of(step)) if words else []
    return {
        **table,
        "effect": step.effect.value,
        "content": sorted(step.content)[:_MAX_STORED_WORDS],
        "words": stored_words,
        "trouble": step.trouble,
        "intent": sorted(step.intent),
        "subject": step.subject,
    }


_STORED_FIELDS: Final[Mapping[str, type]] = {
    "index": int, "tool": str, "action": str, "call": str, "outcome": str, "opening": str, "fault": str,
    "failed": bool, "reported_error": bool, "shape": str, "target_file": str, "generic_outcome": bool, "uninformative": bool, "location_independent": bool, "echoes_argument": bool, "expects_new_result": bool, "waits": bool,
}  # fmt: skip


def from_json(table: Any) -> ObservedStep:
    """Restore a step from its JSON."""
    if not isinstance(table, Mapping):
        raise ConfigError("loops.steps", table, "an object")
    step = ObservedStep()
    for name, kind in _STORED_FIELDS.items():
        if type(table.get(name)) is not kind:
            raise ConfigError(f"loops.steps.{name}", table.get(name), kind.__name__)
        setattr(step, name, table[name])
    step.effect = Effect(table["effect"])
    step.content = frozenset(table["content"])
    step.words = frozenset(table["words"])
    step.trouble = str(table.get("trouble", ""))  # a state of an older version has none of these
    step.subject = str(table.get("subject", ""))
    step.intent = frozenset(table.get("intent", ()))
    step.result_text = ""
    return step
