"""Scripted agents: real recoveries that write to the journal of the running service."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import rung
from rung.core.domain.errors import AttemptError
from rung.core.policy.parser import policy as make_policy
from rung.engine.attempt_api import report_cost
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.recover import recover_sync
from rung.engine.session import Session
from rung.store import open_journal
from rung.testing import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rung.core.domain.outcome import Outcome

MODELS = [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.2}]
HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'


class Stage:
    """A journal and the scripted agents that write to it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.journal = open_journal(place)
        self._ended = threading.Event()
        self._players: list[threading.Thread] = []

    def __enter__(self) -> Stage:
        self.recovered("mended-1")
        self.failed("broken-1")
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for player in self._players:
            player.join(timeout=20)
        self.journal.close()

    # -- scenarios --------------------------------------------------------------------------------------

    def recovered(self, session: str, project: str = "shop") -> Outcome[Any]:
        """Run a recovery that fails once and then succeeds with the error in its prompt."""

        def attempt(request: rung.Request) -> str:
            report_cost(0.02)
            if not request.recovery:
                raise FileNotFoundError(2, "No such file or directory: 'cart.py'")
            return "found it"

        return self._play(attempt, session, project, ladder="task")

    def failed(self, session: str, project: str = "shop") -> Outcome[Any]:
        """Run a recovery that fails with 401."""

        def attempt(request: rung.Request) -> str:
            raise HttpError(401, "invalid x-api-key")

        return self._play(attempt, session, project, ladder="call")

    def hostile(self) -> Outcome[Any]:
        """Run a recovery in which every text from the agent contains a script."""

        def attempt(request: rung.Request) -> str:
            if not request.recovery:
                raise AttemptError(f"it broke: {HOSTILE}", finding="test_failure", output=HOSTILE, tool=HOSTILE)
            return HOSTILE

        request = rung.Request(prompt=HOSTILE, model=HOSTILE, agent=HOSTILE)
        return self._play(attempt, f"hostile {HOSTILE}", HOSTILE, ladder="task", request=request)

    def asks(self, session: str) -> None:
        """Start a recovery that waits for confirmation of a more expensive model."""

        def attempt(request: rung.Request) -> str:
            report_cost(0.01)
            if request.model == "small":
                raise HttpError(400, "prompt is too long: 212411 tokens > 200000 maximum")
            return "done by the large one"

        self._begin(attempt, session, ladder="model", confirm="always", ask=self.journal.operator_prompt(60.0))

    def waits(self, session: str, seconds: float = 45.0) -> threading.Event:
        """Start a rate-limited recovery; the returned event is set by its second attempt."""
        again = threading.Event()
        tried = []

        def attempt(request: rung.Request) -> str:
            tried.append(request)
            if len(tried) == 1:
                raise HttpError(429, "slow down", {"retry-after": str(int(seconds))})
            again.set()
            return f"told: {request.prompt} {request.recovery}"

        self._begin(attempt, session, ladder="model")
        return again

    def parks(self, session: str, seconds: int = 7_800) -> threading.Event:
        """Start a recovery that is parked until a plan's limit reopens; the returned event is set by its second attempt."""
        again = threading.Event()
        tried = []

        def attempt(request: rung.Request) -> str:
            tried.append(request)
            if len(tried) == 1:
                text = f'{{"error": {{"type": "usage_limit_reached", "resets_in_seconds": {seconds}}}}}'
                raise AttemptError(text, status=429)
            again.set()
            return f"done by {request.model}"

        self._begin(attempt, session, ladder="model", ask=self.journal.operator_prompt(60.0))
        return again

    # -- helpers ------------------------------------------------------------------------------------------

    def _begin(self, attempt: Callable[[rung.Request], str], session: str, **settings: Any) -> None:
        def play() -> None:
            with suppress(Exception):  # the journal closes while the thread runs
                self._play(attempt, session, "shop", **settings)

        player = threading.Thread(target=play, name=f"stage-{session}", daemon=True)
        self._players.append(player)
        player.start()

    def _play(
        self,
        attempt: Callable[[rung.Request], str],
        session: str,
        project: str,
        *,
        ladder: str,
        request: rung.Request | None = None,
        confirm: str = "never",
        **ports: Any,
    ) -> Outcome[Any]:
        chosen = make_policy(ladder, models=MODELS, confirm=confirm, report="")
        return recover_sync(
            attempt,
            request or rung.Request(prompt="Fix the cart", model="small", agent="coder", idempotent=True),
            policy=chosen,
            journal=View(self.journal, project),
            session=Session("small" if request is None else request.model, session),
            breakers=BreakerRegistry(),
            retry_budget=None,
            **ports,
        )


class View:
    """The journal port of one project."""

    def __init__(self, journal: Any, project: str) -> None:
        self.project = project
        self.append = journal.append
        self.intervention = journal.intervention
        self.model_for = journal.model_for
