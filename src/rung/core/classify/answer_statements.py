"""Recognise what an answer says about its own work, and whether the text shows evidence for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify import answer_wordings as wordings
from rung.core.classify import claim_wordings as claims
from rung.core.classify import progress_wordings as progress
from rung.core.classify.answer_announcements import announces_only
from rung.core.classify.answer_inability import (
    inability_signs,
    is_about_its_author,
    is_about_policy,
    opening_of,
    reports_work,
)
from rung.core.classify.capability_wordings import LACKS_CAPABILITY
from rung.core.classify.give_up_wordings import GIVES_UP
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
    for name, part in wordings.PARTS.items():
        text = text.replace(name, part)
    return LazyPattern(text, re.MULTILINE)


STATEMENTS: Final = {
    "declines": Wordings(wordings.DECLINES),
    "admits-disobedience": Wordings(wordings.ADMITS_DISOBEDIENCE),
    "off-task": Wordings(wordings.OFF_TASK),
    "admits-false-claim": Wordings(wordings.ADMITS_FALSE_CLAIM),
    "empty-answer": Wordings(claims.SAYS_EMPTY),
    "gives-up": Wordings(GIVES_UP),
    "asks-to-continue": Wordings(progress.ASKS_TO_CONTINUE),
    "unfinished": Wordings(progress.UNFINISHED),
    "assumes": Wordings(claims.ASSUMES),
    "hopes": Wordings(claims.HOPES),
    "claims-success": Wordings(claims.CLAIMS_SUCCESS),
    "claims-fix": Wordings(claims.CLAIMS_FIX),
    "claims-done": Wordings(claims.CLAIMS_DONE),
}
_LACKS_CAPABILITY: Final = Wordings(LACKS_CAPABILITY)
# The text shows what it claims: counts of a test run, an exit code, a commit, a link, a command, a table.
_PROOF: Final = (
    r"\b[1-9]\d* (?:\w+ )?(?:tests?|pass(?:ed|ing|es)?|green|succeeded)\b|\b0 (?:fail|error)|\bpassed\W{1,3}\d"
    r"|\bexit(?:ed)?(?: with)?(?: code| status)? ?:?=? ?0\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|https?://"
    r"|^\s*\$ \S|\bpytest\b|\b(?:npm|cargo|go|bun|yarn|pnpm|make|mvn|gradle) (?:run |test|check)|^\|.*\|"
    r"|\b(?:output|result|log)s?:\s*\n|\bverified (?:by|with|via|against|to fail|on|in)\b|#\d{2,}"
    r"|\bci\b[^.\n]{0,40}\b(?:green|pass|success)|```"
)
_SHOWS_PROOF: Final = LazyPattern(_PROOF, re.MULTILINE)
_EVIDENCE: Final = LazyPattern(rf"{_PROOF}|`[^`\n]*[/.][^`\n]*`", re.MULTILINE)  # or a file
_ASKS_FOR_INPUT: Final = LazyPattern(
    r"\black(?:s|ing)? (?:crucial |enough |the |sufficient |necessary |key )*(?:information|details?|context|data)|\bnot (?:mentioned"
    r"|specified|stated)|\b(?:please|could you|can you)(?: please)? (?:provide|share|upload|paste|specify|clarify|send|attach|tell me)"
)
_MAX_QUESTION_CHARS: Final = 1_200  # a longer answer is a report, which may end with a question
_NOTHING_WRONG: Final = LazyPattern(
    r"(?:find|found|identify|locate|reproduce|see|detect) (?:any |a |an |more )?(?:further |other |additional )?(?:issue|problem|error|bug"
    r"|evidence|regression|usage|reference|vulnerab|defect|blocker)"
)
# A plain claim is believable if it names the cause and the place.
_EXPLAINED: Final = LazyPattern(
    r"\b(?:because|since|caused by|due to|the cause|the reason|root cause|was (?:missing|wrong|never|not))\b|\b[\w/-]+\.(?:py|ts|tsx|js|go|rs|java|c|cpp|rb|php|md|toml|ya?ml|json|sql|sh|css|html)\b"
)
_MAX_CLAIM_CHARS: Final = 240  # of an answer that is nothing but a claim; a longer one says what was done
_UNPROVEN: Final = frozenset({"hopes", "claims-success", "claims-fix"})
_ENDINGS: Final = frozenset({"gives-up", "lacks-thing", "lacks-capability", "declines", "asks-to-continue"})


def shows_evidence(text: str) -> bool:
    """Return whether a text in lower case shows evidence for what it claims."""
    return _EVIDENCE.search(text) is not None


_CLAIMS_COMPLETION: Final = Wordings(claims.CLAIMS_COMPLETION)


def claims_completion(prose: str) -> bool:
    """Return whether a prose in lower case says that the work is finished."""
    return _CLAIMS_COMPLETION.found_in(prose)


def statement_signs(prose: str, raw: str) -> set[str]:
    """Return the signs of the statements in a prose in lower case; `raw` is the text as written."""
    signs = {sign for sign, wordings in STATEMENTS.items() if wordings.found_in(prose)}
    signs.update(_progress_signs(prose, raw))
    has_evidence = shows_evidence(raw.lower())
    if not has_evidence:
        signs.update(inability_signs(prose))
        is_ending = is_about_its_author(prose) or ("gives-up" in signs and not is_about_policy(prose))
        if is_ending and _LACKS_CAPABILITY.found_in(opening_of(prose)):
            signs.add("lacks-capability")
    else:
        if "gives-up" in signs:
            signs.update(inability_signs(prose) & {"lacks-thing"})
        if is_about_its_author(prose) and _LACKS_CAPABILITY.found_in(opening_of(prose)):
            signs.add("lacks-capability")
    if signs & _ENDINGS and len(prose) <= _MAX_QUESTION_CHARS and _ASKS_FOR_INPUT.search(prose):
        signs -= _ENDINGS  # a question, not an ending
    if {"gives-up", "unfinished"} <= signs and reports_work(prose):
        signs.discard("gives-up")  # a part is done, and the rest is named
    if _NOTHING_WRONG.search(prose):
        signs -= {"gives-up", "lacks-thing"}
    if has_evidence:
        signs -= _UNPROVEN
    if "claims-fix" in signs and _EXPLAINED.search(prose):
        signs.discard("claims-fix")
    if "claims-done" in signs and (len(prose) > _MAX_CLAIM_CHARS or _SHOWS_PROOF.search(raw.lower())):
        signs.discard("claims-done")
    return signs


# -- progress ----------------------------------------------------------------------------------------------------

_CHECKED: Final = LazyPattern(r"^\W{0,6}(?:\d+[.)]\s*)?(?:\u2705|\u2713|\u2714|\[x\])", re.MULTILINE)
_UNCHECKED: Final = LazyPattern(
    r"^[\s\-*]{0,6}(?:\d+[.)]\s*)?(?:\u26a0|\u274c|\u23f3|\U0001f504|\U0001f6a7|\u23f8|\U0001f7e1|\[ \]|\u2b1c)(?![^\n]*\b(?:before|previous|old)\b)",
    re.MULTILINE,
)
_MIN_CHECKED: Final = 2
# A numbered list whose middle is an ellipsis.
_LIST_GAP: Final = LazyPattern(
    r"^\W{0,6}(\d{1,4})[.):][^\n]*\n\s*(?:\.{3,}|\u2026|\[\.\.\.\]|etc\.?)\s*\n\W{0,6}(\d{1,4})[.):]", re.MULTILINE
)
_SHARE: Final = LazyPattern(
    r"\b(?:only|here are the first|showing the first) (?:\w+ ){0,4}(\d{1,6})(?: \w+){0,2} ?(?:of|out of|/) ?(?:the |all )?(?:\w+ )?(\d{1,6})\b"
    r"|\b(?:translated|converted|migrated|processed|ported|implemented|completed|finished|handled|covers?|covered|read|wrote|fixed)\b(?: \w+){0,3} (?:\d{1,4}[-\u2013])?(\d{1,6}) (?:of|out of) (?:the )?(\d{1,6})\b"
    r"|\b(\d{1,6}) ?(?:of|out of|/) ?(?:the )?(\d{1,6}) (?:\w+ )?(?:done|complete|completed|finished|implemented|processed|translated|converted|migrated)"
)


_STATUS_DONE: Final = LazyPattern(r"[:|\u2013-] *(?:done|finished|complete|completed|ok|ready) *(?:\||$)", re.MULTILINE)
_STATUS_OPEN: Final = LazyPattern(
    r"[:|\u2013-] *(?:in progress|not started|pending|todo|to do|open|wip|blocked|not done|incomplete) *(?:\||$)",
    re.MULTILINE,
)


def _progress_signs(prose: str, raw: str) -> Iterator[str]:
    """Yield signs of work that stopped midway: an announced step that never came, an open item, a share of a total."""
    if announces_only(prose, raw):
        yield "announces-only"
    if _STATUS_OPEN.search(prose) and _STATUS_DONE.search(prose):
        yield "open-items"
    if len(_CHECKED.findall(prose)) >= _MIN_CHECKED and _UNCHECKED.search(prose):
        yield "open-items"
    if any(
        int(found[1] or found[3] or found[5]) < int(found[2] or found[4] or found[6])
        for found in _SHARE.finditer(prose)
    ):
        yield "share-of-total"
    if any(int(found[2]) > int(found[1]) + 1 for found in _LIST_GAP.finditer(prose)):
        yield "open-items"
