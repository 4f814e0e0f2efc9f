"""Evidence for a review: tests that were run and pass. Without it no rule approves work; a judge or a person may."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_CHECK: Final = "not run: the worker has no check"  # `Tests` of `rung worker run` without --check
NOBODY_CHECKED: Final = (
    "its work is there, but nobody has checked it: give `rung worker run` a --check, or the crew a judge, a review command"
    ' or a person (attended = true, review = "person")'
)
NO_EVIDENCE: Final = (
    "the request shows no evidence: run the tests of the work, and name the command and its result, as in"
    " `Tests: 12 passed (make test)`"
)
_PASSED: Final = re.compile(
    r"\bpass(?:es|ed|ing)?\b|\bok\b|\bgreen\b|\bsucceed(?:s|ed)?\b|\bsuccess(?:ful)?\b|\bexit(?:ed with)?(?: code)? 0\b"
    r"|\b(?:no|0) (?:tests? )?(?:fail|error)|\b\d+ ?(?:/|of) ?\d+\b",
    re.IGNORECASE,
)
_NOT_PASSED: Final = re.compile(
    r"\b(?:do|does|did|is|are|was|were|can|could|has|have|had) ?not\b|n't\b|\bnever\b|\buntested\b"
    r"|\bnot (?:yet|all|every|been|run|ran|tested|executed|pass)|\bno tests?\b(?! (?:fail|error))|\b0 passed\b"
    r"|\b(?:should|would|will|might|may|some|most|expected to)(?: of)?(?: the)?(?: all)?(?: tests?)? pass|\bpass\w*\?|\bn/a\b",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"`[^`]*`")  # a command is named, and not read
_SHARE: Final = re.compile(r"\b(\d+) ?(?:/|of) ?(\d+)\b", re.IGNORECASE)


def shows_passing_tests(tests: str) -> bool:
    """Return whether the field `Tests` of a review request says that tests were run and all pass. In doubt it does not."""
    said = _CODE.sub("", tests)
    if not _PASSED.search(said) or _NOT_PASSED.search(said):
        return False
    return all(passed == total != "0" for passed, total in _SHARE.findall(said))


def evidence_gap(tests: str) -> str:
    """Return what is missing for an approval by rule; empty if nothing is."""
    if shows_passing_tests(tests):
        return ""
    return NOBODY_CHECKED if tests == NO_CHECK else NO_EVIDENCE


def runs_unchecked(command: Sequence[str]) -> bool:
    """Return whether a worker's command is `rung worker run` without --check: only its own output could be evidence."""
    words = list(command)
    options = words[: words.index("--")] if "--" in words else words
    is_run = any(pair == ("worker", "run") for pair in pairwise(options))
    return is_run and not any(word == "--check" or word.startswith("--check=") for word in options)


def wrapped_command(command: Sequence[str]) -> list[str]:
    """Return the command behind `rung worker run … --`; empty if the worker is something else.

    Only where `rung` itself is started here: behind a container or a remote shell, programs are not those of this machine.
    """
    words = list(command)
    if "--" not in words:
        return []
    at = words.index("--")
    start = next((i for i, pair in enumerate(pairwise(words[:at])) if pair == ("worker", "run")), 0)
    head = words[:start]
    is_module = head[-2:] == ["-m", "rung"] and all(word.startswith("-") for word in head[1:-2])
    is_program = len(head) == 1 and head[0].rpartition("/")[2] == "rung"
    return words[at + 1 :] if is_module or is_program else []
