"""A pool: the tasks of a crew that share an account or a model, and that wait together while it is unavailable.

A limit with a known end parks the pool until then; trouble that passes without a known end makes it back off; a quota
that only a person can raise blocks it. While a pool is closed, one task at a time is started as a probe. A probe that
gets further opens the pool, and the next tasks start spread out, one for each worker of the crew: more cannot start
together. Clock and jitter are arguments.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.service_trouble import format_time
from rung.core.domain.errors import is_number
from rung.core.policy.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.crew.service_trouble import Trouble

DEFAULT_POOL: Final = "default"  # of a task that names none
PARKED_PREFIX: Final = "parked:"  # of the note of a task that waits for its pool
MAX_CLOSINGS: Final = 3  # by one task without progress of its own: then the trouble is the task's
_MAX_BACKOFF_SECONDS: Final = 300.0


class PoolState(StrEnum):
    """State of a pool. All but `open` are closed: no task is started, except as a probe."""

    OPEN = "open"
    PARKED = "parked"  # until a known time
    BACKING_OFF = "backing_off"  # until a probe gets further
    BLOCKED = "blocked"  # until a person wakes it


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """How long a pool waits, and how it probes. All durations are in seconds."""

    patience: float = 21_600.0  # with trouble that has no known end; 0: none
    park: float = 604_800.0  # until a known end; 0: never
    probe_interval: float = 60.0  # at least, between the starts of two probes
    probe_seconds: float = 240.0  # of work until a probe has got further; agents retry by themselves for up to 190 s
    spread: float = 10.0  # on average, between two starts after the pool has opened

    def backoff(self, failed_probes: int, jitter: float) -> float:
        """Return the seconds until the next probe. The first comes soon, the later ones after growing waits."""
        if failed_probes == 0:
            return self.probe_interval * (1 + jitter) / 4
        ceiling = Backoff(base=self.probe_interval, cap=max(self.probe_interval, _MAX_BACKOFF_SECONDS))
        return ceiling.ceiling(failed_probes) * (1 + jitter / 2)


DEFAULT_POOL_LIMITS: Final = PoolLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The stored state of a pool. Times are seconds since the epoch."""

    state: PoolState = PoolState.OPEN
    reason: str = ""  # why it closed
    since: float | None = None  # when it closed
    until: float | None = None  # the end of its limit, if that is known
    next_probe: float | None = None  # set while it is parked or backs off
    probe: str = ""  # the task that is the probe at the moment
    probed_at: float | None = None  # start of the last probe
    failed_probes: int = 0  # since it closed
    failed_by: Mapping[str, int] = field(default_factory=dict)  # failures by task since it closed
    patient_until: float | None = None  # end of the patience; stays set once it is spent, until there is progress
    opened_at: float | None = None  # when it opened again
    starts: int = 0  # since it opened again; the first of them are spread out
    next_start: float = 0.0  # the next of them
    closings: Mapping[str, int] = field(default_factory=dict)  # by task, since the task's last progress

    @property
    def is_open(self) -> bool:
        """Return whether tasks may start."""
        return self.state is PoolState.OPEN

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            **asdict(self),
            "state": self.state.value,
            "closings": dict(self.closings),
            "failed_by": dict(self.failed_by),
        }

    @classmethod
    def from_json(cls, values: object) -> Pool:
        """Return a stored state. Unknown or invalid values are left out: a pool that cannot be read is open."""
        if not isinstance(values, dict) or values.get("state") not in tuple(PoolState):
            return cls()
        known = {one.name: values[one.name] for one in fields(cls) if one.name in values}
        numbers = ("since", "until", "next_probe", "probed_at", "patient_until", "opened_at", "starts", "next_start")
        if any(known.get(name) is not None and not is_number(known[name]) for name in numbers):
            return cls()
        return cls(**{**known, "state": PoolState(values["state"])})


def after_failure(
    pool: Pool, task: str, trouble: Trouble, now: float, jitter: float, limits: PoolLimits
) -> tuple[Pool, bool]:
    """Return the pool after a worker of this task met trouble, and whether the pool waits for its end.

    If not, the failure is the task's: its patience is spent, or the task alone has closed the pool again and again.
    """
    if pool.is_open and pool.closings.get(task, 0) >= MAX_CLOSINGS:
        return pool, False
    if trouble.needs_person or (trouble.until is not None and trouble.until - now > limits.park):
        return _blocked(pool, task, trouble, now), True
    patient_until = now + limits.patience if pool.patient_until is None else pool.patient_until
    if trouble.until is None and now >= patient_until:
        return Pool(patient_until=patient_until, probed_at=pool.probed_at, closings=pool.closings, opened_at=now), False
    if pool.is_open or pool.probe == task:
        return _closed(pool, task, trouble, now, jitter, limits, patient_until), True
    if pool.state is PoolState.BLOCKED and trouble.until is not None:
        return _closed(pool, task, trouble, now, jitter, limits, patient_until), True
    return _extended(pool, trouble), True


