"""Stalls: in progress for longer than this kind of task usually takes, or silent for too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_number, is_whole
from rung.core.domain.events import AttemptSucceeded, Opened
from rung.core.domain.failures import Kind, Phase
from rung.detectors.finding import Finding

if TYPE_CHECKING:
    from rung.core.domain.events import Event

KEPT: Final = 200  # durations of one kind of task
KINDS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StallThresholds:
    """How long is too long.

    factor        times the 95th percentile of what this kind of task took before
    samples       fewer than so many say nothing yet: then `otherwise` seconds
    least, most   bounds of what is worked out, in seconds
    silence       seconds without any sign of life, whatever the task
    """

    factor: float = 2.0
    samples: int = 5
    otherwise: float = 1800.0
    least: float = 60.0
    most: float = 14_400.0
    silence: float = 300.0

    def __post_init__(self) -> None:
        for name in ("factor", "otherwise", "least", "most", "silence"):
            if not is_number(getattr(self, name)) or not getattr(self, name) > 0:
                raise ConfigError(f"patience.{name}", getattr(self, name), "a number, more than 0")
        if not is_whole(self.samples, 1):
            raise ConfigError("patience.samples", self.samples, "a whole number, 1 or more")

    def limit(self, durations: Iterable[float]) -> float:
        """How long this kind of task may take, by how long it took before."""
        known = sorted(durations)
        if len(known) < self.samples:
            return self.otherwise
        usual = known[min(len(known) - 1, int(0.95 * len(known)))]
        return min(self.most, max(self.least, self.factor * usual))


class ToolDurations:
    """How long tasks of each kind took: a fold over the journal, or over whatever else knows."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}  # in the order they ended

    def took(self, kind: str, seconds: float) -> None:
        """A task of this kind ended well after so long."""
        if not is_number(seconds):
            raise ConfigError("durations.seconds", seconds, "seconds, 0 or more")
        taken = self._taken.pop(kind, [])
        taken.append(float(seconds))
        self._taken[kind] = taken[-KEPT:]
        while len(self._taken) > KINDS:
            del self._taken[next(iter(self._taken))]

    def of(self, kind: str) -> tuple[float, ...]:
        """What tasks of this kind took, the latest last."""
        return tuple(self._taken.get(kind, ()))

    def to_json(self) -> dict[str, list[float]]:
        """All that is remembered."""
        return {kind: list(taken) for kind, taken in self._taken.items()}

    @classmethod
    def from_json(cls, table: Any) -> ToolDurations:
        """What was remembered."""
        if not isinstance(table, Mapping):
            raise ConfigError("durations", table, "an object: kind to seconds")
        found = cls()
        for kind, taken in table.items():
            for seconds in taken:
                found.took(str(kind), seconds)
        return found


def kind_of_task(opened: Opened) -> str:
    """What an incident's task is compared with: others of its project, its ladder and its agent."""
    agent = opened.request.agent if opened.request is not None else ""
    return f"{opened.terms.project}/{opened.terms.ladder}/{agent}"


def durations_of(stories: Iterable[Iterable[Event]], kind: Callable[[Opened], str] = kind_of_task) -> ToolDurations:
    """How long attempts that went well took, by kind of task: a fold over the journal's own history."""
    found = ToolDurations()
    for story in stories:
        name = ""
        for event in story:
            if isinstance(event, Opened):
                name = kind(event)
            elif isinstance(event, AttemptSucceeded) and event.seconds >= 0:
                found.took(name, event.seconds)
    return found


def stalled(
    *,
    now: float,
    began: float,
    last_sign: float | None = None,
    durations: Iterable[float] = (),
    patience: StallThresholds | None = None,
    what: str = "the task",
) -> Finding | None:
    """Is this taking too long? Asked by whoever has a clock; `last_sign` is when it last did anything visible."""
    patience = patience or StallThresholds()
    quiet = now - (began if last_sign is None else last_sign)
    if quiet >= patience.silence:
        return _finding("silent", f"{what} has shown no sign of life for {quiet:.0f} s")
    limit = patience.limit(durations)
    if now - began >= limit:
        return _finding(
            "overdue", f"{what} has been in progress for {now - began:.0f} s; it should take at most {limit:.0f} s"
        )
    return None


def _finding(rule: str, text: str) -> Finding:
    return Finding(rule=rule, kind=Kind.STALLED, text=text, phase=Phase.LIMIT)
