"""Demo world: scripted agents that fail and recover live, and two weeks of past incidents."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from examples.demo_world.crew import DemoCrew
from rung.core.domain.errors import AttemptError
from rung.core.domain.request import Request
from rung.core.policy.parser import policy as make_policy
from rung.engine.attempt_api import report_cost
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.recover import recover_sync
from rung.engine.session import Session
from rung.store.project_scope import ProjectJournal
from rung.testing import FakeClock, HttpError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.core.policy.policy import Policy
    from rung.store.backends.port import DurableFuture
    from rung.store.journal.journal import Journal

DAYS: Final = 14
PAST_INCIDENTS: Final = 420
MODELS: Final = (
    {"name": "swift-1", "cost": 0.002},
    {"name": "steady-2", "cost": 0.011},
    {"name": "grand-3", "cost": 0.06},
)
COSTS: Final = {model["name"]: float(str(model["cost"])) for model in MODELS}
FAILURE_RATE: Final = 0.42  # of the attempts


class Agent(NamedTuple):
    """A scripted agent: its project, ladder and task."""

    name: str
    project: str
    ladder: str
    task: str


AGENTS: Final = (
    Agent("reviewer", "checkout", "task", "Review the pull request that moves prices to whole cents"),
    Agent("tester", "checkout", "task", "Make the flaky cart tests pass without touching the tests"),
    Agent("writer", "docs", "call", "Write the migration guide from version 3 to 4"),
    Agent("summariser", "docs", "call", "Summarise this week's changes for the newsletter"),
    Agent("planner", "search", "pipeline", "Design the new index: goals, risks, steps"),
    Agent("porter", "search", "crew", "Port the tokenizer to the new parser"),
    Agent("analyst", "billing", "model", "Explain the difference between the two invoices"),
    Agent("auditor", "billing", "model", "Check the March ledger against the bank's statement"),
)


def _weighted_errors(random: Random) -> tuple[tuple[float, Exception], ...]:
    """Return the possible errors with their relative frequencies."""
    return (
        (9, HttpError(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')),
        (8, HttpError(429, "Rate limit reached: 200000 tokens per minute", {"retry-after": str(random.randint(1, 4))})),
        (4, HttpError(500, "Internal server error")),
        (3, TimeoutError("no answer within 60 seconds")),
        (3, ConnectionResetError(104, "Connection reset by peer")),
        (5, FileNotFoundError(2, "No such file or directory: 'src/cart/totals.py'")),
        (4, AttemptError("2 failed, 41 passed in 3.1s: test_rounding, test_refund", finding="test_failure")),
        (3, AttemptError("stopped at max_tokens", finding="output_limit", output="The first half of the answer")),
        (
            2,
            AttemptError(
                "the sections risks and rollback are missing", finding="partial_output", missing=("risks", "rollback")
            ),
        ),
        (2, AttemptError("the same edit was made three times", finding="loop_detected", repeats=3)),
        (2, AttemptError("step 3 does not follow from step 2", finding="low_quality")),
        (1, HttpError(401, "invalid x-api-key")),
        (1, HttpError(400, "prompt is too long: 212411 tokens > 200000 maximum")),
    )


ALERTS: dict[str, Any] = {  # without channels: nobody is notified
    "interval": 5,
    "rules": {
        "failing": {"when": "failure_rate", "threshold": 0.3, "window": 3_600, "severity": "critical"},
        "expensive": {"when": "cost", "threshold": 500},
        "waiting": {"when": "unanswered", "threshold": 1, "window": 30},
    },
}


class World:
    """The agents of the demo, their journal, and their policy."""

    def __init__(self, seed: int = 7) -> None:
        self.journal_path = Path(tempfile.mkdtemp(prefix="rung-demo-")) / "journal.db"
        self.settings: dict[str, Any] = {
            "policy": {"ladder": "model", "models": [dict(model) for model in MODELS]},
            "alerts": ALERTS,
        }
        self._random = Random(seed)  # noqa: S311  # not for security
        self._ended = threading.Event()
        self._crew = DemoCrew(self.journal_path.with_name("import.db"), Random(seed))  # noqa: S311
        self.crews: tuple[str, ...] = (self._crew.path,)
        self.notes = next_steps(Path(sys.executable).parent)

    def begin(self, journal: Journal) -> None:
        """Write past incidents, then start the agents."""
        self._write_past(journal)
        threading.Thread(target=self._crew.play, args=(self._ended,), name="demo-crew", daemon=True).start()
        for number, agent in enumerate(AGENTS):
            random = Random(self._random.random())  # noqa: S311
            threading.Thread(
                target=self._live, args=(journal, agent, random, number), name=f"demo-{agent.name}", daemon=True
            ).start()

    def end(self) -> None:
        """Stop the agents."""
        self._ended.set()

    def clear(self) -> None:
        """Delete the journal."""
        with suppress(OSError):
            shutil.rmtree(self.journal_path.parent)

    def supports(self, request: Request) -> bool:
        """Return whether the request is for one of the demo's models."""
        return request.model in COSTS

    def __call__(self, request: Request) -> str:
        """Make an attempt that mostly succeeds."""
        return self._attempt(request, self._random, failure_rate=0.25, pause=1.0)

    def _attempt(self, request: Request, random: Random, *, failure_rate: float, pause: float) -> str:
        if pause:
            self._ended.wait(pause * random.uniform(0.4, 2.0))
        report_cost(COSTS.get(request.model, 0.004) * random.uniform(0.5, 2.0))
        if random.random() < failure_rate:
            weights, errors = zip(*_weighted_errors(random), strict=True)
            raise random.choices(errors, weights)[0]
        return f"{request.prompt[:60]}: done, {random.randint(2, 40)} files looked at"

    def _past_attempt(self, clock: FakeClock, request: Request) -> str:
        """Make an attempt on a clock in the past."""
        clock.advance(self._random.uniform(0.5, 9.0))
        return self._attempt(request, self._random, failure_rate=FAILURE_RATE * 0.8, pause=0)

    def _live(self, journal: Journal, agent: Agent, random: Random, number: int) -> None:
        view = LiveJournal(journal, agent.project, self._ended)
        for turn in range(1, 1_000_000):
            session = Session("swift-1", f"{agent.name}-{number}{turn:03}")
            asks = agent.ladder == "model"
            chosen = _policy(agent, confirm="more_expensive" if asks else "never", live=True)
            for _ in range(random.randint(2, 5)):
                if self._ended.wait(random.uniform(0.5, 4.0)):
                    return
                ports: dict[str, Any] = {"ask": journal.operator_prompt(90.0)} if asks else {}
                with suppress(Exception):  # an agent's failure must not end its thread
                    recover_sync(
                        lambda request: self._attempt(request, random, failure_rate=FAILURE_RATE, pause=1.5),
                        Request(prompt=agent.task, model="swift-1", agent=agent.name, idempotent=True),
                        policy=chosen, journal=view, session=session, breakers=BreakerRegistry(), retry_budget=None, **ports,
                    )  # fmt: skip

    def _write_past(self, journal: Journal) -> None:
        """Write two weeks of incidents within a second, on a fake clock."""
        now = time.time()
        for number in range(PAST_INCIDENTS):
            agent = self._random.choice(AGENTS)
            at = now - 60 - DAYS * 86_400 * (1 - number / PAST_INCIDENTS) ** 1.2
            clock = FakeClock(at)
            recover_sync(
                partial(self._past_attempt, clock),
                Request(prompt=agent.task, model="swift-1", agent=agent.name, idempotent=True),
                policy=_policy(agent, confirm="never", live=False),
                journal=PastJournal(journal, agent.project),
                session=Session("swift-1", f"{agent.name}-{number // 5:03}"),
                breakers=BreakerRegistry(),
                retry_budget=None,
                clock=clock,
                jitter=self._random.random,
            )


