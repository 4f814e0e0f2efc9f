"""What an agent made of a fault: its answer beside the one it gives when nothing fails."""

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
    """How a run under a fault went, from the best to the worst."""

    SURVIVED = "survived"  # the whole answer, as if nothing had happened
    TOLD = "told"  # no answer, said so, and nothing else could have been done
    UNMET = "unmet"  # the fault never struck: it needs a stream or tools
    FAILED = "failed"  # no answer, said so, where another try would have helped
    HUNG = "hung"  # had to be ended
    WRONG = "wrong"  # said that all was well, and it was not


GOOD: Final = frozenset({FaultVerdict.SURVIVED, FaultVerdict.TOLD, FaultVerdict.UNMET})


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRun:
    """One run of the command: its exit code (None: it was ended), what it printed, how long it took."""

    exit_code: int | None
    output: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultReport:
    """One row of the table."""

    fault: str
    verdict: FaultVerdict
    exit_code: int | None
    answer: str
    attempts: int
    seconds: float

    def table(self) -> dict[str, Any]:
        """The row as JSON."""
        return asdict(self)


# Faults that would take longer to try than anybody waits, told to be shorter.
SHORTER: Final[Mapping[str, Mapping[str, Any]]] = {"slow": {"seconds": 5.0}, "wall": {"lasts": 5.0}}
TRIED: Final = tuple(name for name in FAULTS if name != "status")


def rule_for(name: str, given: Mapping[str, Any], times: int) -> dict[str, Any]:
    """The rule to try a fault by: it strikes a few times where a repeat may help, else as long as it is asked."""
    fault = FAULTS[name]
    rule: dict[str, Any] = {"fault": name, **SHORTER.get(name, {}), **given}
    if fault.repeatable and name != "wall" and "times" not in rule and "request" not in rule:
        rule["times"] = times
    return rule


def judge(
    fault: Fault, run: FaultRun, usual: FaultRun, *, struck: bool, attempts: int, expect: str = ""
) -> FaultReport:
    """What became of a run, beside one without faults."""
    answer = compare(run.output, usual.output, expect)
    if run.exit_code is None:
        verdict = FaultVerdict.HUNG
    elif not struck:
        verdict = FaultVerdict.UNMET
    elif run.exit_code == usual.exit_code:
        verdict = FaultVerdict.SURVIVED if answer == "complete" else FaultVerdict.WRONG
    else:
        verdict = FaultVerdict.FAILED if fault.repeatable else FaultVerdict.TOLD
    return FaultReport(
        fault=fault.name,
        verdict=verdict,
        exit_code=run.exit_code,
        answer=answer,
        attempts=attempts,
        seconds=run.seconds,
    )


def compare(output: str, usual: str, expect: str = "") -> str:
    """An answer in words: complete, none, doubled, "12 of 40 words", different."""
    if expect:
        return "complete" if expect in output else "different" if output.strip() else "none"
    if output == usual:
        return "complete"
    whole, said = _numbers(usual), _numbers(output)
    if not whole or whole != list(range(1, len(whole) + 1)) or words(len(whole)) not in " ".join(usual.split()):
        return "different" if output.strip() else "none"  # not our words: what it printed is all there is to go by
    if said == whole:
        return "complete"
    if not said:
        return "none"
    if max(Counter(said).values()) > 1:
        return "doubled"
    return f"{len(said)} of {len(whole)} words"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _WORD.findall(text)]
