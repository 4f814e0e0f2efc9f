"""Words of a report that says: the fix is outside the reporter's task, phase or authority. Any inflection counts."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_CHANGES: Final = (
    r"(?:chang|modif|alter|edit|revis|amend|rework|redesign|refactor|rewrit|rewrot|overrid|adjust|updat|remov|drop|relax|replac"
    r"|restructur|violat|contradict|break|touch|decid|reconsider|rethink|extend|delet|weaken|reopen|skip)\w*"
)
_CHANGE: Final = (
    r"(?:decision|change|choice|modification|revision|redesign|rework|refactoring|question|adjustment|alteration|edit|fix|fixe"
    r"|update|amendment|approval|coordination|dependency|dependencie|impact|rewrite|issue|conflict)s?"
)
_NEEDS: Final = (
    r"(?:requir(?:e|es|ed|ing)|need(?:s|ed|ing)?|must|shall|should|would|ha[ds] to|have to|having to|call(?:s|ed)? for"
    r"|demand(?:s|ed)?|necessitat(?:e|es|ed)|impl(?:y|ies|ied)|involv(?:e|es|ed|ing)|means?|take[sn]?|cannot|can't|only by)"
)
_FEW: Final = r"(?:[\w'-]+\s+){0,4}?"  # words between two parts of a phrase
_OTHER: Final = (
    r"(?:another|other|an? (?:earlier|later|different|previous|completed)|an already completed|the (?:next|previous|earlier)"
    r"|several|multiple|two|both|different)"
)
_ONES_OWN: Final = r"(?:my|its|our|their|your|the|this|that)"
_ROLE: Final = r"(?:(?:task|phase|worker|conductor|musician|crew|agent|plan|step)(?:'?s)?|intra-phase)"
_MANDATORY: Final = (
    r"mandatory\s+(?:plan\s+)?(?:items?|elements?|parts?|decisions?|sections?|tasks?|requirements?|constraints?)"
)
_PHASES: Final = r"phases?\s+\d+\s*(?:,|and|&)\s*(?:phase\s+)?\d+"
_PLAN: Final = r"(?:arranger(?:'s)?\s+plan|plan)"

_PHRASES: Final = (
    # architectural decisions; a change of the architecture; the architecture must be changed
    rf"architectur(?:al|e)\s+(?:or\s+\w+\s+)?(?:level\s+)?{_CHANGE}",
    rf"{_CHANGE}\s+(?:to|of|in|about|on)\s+(?:the\s+)?(?:\w+\s+)?architecture",
    rf"{_CHANGES}\s+(?:the|our|its)\s+(?:\w+\s+)?architecture",
    rf"architecture\s+(?:itself\s+)?{_NEEDS}\s+(?:to\s+)?(?:have\s+to\s+)?(?:be\s+)?{_CHANGES}",
    # cross-phase changes; changes across phases; work of another phase
    rf"cross[- ](?:phase|task)\s+(?:\w+\s+){{0,2}}?{_CHANGE}",
    r"(?:is|are|was|be|as|goes)\s+(?:a\s+)?cross[- ](?:phase|task)",
    rf"(?:{_CHANGE}|{_CHANGES}|span(?:s|ning)?|reach(?:es|ing)?|cut(?:s|ting)?)\s+{_FEW}across\s+(?:\w+\s+)?(?:phases|tasks)",
    rf"(?:span(?:s|ning)?|affect(?:s|ing)?|crosse?(?:s|ing)?)\s+{_OTHER}\s+(?:phases|phase\s+boundar(?:y|ies))",
    r"cross(?:es|ing)?\s+(?:the\s+|a\s+)?phase\s+boundar(?:y|ies)",
    rf"{_OTHER}\s+(?:task|phase)s?'?s?\s+(?:files?|scope|work|code|outputs?)",
    rf"(?:{_CHANGE}\s+(?:to|in|of)|{_CHANGES}|belong(?:s|ed|ing)?\s+(?:to|in))\s+{_OTHER}\s+phases?",
    rf"{_CHANGES}\s+{_PHASES}",
    rf"{_PHASES}\s+(?:{_NEEDS}\s+)?(?:to\s+)?(?:have\s+to\s+)?be\s+{_CHANGES}",
    rf"phase\s+\d+\s+{_NEEDS}\s+(?:to\s+)?(?:have\s+to\s+)?be\s+{_CHANGES}\s+(?:too|also|as\s+well)\b",
    # the plan, and its mandatory items
    r"mandatory\s+authority",
    rf"{_CHANGES}\s+{_FEW}{_MANDATORY}",
    rf"{_CHANGE}\s+(?:to|of|in)\s+{_FEW}{_MANDATORY}",
    rf"{_MANDATORY}\s+{_FEW}{_NEEDS}\s+(?:not\s+)?(?:to\s+)?(?:have\s+to\s+)?(?:be\s+)?{_CHANGES}",
    rf"{_MANDATORY}\s+(?:of|in|from|by)\s+(?:the|our|this)\s+{_PLAN}",
    rf"(?:contradict|violat|conflict|deviat)\w*\s+(?:with\s+|from\s+)?the\s+{_PLAN}",
    rf"(?:chang|modif|revis|amend|alter|rework|rewrit)\w*\s+(?:to\s+|of\s+)?the\s+{_PLAN}(?!\s+to\s+\w)",
    rf"the\s+{_PLAN}\s+(?:itself\s+)?is\s+(?:wrong|flawed|incorrect|outdated|obsolete)\b",
    rf"the\s+{_PLAN}\s+(?:itself\s+)?(?:must|needs?\s+to|ha[ds]\s+to|would\s+have\s+to|should)\s+(?:be\s+)?(?:chang|modif|revis|amend|alter)\w*",
    # scope and authority
    r"out[- ]of[- ](?:\w+[- ])?scope",
    rf"(?:outside|beyond|exceed(?:s|ed|ing)?|not\s+within)\s+(?:of\s+)?(?:{_ONES_OWN}\s+)?(?:{_ROLE}\s+)?scope",
    r"not\s+in\s+scope\s+(?:for|of)",
    rf"(?:outside|beyond|exceed(?:s|ed|ing)?|not\s+within)\s+(?:of\s+)?(?:{_ONES_OWN}\s+)?(?:{_ROLE}\s+)?(?:authority|remit|mandate)",
    rf"(?:no|lack(?:s|ing)?|without|not\s+have)\s+(?:the\s+)?authority\s+(?:to\s+(?:{_CHANGES}|make|do)|for|over)",
    r"(?:needs?|requires?|awaits?)\s+(?:an?\s+)?(?:person|human)(?:'?s)?\s+decisions?",
)
# Where these come just before a phrase, it says that no such change is needed.
_NEGATED: Final = re.compile(
    r"(?:\b(?:no|never|nor|neither|zero)|(?:\bnot|n't|\bnever)(?:\s+(?:an?|any|the|really))?"
    r"|(?:\bnot|n't|\bnever|\bno\s+longer)\s+(?:\w+\s+)?(?:requir|need|involv|impl|mean|touch|demand|necessitat|call)\w*(?:\s+for)?"
    r"(?:\s+(?:an?|any|the))?(?:\s+\w+)?|(?P<without>\bwithout)(?:\s+(?:an?|any|the|making|doing))*)\s+\Z",
    re.IGNORECASE,
)
_IMPOSSIBLE: Final = re.compile(
    r"\b(?:cannot|can't|can\s+not|impossible|unable|no\s+(?:fix|way|solution)|not\s+(?:possible|fixable|solvable))\b[^.!?\n]*\Z",
    re.IGNORECASE,
)
# A name in a program that is out of scope, and a token's scope, are ordinary errors.
_PROGRAM_SCOPE: Final = re.compile(
    r"(?:\b(?:go(?:es|ne|ing)?|went|variables?|symbols?|names?|identifiers?|used|accessed|referenced|dropped|declared|values?"
    r"|tokens?|references?|functions?|lifetimes?|binding)\b(?:\s+\S+){0,3}|[`'\"\]]\s*(?:(?:is|was|are)\s+)?)\s*\Z",
    re.IGNORECASE,
)
_BEFORE_CHARACTERS: Final = 120  # of the text before a phrase that are read


def is_beyond_authority(text: str) -> bool:
    """Return whether the text says that the fix is beyond the reporter: another phase, the architecture, the plan."""
    text = text.replace("\u2019", "'")
    return any(_states(text, match) for match in _pattern().finditer(text))


def _states(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - _BEFORE_CHARACTERS) : match.start()]
    negated = _NEGATED.search(before)
    if negated is not None:
        is_double = negated["without"] is not None and _IMPOSSIBLE.search(before[: negated.start()]) is not None
        if not is_double:
            return False
    return "scope" not in match[0].lower() or _PROGRAM_SCOPE.search(before) is None


@cache
def _pattern() -> re.Pattern[str]:
    """Return the compiled phrases, as whole words outside paths and names of programs."""
    return re.compile(rf"(?<![\w/.\\-])(?:{'|'.join(_PHRASES)})(?![\w/\\]|[-.:]\w)", re.IGNORECASE)