class PastJournal(ProjectJournal):
    """Journal of the past incidents, which have no interventions."""

    def intervention(self, incident: str) -> None:  # the port's signature
        """Return no intervention."""

    def model_for(self, session: str) -> str:  # noqa: ARG002  # the port's signature
        """Return no model override."""
        return ""


class LiveJournal(ProjectJournal):
    """Journal of the live agents; drops events once the demo has ended."""

    def __init__(self, journal: Journal, project: str, ended: threading.Event) -> None:
        super().__init__(journal, project)
        self._ended = ended

    def append(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None] | None:
        """Append events, unless the demo has ended."""
        return None if self._ended.is_set() else super().append(incident, first, events)


def next_steps(bin_directory: Path) -> tuple[str, ...]:
    """Return what to type next, with the commands of this environment."""
    place = bin_directory.relative_to(Path.cwd()) if bin_directory.is_relative_to(Path.cwd()) else bin_directory
    commands = (
        (f"{place}/python examples/guarded_call.py", "a small program; examples/README.md lists more"),
        (f"{place}/rung run -- COMMAND", "recover your own agent or script"),
        (f"{place}/rung gateway run -- COMMAND", "recover the model calls of an agent"),
        (f"{place}/rung serve", "the dashboard of your own agents"),
    )
    width = max(len(command) for command, _ in commands)
    return (
        "demo: scripted agents fail and recover; the journal is deleted at the end",
        "next, in another terminal:",
        *(f"  {command:{width}}  {what}" for command, what in commands),
    )


def _policy(agent: Agent, *, confirm: str, live: bool) -> Policy:
    backoff = {"base": 3, "cap": 20} if live else {}
    return make_policy(
        agent.ladder, models=[dict(model) for model in MODELS], confirm=confirm, report="", backoff=backoff
    )
