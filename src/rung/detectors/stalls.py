"""Detect stalls: a task that takes longer than usual for its kind, or is silent for too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.events import AttemptSucceeded, Opened
from rung.core.domain.failures import Kind, Phase
from rung.core.policy.stalls import overdue_after
from rung.detectors.finding import Finding

if TYPE_CHECKING:
    from rung.core.domain.events import Event

MAX_DURATIONS: Final = 200  # per kind of task
MAX_KINDS: Final = 100
USUAL_SHARE: Final = 0.95  # of earlier durations that are at most the usual one


@dataclass(frozen=True, slots=True, kw_only=True)
class StallThresholds:
    """Thresholds of stall detection.

    factor            multiple of the 95th percentile of earlier durations of this kind of task
    samples           minimum number of earlier durations; with fewer, the limit is `default_seconds`
    min_seconds,
    max_seconds       bounds of the computed limit
    silence_seconds   time without activity; a kind of task that usually takes longer may be silent as long as its limit
    """

    factor: float = 2.0
    samples: int = 5
    default_seconds: float = 1800.0
    min_seconds: float = 60.0
    max_seconds: float = 14_400.0
    silence_seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("factor", "default_seconds", "min_seconds", "max_seconds", "silence_seconds"):
            if not is_number(getattr(self, name)) or not getattr(self, name) > 0:
                raise ConfigError(f"stalls.{name}", getattr(self, name), "a number, more than 0")
        if not is_whole(self.samples, 1):
            raise ConfigError("stalls.samples", self.samples, "a whole number, 1 or more")

    def limit(self, durations: Iterable[float]) -> float:
        """Return the time limit in seconds for a task, given earlier durations of its kind."""
        limit = overdue_after(durations, factor=self.factor, samples=self.samples, share=USUAL_SHARE)
        return self.default_seconds if limit is None else min(self.max_seconds, max(self.min_seconds, limit))


class ToolDurations:
    """Durations of finished tasks by kind, folded from the journal or another source."""

    __slots__ = ("_durations",)

    def __init__(self) -> None:
        self._durations: dict[str, list[float]] = {}  # in order of completion

    def record(self, kind: str, seconds: float) -> None:
        """Record the duration of a successful task."""
        if not is_number(seconds):
            raise ConfigError("durations.seconds", seconds, "seconds, 0 or more")
        durations = self._durations.pop(kind, [])
        durations.append(float(seconds))
        self._durations[kind] = durations[-MAX_DURATIONS:]
        while len(self._durations) > MAX_KINDS:
            del self._durations[next(iter(self._durations))]

    def of(self, kind: str) -> tuple[float, ...]:
        """Return the durations of this kind of task, the latest last."""
        return tuple(self._durations.get(kind, ()))

    def to_json(self) -> dict[str, list[float]]:
        """Return the state as JSON."""
        return {kind: list(durations) for kind, durations in self._durations.items()}

    @classmethod
    def from_json(cls, table: Any) -> ToolDurations:
        """Restore the durations from their state."""
        if not isinstance(table, Mapping):
            raise ConfigError("durations", table, "an object: kind to seconds")
        restored = cls()
        for kind, durations in table.items():
            for seconds in durations:
                restored.record(str(kind), seconds)
        return restored


def kind_of_task(opened: Opened) -> str:
    """Return the kind of an incident's task: its project, ladder and agent."""
    agent = opened.request.agent if opened.request is not None else ""
    return f"{opened.terms.project}/{opened.terms.ladder}/{agent}"


def durations_of(histories: Iterable[Iterable[Event]], kind: Callable[[Opened], str] = kind_of_task) -> ToolDurations:
    """Return the durations of successful attempts by kind of task, from the events of incidents.

    Args:
        histories: The events of each incident, for example from a journal.
        kind: Function of the first event that names the kind of task. Default: project, ladder and agent.
    """
    durations = ToolDurations()
    for history in histories:
        name = ""
        for event in history:
            if isinstance(event, Opened):
                name = kind(event)
            elif isinstance(event, AttemptSucceeded) and event.seconds >= 0:
                durations.record(name, event.seconds)
    return durations


def stalled(
    *,
    now: float,
    began: float,
    last_sign: float | None = None,
    durations: Iterable[float] = (),
    thresholds: StallThresholds | None = None,
    what: str = "the task",
) -> Finding | None:
    """Return a finding if a task is overdue or silent; None if it is neither.

    A task whose kind usually takes longer than `silence_seconds` may be without activity as long as it may take.

    Args:
        now: The time, in seconds.
        began: When the task began, in seconds of the same clock.
        last_sign: When it last showed activity. Default: when it began.
        durations: Seconds that tasks of this kind took before, from `durations_of`. Default: unknown.
        thresholds: Limits. Default: 30 minutes for a kind without a history, and 5 minutes of silence.
        what: Name of the task in the text. Default: the task.
    """
    thresholds = thresholds or StallThresholds()
    history = tuple(durations)
    limit = thresholds.limit(history)
    quiet = now - (began if last_sign is None else last_sign)
    patience = (
        max(thresholds.silence_seconds, limit) if len(history) >= thresholds.samples else thresholds.silence_seconds
    )
    if quiet >= patience:
        return _finding("silent", f"{what} has shown no activity for {quiet:.0f} s")
    if now - began >= limit:
        return _finding(
            "overdue", f"{what} has been in progress for {now - began:.0f} s; it should take at most {limit:.0f} s"
        )
    return None


def _finding(rule: str, text: str) -> Finding:
    return Finding(rule=rule, kind=Kind.STALLED, text=text, phase=Phase.LIMIT)
