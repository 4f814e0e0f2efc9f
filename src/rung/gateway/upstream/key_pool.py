"""Pool of the gateway's own keys for one upstream: conversations are spread over them, and a key that failed rests.

A conversation stays on its key as long as that is usable, because providers keep prompt caches by account. Runs on one
event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.policy.key_pool import (
    USABLE,
    KeyState,
    KeyStatus,
    first_to_reopen,
    later,
    status_after,
    usable_keys,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rung.core.domain.failures import Failure
    from rung.gateway.upstream.settings import UpstreamSettings

_MAX_SESSIONS: Final = 10_000
_MAX_LIMITS: Final = 1_000  # clients choose the names of models
_ALL_MODELS: Final = ""
_ADOPTED_SECONDS: Final = 1.0  # by which the clocks of gateways may differ


class KeyPool:
    """States of the keys of one upstream, by the names of their variables."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._rests: dict[tuple[str, str], tuple[KeyStatus, Failure | None]] = {}  # by key and model
        self._news: dict[tuple[str, str], KeyStatus | None] = {}  # what other gateways have not been told
        self._sessions: OrderedDict[str, str] = OrderedDict()  # the key that served a session last
        self._turn = 0

    def key_of(self, session: str) -> str:
        """Return the key that served a session last; empty if there is none."""
        return self._sessions.get(session, "")

    def take(self, model: str, session: str, now: float, tried: Collection[str] = ()) -> str:
        """Return the key for an attempt: the session's, else the next in turn; if none is usable, the first to reopen."""
        if len(self.names) == 1:
            return self.names[0]
        statuses = self.statuses(model, now)
        usable = usable_keys(self.names, statuses, now, tried) or usable_keys(self.names, statuses, now)
        if not usable:
            return first_to_reopen(self.names, statuses)
        last = self._sessions.get(session)
        if last in usable:
            return last
        self._turn += 1
        in_turn = [self.names[(self._turn + step) % len(self.names)] for step in range(len(self.names))]
        return next(name for name in in_turn if name in usable)

    def note_success(self, key: str, model: str, session: str) -> None:
        """Note that a key works, and serves a session."""
        if self._rests:
            for place in ((key, model), (key, _ALL_MODELS)):
                if self._rests.pop(place, None) is not None:
                    self._news[place] = None
        if len(self.names) > 1 and session:
            self._sessions[session] = key
            self._sessions.move_to_end(session)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def note_failure(self, key: str, model: str, failure: Failure, now: float) -> KeyStatus | None:
        """Note what a failure says about a key; return its state, or None if it says nothing."""
        status = status_after(failure, now)
        if status is None:
            return None
        # Rate limits are counted by model. The quota, and what a key may do, are those of the account.
        place = (key, model if status.state is KeyState.LIMITED else _ALL_MODELS)
        self._rests.pop(place, None)
        self._rests[place] = (status, failure)
        self._news[place] = status
        if len(self._rests) > _MAX_LIMITS:
            del self._rests[next(iter(self._rests))]
        if len(self._news) > _MAX_LIMITS:
            del self._news[next(iter(self._news))]
        return status

    def take_news(self, key: str) -> list[tuple[str, KeyStatus | None]]:
        """Return, once, what was learned about a key: by model, its status, or None where it works again."""
        return [(model, self._news.pop((key, model))) for name, model in list(self._news) if name == key]

    def adopt(self, key: str, model: str, status: KeyStatus, now: float) -> bool:
        """Have a key rest because another gateway learned it; return False if it rests as long already, or need not."""
        if status.is_usable(now) or self._status(key, model).until >= status.until - _ADOPTED_SECONDS:
            return False
        self._rests[key, model] = (status, None)
        return True

    def revive_adopted(self, key: str, model: str) -> None:
        """End the rest of a key that others have found to work again; what this gateway learned itself stays."""
        rest = self._rests.get((key, model))
        if rest is not None and rest[1] is None:
            del self._rests[key, model]

    def spare(self, model: str, now: float, tried: Collection[str]) -> int:
        """Return how many keys are usable for a model and not yet tried."""
        return len(usable_keys(self.names, self.statuses(model, now), now, tried))

    def first_reopening(self, model: str, now: float) -> tuple[str, KeyStatus, Failure | None]:
        """Return the key that is usable again first, its status, and the failure that it rests for."""
        statuses = self.statuses(model, now)
        name = first_to_reopen(self.names, statuses)
        resting = (self._rests.get((name, place)) for place in (model, _ALL_MODELS))
        failures = [failure for status, failure in filter(None, resting) if status == statuses[name]]
        return name, statuses[name], next(iter(failures), None)

    def statuses(self, model: str, now: float) -> dict[str, KeyStatus]:
        """Return the status of each key for a model."""
        found = {name: later(self._status(name, model), self._status(name, _ALL_MODELS)) for name in self.names}
        return {name: USABLE if status.is_usable(now) else status for name, status in found.items()}

    def limited_models(self, name: str, now: float) -> dict[str, float]:
        """Return the models for which a key is limited, and until when."""
        return {
            model: status.until
            for (key, model), (status, _) in self._rests.items()
            if key == name and model and not status.is_usable(now)
        }

    def overall(self, name: str, now: float) -> KeyStatus:
        """Return the status of a key for all models, without the limits of single ones."""
        status = self._status(name, _ALL_MODELS)
        return USABLE if status.is_usable(now) else status

    def revive(self) -> None:
        """Have refused keys tried again: their variables may have got other values."""
        self._rests = {place: rest for place, rest in self._rests.items() if rest[0].state is not KeyState.DEAD}

    def _status(self, name: str, model: str) -> KeyStatus:
        rest = self._rests.get((name, model))
        return USABLE if rest is None else rest[0]


def with_one_key(upstream: UpstreamSettings, name: str) -> UpstreamSettings:
    """Return an upstream with one of its keys."""
    return replace(upstream, key_env=name, key_envs=())
