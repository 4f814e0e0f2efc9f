"""Reports how a command handled a fault, compared with a run without faults."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider.answers import words
from rung.testing.provider.faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.testing.provider.faults import Fault

_WORD: Final = re.compile(r"\bword(\d+)\b")


class FaultVerdict(StrEnum):
    """Result of a run under a fault, from best to worst."""

    SURVIVED = "survived"  # complete answer, as without the fault
    REPORTED = "reported"  # no answer, reported as an error, and no recovery was possible
    NOT_TRIGGERED = "not_triggered"  # the fault needs a stream or tools, and the command used none
    FAILED = "failed"  # no answer, reported as an error, but a retry would have helped
    HUNG = "hung"  # killed at the time limit
    SILENTLY_WRONG = "silently_wrong"  # successful exit code with an incomplete answer


ACCEPTABLE_VERDICTS: Final = frozenset({FaultVerdict.SURVIVED, FaultVerdict.REPORTED, FaultVerdict.NOT_TRIGGERED})


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRun:
    """One run of the command: exit code (None: killed at the time limit), output, duration, result of its check."""

    exit_code: int | None
    output: str
    seconds: float
    is_checked: bool | None = None  # whether the check of its effects passed; None: there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultReport:
    """Report on one fault, a row of the printed table."""

    fault: str
    verdict: FaultVerdict
    exit_code: int | None
    answer: str
    attempts: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)


# Shorter parameters for faults that would take too long to test.
SHORTENED_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {"slow": {"seconds": 5.0}, "wall": {"lasts": 5.0}}
TESTED_FAULTS: Final = tuple(name for name in FAULTS if name != "status")


def rule_for(name: str, parameters: Mapping[str, Any], times: int) -> dict[str, Any]:
    """Return the rule that tests a fault: `times` times if a retry can succeed, else on every request."""
    fault = FAULTS[name]
    rule: dict[str, Any] = {"fault": name, **SHORTENED_PARAMETERS.get(name, {}), **parameters}
    if fault.repeatable and name != "wall" and "times" not in rule and "request" not in rule:
        rule["times"] = times
    return rule


def judge(
    fault: Fault, run: FaultRun, baseline: FaultRun, *, triggered: bool, attempts: int, expect: str = ""
) -> FaultReport:
    """Report on a run under a fault, compared with the run without faults."""
    answer = "complete" if run.is_checked else "check failed"
    if run.is_checked is None or (expect and run.is_checked):
        answer = compare(run.output, baseline.output, expect)
    if run.exit_code is None:
        verdict = FaultVerdict.HUNG
    elif not triggered:
        verdict = FaultVerdict.NOT_TRIGGERED
    elif run.exit_code == baseline.exit_code:
        verdict = FaultVerdict.SURVIVED if answer == "complete" else FaultVerdict.SILENTLY_WRONG
    else:
        verdict = FaultVerdict.FAILED if fault.repeatable else FaultVerdict.REPORTED
    return FaultReport(
        fault=fault.name,
        verdict=verdict,
        exit_code=run.exit_code,
        answer=answer,
        attempts=attempts,
        seconds=run.seconds,
    )


def compare(output: str, baseline: str, expect: str = "") -> str:
    """Describe an answer: complete, none, doubled, "12 of 40 words", different."""
    if expect:
        return "complete" if expect in output else "different" if output.strip() else "none"
    if output == baseline:
        return "complete"
    expected_words, words_seen = _numbers(baseline), _numbers(output)
    if (
        not expected_words
        or expected_words != list(range(1, len(expected_words) + 1))
        or words(len(expected_words)) not in " ".join(baseline.split())
    ):
        return "different" if output.strip() else "none"  # not the lab's numbered words: only equality can be checked
    if words_seen == expected_words:
        return "complete"
    if not words_seen:
        return "none"
    if max(Counter(words_seen).values()) > 1:
        return "doubled"
    return f"{len(words_seen)} of {len(expected_words)} words"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _WORD.findall(text)]
