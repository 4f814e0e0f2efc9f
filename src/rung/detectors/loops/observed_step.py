"""A step as a loop watch remembers it: its forms and effect, made on suspicion and kept."""

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
    from_anywhere,
    is_code,
    is_prose,
    only_text,
    parts,
)

if TYPE_CHECKING:
    from rung.detectors.loop_settings import LoopSettings

Raw = tuple[int, str, Any, str, "bool | str"]  # index, tool, arguments, what came (clipped), error

# A tool does not always say that it failed; an outcome that begins like this says it.
_FAILED: Final = re.compile(
    r"\s*(?:<returncode>(?!0<)|<error>|[\w. ]{0,24}(?:error|exception|failed|failure)\b\s*[:!\]]|traceback \(most recent"
    r"|invalid\b|fatal:|cannot\b|could not\b|unable to\b|no such file|permission denied|command not found"
    r"|no replacement was performed|your (?:proposed )?edit (?:has|was not|did not|failed)|old_str(?:ing)? not found)",
    re.IGNORECASE,
).match
# Said of many calls alike: that it was done, or that there is nothing.
_SAID_OF_MANY: Final = re.compile(
    r"\b(?:success(?:ful|fully)?|done|ok|saved|created|updated|written|completed|applied|clicked|installed|added|removed"
    r"|no (?:results?|matches|match|output|files?|data)|not found|nothing|none|0 results|empty)\b",
    re.IGNORECASE,
).search
_TELLING: Final = 60  # characters: a shorter outcome is the same for many calls
# A call that moves on: what comes next looks much the same and is something else.
_MOVES_ON: Final = re.compile(
    r"\b(?:next|more|prev\w*|back|forward|scroll\w*|pag(?:e|es|ing)|load|arrow|down|up|tab|newer|older|continue|skip"
    r"|refresh|reload|zoom|expand|weiter\w*|mehr|nächste\w*|zurück|suivant\w*|plus|siguiente|más|próxim\w+|anterior|avanti"
    r"|altr[oi]|successiv\w+|precedent\w+|pagina)\b|[<>»«\u203a\u2039]",
    re.IGNORECASE,
).search
_BRIEF: Final = 12  # words: a longer call only mentions such a word
# What a tool says of work that goes on without the agent: looking again is all there is to do.
_GOES_ON: Final = re.compile(
    r"\b(?:running|pending|in[ _-]progress|waiting|queued|processing|not (?:yet )?(?:ready|finished|complete)|starting|still)\b",
    re.IGNORECASE,
).search
_NOTE: Final = 300  # characters: a longer outcome only mentions it
_SEARCHES: Final = frozenset({"search", "google", "bing", "query", "lookup"})
_PROSE: Final = (
    4  # words: a text with fewer is a name, not a request; one with a mark of code among so many is a program
)
_CODE: Final = "{}=;|<>$\\&"
_WORDS_KEPT: Final = 64


class ObservedStep:
    """One call and its outcome, in the forms in which they are compared."""

    __slots__ = (
        "action", "anywhere", "call", "content", "effect", "failed", "fault", "flagged", "index", "many", "mute", "named", "opening",
        "outcome", "place", "said", "settled", "shape", "tool", "waits", "words",
    )  # fmt: skip

    index: int
    tool: str
    action: str  # the tool, with what it was told to do where it does several things
    call: str  # digest
    outcome: str  # digest
    opening: str  # digest of the outcome's first block
    fault: str  # digest of the error, empty where it says nothing
    failed: bool  # by its tool's word, or by its own
    flagged: bool  # by its tool's word
    effect: Effect
    content: frozenset[int]  # words of a request in prose; empty where the call is none
    shape: str  # digest of everything in the call that is not prose
    place: str  # digest of the file that a call changes; empty where it names none
    many: bool  # the outcome is one of those that many calls have
    mute: bool  # it did something, and its outcome says no more than that: whether it got on cannot be seen
    anywhere: bool  # the call comes to the same wherever the agent is
    named: bool  # the error names something that is in the call
    settled: bool  # the same call again should find something new: a page that looks alike is the same page
    waits: bool
    words: frozenset[int]  # of the outcome
    said: str