def _blocked(pool: Pool, task: str, trouble: Trouble, now: float) -> Pool:
    """Close the pool until a person wakes it. While another worker's limit has a known end, that end counts."""
    if pool.state is PoolState.PARKED and pool.probe != task:
        return pool
    since = now if pool.since is None else pool.since
    return Pool(
        state=PoolState.BLOCKED, reason=trouble.reason, since=since, until=trouble.until, probed_at=pool.probed_at
    )


def _extended(pool: Pool, trouble: Trouble) -> Pool:
    """Return a closed pool after a worker that was already running met trouble, too: a later end counts."""
    if trouble.until is None or trouble.until <= (pool.until or 0.0):
        return pool
    next_probe = max(trouble.until, pool.next_probe or 0.0)
    return replace(pool, state=PoolState.PARKED, until=trouble.until, next_probe=next_probe, reason=trouble.reason)


def _closed(
    pool: Pool, task: str, trouble: Trouble, now: float, jitter: float, limits: PoolLimits, patient_until: float
) -> Pool:
    """Close the pool, or close it again after a failed probe."""
    is_probe = pool.probe == task
    failed_probes = pool.failed_probes + 1 if is_probe else 0
    next_probe = now + limits.backoff(failed_probes, jitter)
    if trouble.until is not None:
        end = trouble.until + jitter * limits.probe_interval / 6  # clocks differ
        next_probe = max(end, next_probe) if is_probe else end
        patient_until += max(0.0, trouble.until - now)  # a promised wait costs no patience
    if pool.probed_at is not None:
        next_probe = max(next_probe, pool.probed_at + limits.probe_interval)
    closings = {**pool.closings, task: pool.closings.get(task, 0) + 1} if pool.is_open else pool.closings
    failed_by = {**pool.failed_by, task: pool.failed_by.get(task, 0) + 1}
    return Pool(
        state=PoolState.BACKING_OFF if trouble.until is None else PoolState.PARKED,
        reason=trouble.reason,
        since=now if pool.since is None else pool.since,
        until=trouble.until,
        next_probe=next_probe,
        probed_at=pool.probed_at,
        failed_probes=failed_probes,
        failed_by=failed_by,
        patient_until=patient_until,
        closings=closings,
    )


def is_probe_due(pool: Pool, now: float) -> bool:
    """Return whether a task may be started as a probe now."""
    return pool.next_probe is not None and not pool.is_open and not pool.probe and now >= pool.next_probe


def is_spreading(pool: Pool, workers: int) -> bool:
    """Return whether the pool opened, and has not yet started one task for each worker of the crew since."""
    return pool.is_open and pool.opened_at is not None and pool.starts < workers


def may_start(pool: Pool, now: float, workers: int) -> bool:
    """Return whether a task of the pool may be started now; of a closed pool, as its probe."""
    if not pool.is_open:
        return is_probe_due(pool, now)
    return now >= pool.next_start or not is_spreading(pool, workers)


def after_start(pool: Pool, task: str, now: float, jitter: float, limits: PoolLimits) -> Pool:
    """Return the pool after this task was started: as the probe if the pool is closed."""
    if not pool.is_open:
        return replace(pool, probe=task, probed_at=now, next_probe=now + limits.probe_interval)
    if pool.opened_at is None:
        return pool
    return replace(pool, starts=pool.starts + 1, next_start=now + limits.spread * (0.5 + jitter))


def after_lost_probe(pool: Pool, task: str, now: float, limits: PoolLimits) -> Pool:
    """Return the pool after its probe ended without a word about the service: another one is due, after the pool's limit."""
    if pool.probe != task:
        return pool
    soonest = (pool.probed_at or now) + limits.probe_interval
    return replace(pool, probe="", next_probe=max(now, soonest, pool.until or 0.0))


def after_progress(pool: Pool, task: str, now: float) -> Pool:
    """Return the pool after this task got further. Only its probe opens a closed pool: others may have been served before."""
    closings = {name: number for name, number in pool.closings.items() if name != task}
    if pool.is_open:
        return replace(pool, closings=closings, patient_until=None)
    if pool.probe != task:
        return pool
    return Pool(probed_at=pool.probed_at, closings=closings, opened_at=now)


def wake(pool: Pool, now: float) -> Pool:
    """Return the pool after a person opened it."""
    return pool if pool.is_open else Pool(probed_at=pool.probed_at, opened_at=now)


def describe(pool: Pool) -> str:
    """Return a closed pool's state in one line: until when, why, and when it is probed next. Empty if it is open."""
    if pool.is_open:
        return ""
    text = pool.state.value.replace("_", " ")
    if pool.until is not None:
        text += f" until {format_time(pool.until)}"
    if pool.state is PoolState.BLOCKED:
        return f"{text}: {pool.reason}; a person opens it: rung crew wake"
    probe = f"{pool.probe} probes" if pool.probe else f"next probe {format_time(pool.next_probe or 0.0)}"
    return f"{text}: {pool.reason}; {probe}"
