"""Recognise what an answer says about its own work, and whether the text shows evidence for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify import answer_wordings as said
from rung.core.classify import progress_wordings as progress
from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Wordings:
    """Several wordings of one statement; each is searched only if one of the substrings that it needs is present."""

    __slots__ = ("_wordings",)

    def __init__(self, wordings: Sequence[tuple[str, str]]) -> None:
        self._wordings = [(tuple(needs.split("|")), _compiled(text)) for needs, text in wordings]

    def found_in(self, prose: str) -> bool:
        """Return whether a prose in lower case makes the statement."""
        for needs, pattern in self._wordings:
            for needed in needs:
                if needed in prose:
                    if pattern.search(prose):
                        return True
                    break
        return False


def _compiled(text: str) -> LazyPattern[str]:
    """Return the pattern of a wording, with the named parts filled in."""
    for name, part in said.PARTS.items():
        text = text.replace(name, part)
    return LazyPattern(text, re.MULTILINE)


STATEMENTS: Final = {
    "declines": Wordings(said.DECLINES),
    "admits-disobedience": Wordings(said.ADMITS_DISOBEDIENCE),
    "off-task": Wordings(said.OFF_TASK),
    "admits-false-claim": Wordings(said.ADMITS_FALSE_CLAIM),
    "empty-answer": Wordings(progress.SAYS_EMPTY),
    "gives-up": Wordings(said.GIVES_UP),
    "asks-to-continue": Wordings(progress.ASKS_TO_CONTINUE),
    "unfinished": Wordings(progress.UNFINISHED),
    "assumes": Wordings(progress.ASSUMES),
    "hopes": Wordings(progress.HOPES),
    "claims-success": Wordings(progress.CLAIMS_SUCCESS),
}
# The text shows what it claims: counts of a test run, an exit code, a commit, a link, a command or file, a table.
_EVIDENCE: Final = LazyPattern(
    r"\b[1-9]\d* (?:\w+ )?(?:tests?|pass(?:ed|ing|es)?|green|succeeded)\b|\b0 (?:fail|error)|\bpassed\W{1,3}\d"
    r"|\bexit(?:ed)?(?: with)?(?: code| status)? ?:?=? ?0\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|https?://"
    r"|^\s*\$ \S|\bpytest\b|\b(?:npm|cargo|go|bun|yarn|pnpm|make|mvn|gradle) (?:run |test|check)|`[^`\n]*[/.][^`\n]*`|^\|.*\|"
    r"|\b(?:output|result|log)s?:\s*\n|\bverified (?:by|with|via|against|to fail|on|in)\b|#\d{2,}"
    r"|\bci\b[^.\n]{0,40}\b(?:green|pass|success)|```",
    re.MULTILINE,
)
_ASKS_FOR_INPUT: Final = LazyPattern(
    r"\black(?:s|ing)? (?:crucial |enough |the |sufficient |necessary |key )*(?:information|details?|context|data)|\bnot (?:mentioned"
    r"|specified|stated)|\b(?:please|could you|can you)(?: please)? (?:provide|share|upload|paste|specify|clarify|send|attach|tell me)"
)
_NOTHING_WRONG: Final = LazyPattern(
    r"(?:find|found|identify|locate|reproduce|see|detect) (?:any |a |an |more )?(?:further |other |additional )?(?:issue|problem|error|bug"
    r"|evidence|regression|usage|reference|vulnerab|defect|blocker)"
)
_UNPROVEN: Final = frozenset({"hopes", "claims-success"})
_ENDINGS: Final = frozenset({"gives-up", "declines", "asks-to-continue"})


def shows_evidence(text: str) -> bool:
    """Return whether a text in lower case shows evidence for what it claims."""
    return _EVIDENCE.search(text) is not None


_CLAIMS_COMPLETION: Final = Wordings(progress.CLAIMS_COMPLETION)


def claims_completion(prose: str) -> bool:
    """Return whether a prose in lower case says that the work is finished."""
    return _CLAIMS_COMPLETION.found_in(prose)


def statement_signs(prose: str, raw: str) -> set[str]:
    """Return the signs of the statements in a prose in lower case; `raw` is the text as written."""
    signs = {sign for sign, wordings in STATEMENTS.items() if wordings.found_in(prose)}
    signs.update(_progress_signs(prose))
    if signs & _ENDINGS and _ASKS_FOR_INPUT.search(prose):
        signs -= _ENDINGS  # a question, not an ending
    if "gives-up" in signs and _NOTHING_WRONG.search(prose):
        signs.discard("gives-up")
    if signs & _UNPROVEN and shows_evidence(raw.lower()):
        signs -= _UNPROVEN
    return signs


# -- progress ----------------------------------------------------------------------------------------------------

_LEAD: Final = r"(?:(?:ok(?:ay)?|now|next|good|great|perfect|first|alright|so|then|excellent)[,.!]* )*"
# The last sentence announces a step: nothing follows it.
_ANNOUNCES: Final = LazyPattern(
    rf"{_LEAD}(?:let me (?!know|help)|i'll |i will |i'm going to |i am going to |now i |next,? i |let's |i can now )[^:]{{3,200}}(?:[:\uff1a]|\.{{3}}|\u2026)\Z"
    rf"|{_LEAD}(?:let me|i'll|i will|i'm going to|i am going to|i need to|we need to|let's)(?: (?:now|also|first|then|next|try|quickly|continue"
    r"|proceed|go ahead|start|begin|need|to|and|by|have))* (?:check|fix|update|run|implement|create|look|read|writ|add|search|test|verify"
    r"|examin|investigat|analy|edit|modify|refactor|find|explor|review|build|set up|install|mak|remov|replac|rewrit|generat|process|visit"
    r"|open|us|inspect|navigat)\w*\b.{0,200}\Z"
    "|.{0,40}(?:我(?:将|来|用|先|现在|会|需要|要)|现在|接下来|让我|下面|次に|まず|これから).{2,120}[:\uff1a]\\Z"
)
_LAST_SENTENCE: Final = LazyPattern(r"(?:[.!?]\s+|\n\s*|[\u3002\uff01\uff1f])(?=\S)")
_MAX_LAST_CHARS: Final = 400
_CHECKED: Final = LazyPattern(r"^\W{0,6}(?:\d+[.)]\s*)?(?:\u2705|\u2713|\u2714|\[x\])", re.MULTILINE)
_UNCHECKED: Final = LazyPattern(
    r"^[\s\-*]{0,6}(?:\d+[.)]\s*)?(?:\u26a0|\u274c|\u23f3|\U0001f504|\U0001f6a7|\u23f8|\U0001f7e1|\[ \]|\u2b1c)(?![^\n]*\b(?:before|previous|old)\b)",
    re.MULTILINE,
)
_MIN_CHECKED: Final = 2
_SHARE: Final = LazyPattern(
    r"\bonly (?:\w+ ){0,4}(\d{1,6})(?: \w+){0,2} ?(?:of|out of|/) ?(?:the |all )?(?:\w+ )?(\d{1,6})\b"
    r"|\b(\d{1,6}) ?(?:of|out of|/) ?(?:the )?(\d{1,6}) (?:\w+ )?(?:done|complete|completed|finished|implemented|processed|translated|converted|migrated)"
)


def _last_sentence(prose: str) -> str:
    tail = prose.rstrip()[-_MAX_LAST_CHARS:]
    starts = [found.end() for found in _LAST_SENTENCE.finditer(tail)]
    return tail[starts[-1] :] if starts else tail


def _progress_signs(prose: str) -> Iterator[str]:
    """Yield signs of work that stopped midway: an announced step that never came, an open item, a share of a total."""
    if _ANNOUNCES.match(_last_sentence(prose)):
        yield "announces-only"
    if len(_CHECKED.findall(prose)) >= _MIN_CHECKED and _UNCHECKED.search(prose):
        yield "open-items"
    if any(int(found[1] or found[3]) < int(found[2] or found[4]) for found in _SHARE.finditer(prose)):
        yield "share-of-total"