def seen(raw: Raw, watching: LoopSettings) -> ObservedStep:
    """Look closely at a step."""
    index, tool, args, said, error = raw
    one = ObservedStep()
    one.index, one.tool, one.said = index, tool, said
    given = normalize.arguments(args)
    meant = normalize.meaning(given, watching.ignored_arguments)
    one.action = action_of(tool, given)
    one.flagged = bool(error)
    one.failed = one.flagged or _FAILED(said[:200]) is not None
    one.effect = Effect.CHANGE if tool in watching.mutating_tools else effect_of(tool, given)
    key = watching.loop_keys.get(tool)
    form = normalize.call_form(tool, meant if key is None else key(given))
    one.call = normalize.digest(form)
    steady = normalize.unvarying(said)
    one.outcome = normalize.digest(("!" if one.failed else "") + steady)
    one.fault, one.named = "", False
    if one.failed:
        told = error if isinstance(error, str) and len(error) > 1 else said
        fault = normalize.fault_form(told, form)
        one.fault = normalize.digest(fault) if len(_bare(fault).split()) > 1 else ""
        one.named = any(name in form for name in _NAMES(told[:_NOTE]))
    one.content, one.shape = _prose(tool, meant)
    one.many = len(steady) < _TELLING or (len(steady) < 4 * _TELLING and _SAID_OF_MANY(steady) is not None)
    one.waits = one.effect is Effect.WAIT or (
        one.effect is Effect.READ and not one.failed and len(steady) <= _NOTE and _GOES_ON(steady) is not None
    )
    one.anywhere = from_anywhere(one.effect, one.action, form, given=bool(meant))
    if one.effect is Effect.MOVE and one.many:
        one.anywhere = False  # it says that it went there, not what it saw
    one.settled = one.effect in _ACTS or not _SEARCHES.isdisjoint(parts(one.action))
    if one.settled and (not meant or (form.count(" ") < _BRIEF and _MOVES_ON(form.replace("_", " ")))):
        one.settled = False
    one.mute = not one.failed and one.effect in _DOES and normalize.says_only(steady, form)
    one.place = _place(tool, given) if one.effect is Effect.CHANGE else ""
    one.opening, one.words = "", frozenset()
    return one


_NAMES: Final = re.compile(r"\b(?=[A-Za-z_-]*\d)[\w-]{4,}").findall  # what an error names: an id, a number, a date
_ACTS: Final = frozenset({Effect.MOVE, Effect.OTHER})
_DOES: Final = frozenset({Effect.MOVE, Effect.CHANGE})
_FILES: Final = ("path", "file_path", "file", "filename", "target_file", "notebook_path")
_MARKS: Final = re.compile(r"\b(?:returncode|output|error|exit|code|status|\d+)\b")


def _bare(fault: str) -> str:
    return _MARKS.sub(" ", fault)


def _place(tool: str, given: Any) -> str:
    """The file that a call is about to change, where it says so in a field of its own."""
    if isinstance(given, Mapping):
        for name in _FILES:
            if isinstance(given.get(name), str):
                return normalize.digest(f"{tool}\x1f{given[name]}")
    return ""


def _prose(tool: str, meant: Any) -> tuple[frozenset[int], str]:
    """The words of what is asked for in prose, and a digest of the rest."""
    text = only_text(meant)
    if is_code(tool):
        return (normalize.content(text) if text is not None and is_prose(text) else frozenset()), ""
    if text is not None:
        return (normalize.content(text), "") if _is_prose(text) else (frozenset(), "")
    if isinstance(meant, Mapping):
        told = {name: value for name, value in meant.items() if isinstance(value, str) and _is_prose(value)}
        rest = {name: value for name, value in meant.items() if name not in told}
        if told:
            return normalize.content(" ".join(told[name] for name in sorted(told))), normalize.digest(
                normalize.call_form("", rest)
            )
    return frozenset(), ""


def _is_prose(text: str) -> bool:
    spaces = text.count(" ")
    return spaces >= _PROSE - 1 and sum(map(text.count, _CODE)) * _PROSE <= spaces


def opening_of(one: ObservedStep) -> str:
    """The digest of an outcome's first block; made for the few that are compared by it, as are its words."""
    if not one.opening:
        one.opening = normalize.digest(normalize.opening(one.said))
    return one.opening


def words_of(one: ObservedStep) -> frozenset[int]:
    """The words of an outcome."""
    if not one.words and one.said:
        one.words = normalize.words(one.said)
    return one.words


def to_json(one: ObservedStep, *, words: bool) -> dict[str, Any]:
    """A step as it outlives the process: digests, and no text of the agent's."""
    opening_of(one)
    table = {name: getattr(one, name) for name in _PLAIN}
    kept = sorted(words_of(one)) if words else []
    return {**table, "effect": one.effect.value, "content": sorted(one.content)[:_WORDS_KEPT], "words": kept}


_PLAIN: Final[Mapping[str, type]] = {
    "index": int, "tool": str, "action": str, "call": str, "outcome": str, "opening": str, "fault": str,
    "failed": bool, "flagged": bool, "shape": str, "place": str, "many": bool, "mute": bool, "anywhere": bool, "named": bool, "settled": bool, "waits": bool,
}  # fmt: skip


def from_json(table: Any) -> ObservedStep:
    """The step that was kept."""
    if not isinstance(table, Mapping):
        raise ConfigError("loops.steps", table, "an object")
    one = ObservedStep()
    for name, kind in _PLAIN.items():
        if type(table.get(name)) is not kind:
            raise ConfigError(f"loops.steps.{name}", table.get(name), kind.__name__)
        setattr(one, name, table[name])
    one.effect = Effect(table["effect"])
    one.content = frozenset(table["content"])
    one.words = frozenset(table["words"])
    one.said = ""
    return one
