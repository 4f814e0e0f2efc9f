"""Rung's ladders and templates, played by its own engine: the steps of a recovery, with attempts drawn from a tape.

The engine decides, builds each request and limits the time of each attempt, on a clock that only the recorded durations
and the waits move. A rung maps to what the world recorded: a retry to the same system told nothing, a nudge or a new
plan to the same system told of its failure (where no such trial is recorded in the world, told nothing), a handover to
another system told nothing. A rung whose attempt is not recorded is skipped, as one whose handler fails.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bench.worlds.play import Attempts, Play, Policy
from bench.worlds.world import NONE, Unrecorded
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.ladder import ENDING_ACTIONS, WAITING_ACTIONS, Action
from rung.core.domain.request import Request
from rung.core.policy.policy import Model
from rung.core.policy.policy import Policy as RungPolicy
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import preset
from rung.engine.loop.moves import ATTEMPT, NOTHING, CallPort, Wait
from rung.engine.loop.recovery_steps import recovery
from rung.engine.loop.run import RecoveryRun
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.worlds.world import Tape, World
    from rung.engine.loop.moves import Move, Reply

DEFAULT: Final = ("task", "default")
TEMPLATES: Final = ("default", "conservative", "aggressive", "unattended")
FAILURE: Final = Kind.TEST_FAILURE  # what the engine reports of a check that answers False
MEAN_JITTER: Final = 0.5
# What the prompts of an action tell, nearest first, in the words of the record.
_QUOTES_RESULT: Final = ("error", "last_attempt", "reflection", NONE)
_ASKS_FOR_CAUSE: Final = ("reflection", "error", "last_attempt", NONE)
TOLD: Final = {
    Action.RETRY: (NONE,),
    Action.REPLAN: _ASKS_FOR_CAUSE,
    Action.INVESTIGATE: _ASKS_FOR_CAUSE,
    Action.FALLBACK: (NONE,),
    Action.ESCALATE: (NONE,),
}
_HANDLED: Final = tuple(
    each for each in Action if each not in ENDING_ACTIONS and each not in WAITING_ACTIONS and each is not Action.RETRY
)


def rung_policies(world: World) -> Iterator[Policy]:
    """Yield every ladder with every template and every number of systems to fall back to.

    One more hands over to another system at the first failure: the default ladder with `escalate_after = 0`.
    """
    most = len(world.systems) - 1
    for ladder in LADDERS:
        for template in TEMPLATES:
            for others in sorted({0, min(1, most), most}):
                name = ladder if template == "default" else f"{ladder}, {template}"
                with_others = f" + {others} other{'s' * (others > 1)}" if others else ""
                yield Policy(
                    name=f"rung {name}{with_others}",
                    owner="rung",
                    player=rung_player(preset(ladder, template), world.systems[: others + 1]),
                    is_default=(ladder, template) == DEFAULT and others == most,
                )
    if most:
        first = preset(*DEFAULT).replace(escalate_after=0)
        name = f"rung task with escalate_after = 0 + {most} other{'s' * (most > 1)}"
        yield Policy(name=name, owner="rung", player=rung_player(first, world.systems))


def rung_player(policy: RungPolicy, systems: Sequence[str], kind: Kind = FAILURE) -> partial[Play]:
    """Return the player of a policy whose model ladder is these systems."""
    listed = policy.replace(models=tuple(Model(name=system) for system in systems))
    return partial(_recover, listed, systems[0], kind)


def _recover(policy: RungPolicy, first: str, kind: Kind, tape: Tape) -> Play:
    """Run the steps of one recovery, and answer each of its moves from the record."""
    recorded = _Recorded(tape, policy)
    run = recorded.run(kind)
    run.open(Request(prompt="the task", model=first), run.clock.now(), "play")
    steps = recovery(run)
    try:
        move = next(steps)
        while True:
            move = steps.send(recorded.answer(run, move))
    except (StopIteration, Unrecorded):
        return recorded.attempts.play(recorded.unknown, recorded.last_turns)


class _Recorded:
    """Answers the moves of a recovery."""

    def __init__(self, tape: Tape, policy: RungPolicy) -> None:
        self.attempts = Attempts(tape)
        self.policy = policy
        self.clock = FakeClock(0.0)
        self.unknown = 0
        self.last_turns = 0

    def run(self, kind: Kind) -> RecoveryRun:
        """Return a recovery without journal, breakers or shared budget: each task is on its own."""
        run = RecoveryRun()
        run.policy = self.policy
        rungs = self.policy.ladder.rungs
        names, tries = tuple(rung.name for rung in rungs), tuple(rung.tries for rung in rungs)
        run.terms = ev.IncidentContext(self.policy.ladder.name, self.policy.name, rungs=names, tries=tries)
        run.clock = self.clock
        run.jitter = lambda: MEAN_JITTER
        rejected = Evidence(text="the verifier rejected the result", finding=kind, phase=Phase.RESULT)
        run.check = lambda is_good: None if is_good else rejected
        run.rung_handlers = {action.value: partial(self._handle, action) for action in _HANDLED}
        return run

    def answer(self, run: RecoveryRun, move: Move) -> Reply:
        """Carry out a move."""
        if move is ATTEMPT:
            return self._attempt(run)
        if isinstance(move, Wait):
            self.clock.advance(move.seconds)
            self.attempts.wait(move.seconds)
            return NOTHING
        assert isinstance(move, CallPort)
        try:
            return move.function(*move.arguments), None
        except Unrecorded as error:
            return None, error

    def _attempt(self, run: RecoveryRun) -> Reply:
        decision, request = run.incident.decision, run.incident.request
        assert request is not None
        action = _action(self.policy, decision)
        if action is Action.FORCE_DONE:
            self.last_turns += 1
            return True, None
        try:
            trial = self.attempts.make(request.model, self._told(action), run.seconds)
        except Unrecorded:  # a plain retry: no handler was asked before
            self.unknown += 1
            raise
        self.clock.advance(trial.seconds or 0.0)
        if run.seconds is not None and trial.seconds == run.seconds and not trial.success:
            return None, AttemptTimeout(run.seconds)
        return trial.success, None

    def _handle(self, action: Action, request: Request, incident: Any) -> Request:
        """Build the request as the engine does, unless the record has no attempt for it."""
        if not self.attempts.tape.has(request.model, self._told(action)):
            self.unknown += 1
            raise Unrecorded(f"{action} of {request.model}")
        if action in (Action.FALLBACK, Action.ESCALATE):
            return request  # already built: the handler of a handover changes it further
        from rung.core.recovery.apply_rung import apply_rung

        built, _ = apply_rung(incident.decision, incident, incident.failure, self.policy)
        return built

    def _told(self, action: Action) -> str:
        """Return what the attempt is told, as far as the world recorded it."""
        known = self.attempts.tape.world.told
        return next(told for told in TOLD.get(action, _QUOTES_RESULT) if told in known)


def _action(policy: RungPolicy, decision: ev.Decision | None) -> Action:
    if decision is None or isinstance(decision, ev.Repeat):
        return Action.RETRY
    return decision.action if isinstance(decision, ev.Change) else policy.ladder.rungs[decision.rung].action
