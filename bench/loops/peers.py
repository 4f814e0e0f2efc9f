"""Loop detectors to compare: rung, and the rules of other agents, each run after every step.

The other rules follow their sources: what is compared, how often, in which window. They get the same input as in
their agents: the call, and the outcome if they use it.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from typing import TYPE_CHECKING, Protocol

from rung.detectors.session_monitor import SessionMonitor

if TYPE_CHECKING:
    from rung.detectors.step import Step


class Detector(Protocol):
    def check(self, step: Step) -> str | None: ...


def _call(step: Step) -> str:
    return f"{step.tool}:{json.dumps(step.args, ensure_ascii=False)}"


class Ours:
    def __init__(self) -> None:
        self.monitor = SessionMonitor()

    def check(self, step: Step) -> str | None:
        finding = self.monitor.check(step)
        return None if finding is None else finding.rule


class OpenHands:
    """In the last 20 steps: 4 equal pairs of action and observation, 3 equal actions with errors, or 6 alternating steps."""

    def __init__(self) -> None:
        self.steps: deque[tuple[str, str, bool]] = deque(maxlen=20)

    def check(self, step: Step) -> str | None:
        self.steps.append((_call(step), str(step.result), bool(step.error)))
        last = list(self.steps)
        if len(last) >= 4 and len(set(last[-4:])) == 1:
            return "action-observation"
        if len(last) >= 3 and len({call for call, _, _ in last[-3:]}) == 1 and all(bad for _, _, bad in last[-3:]):
            return "action-error"
        if len(last) >= 6 and all(last[-n] == last[-n - 2] for n in range(1, 5)):
            return "alternation"
        return None


class GeminiCli:
    """In the last 25 calls: any cycle of 1 to 5 calls, repeated 5 times; outcomes are ignored."""

    def __init__(self) -> None:
        self.calls: deque[str] = deque(maxlen=25)

    def check(self, step: Step) -> str | None:
        self.calls.append(_call(step))
        last = list(self.calls)
        for size in range(1, 6):
            tail = last[-5 * size :]
            if len(tail) == 5 * size and all(tail[n] == tail[n % size] for n in range(len(tail))):
                return f"cycle-{size}"
        return None


class ThreeInARow:
    """The same call three times in a row."""

    def __init__(self) -> None:
        self.calls: deque[str] = deque(maxlen=3)

    def check(self, step: Step) -> str | None:
        self.calls.append(_call(step))
        return "row" if len(self.calls) == 3 and len(set(self.calls)) == 1 else None


class CallThreeTimes:
    """The same call three times, anywhere."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def check(self, step: Step) -> str | None:
        self.calls[_call(step)] += 1
        return "calls" if self.calls[_call(step)] >= 3 else None


class PairThreeTimes:
    """The same call with the same result three times, anywhere."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()

    def check(self, step: Step) -> str | None:
        pair = (_call(step), str(step.result))
        self.pairs[pair] += 1
        return "pairs" if self.pairs[pair] >= 3 else None


DETECTORS: dict[str, type[Detector]] = {
    "rung": Ours,
    "OpenHands-like": OpenHands,
    "gemini-cli-like": GeminiCli,
    "same call and result, 3 times": PairThreeTimes,
    "same call, 3 in a row": ThreeInARow,
    "same call, 3 times anywhere": CallThreeTimes,
}
