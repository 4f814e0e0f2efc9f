"""Incident: the state of one recovery, computed only by folding its events."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.agent_session import AgentSession, survives_decision, survives_failure
from rung.core.domain.failures import (
    INFRASTRUCTURE_KINDS,
    PROCESS_DEATH_RULE,
    Kind,
    is_limit,
    is_passing,
    is_resumable,
    rejects_target,
)
from rung.core.domain.ladder import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeGuard

    from rung.core.domain.failures import Failure
    from rung.core.domain.request import Request

_SUCCEEDED: Final = ev.Status.SUCCEEDED
_RECOVERED: Final = ev.Status.RECOVERED
_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})
DOLLAR_DIGITS: Final = 9  # ten times $0.10 are $1.00, so that a budget of $1.00 is spent
SHORT_LIMIT_SECONDS: Final = 90.0  # a reset that has just passed is read as one a minute ahead


def _asks_for_approval(decision: ev.Decision) -> TypeGuard[ev.Ask]:
    """Whether a decision asks for leave to hand over: nothing is done until a person gives it."""
    return isinstance(decision, ev.Ask) and bool(decision.model or decision.agent)


def _is_key_switch(decision: ev.Decision) -> bool:
    return isinstance(decision, ev.Repeat) and decision.other_key


class Incident:
    """State of a recovery. Only `fold` changes it; incidents are equal if they folded the same events.

    Defaults are class attributes, so that a new incident is one small object: most incidents end after one retry.
    """

    id: str = ""
    terms: ev.IncidentContext = ev.IncidentContext("", "")
    parent: str = ""
    opened_at: float = 0.0
    deadline: float | None = None
    dollar_cap: float | None = None
    status: ev.Status | None = None
    reason: str = ""

    attempts: int = 0
    dollars: float = 0.0
    failure: Failure | None = None
    failures: tuple[Failure, ...] = ()
    retry_budget_ok: bool = True
    steps: tuple[str, ...] = ()
    agent_sessions: Mapping[str, AgentSession] = _EMPTY  # by agent: those that the next attempt can continue
    session_told: bool = False  # the request as it is now has reached the agent's session
    abandoned: tuple[ev.Abandoned, ...] = ()  # approaches that were given up: known-bad paths
    unread_by: frozenset[str] = frozenset()  # agents whose last attempt read nothing of its prompt
    partial_output: str = ""  # the answer so far: the truncated part and what each resumption added
    resumed_elsewhere: bool = False  # the model handed over to resumes the partial answer

    first_request: Request | None = None
    request: Request | None = None
    failed_request: Request | None = None  # the request of the last attempt that failed
    digests: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    handover_rungs: frozenset[int] = frozenset()  # rungs that handed over
    left_for: Failure | None = None  # the failure that the first model or agent was left for
    left_request: Request | None = None  # its request then; None if another one has since resumed the answer
    target_rung: int = -1  # the rung that handed over last
    retries_before: tuple[Mapping[int, int], float] = (_EMPTY, 0.0)  # its retries and their backoff until then
    rejected: Mapping[tuple[str, str], Failure] = _EMPTY  # models and agents that failed for reasons of their own
    target_rejected: bool = False  # the last failure is one of those
    declined: frozenset[tuple[str, str]] = frozenset()  # models and agents that a person does not want

    rung: int = -1  # the highest rung used, retry rungs excepted
    tries_used: Mapping[int, int] = _EMPTY  # tries by rung during the whole incident
    retries: Mapping[int, int] = _EMPTY  # retries by rung since the last climb
    waits: int = 0  # for a failing service to come back
    probes: int = 0  # attempts after those waits
    key_switches: int = 0  # attempts with another key, made at once
    attempts_elsewhere: int = 0  # made before the last handover, without probes and other keys
    patient_until: float | None = None  # the end of those waits
    parks: int = 0  # until a limit reopens
    short_parks: int = 0  # the last ones in a row whose limit named no time, or one at hand
    parked_at: float = 0.0
    parked_until: float | None = None  # when the limit reopens; None: not parked
    limits: Mapping[tuple[str, str], float] = _EMPTY  # when the limit of a model and agent reopens
    backed_off: float = 0.0  # seconds of backoff before those retries; waits that a server asked for do not count
    entered_at: Mapping[int, float] = _EMPTY
    exhausted: Mapping[int, str] = _EMPTY  # rungs that could not be applied, and why
    session_used: tuple[tuple[str, int], ...] = ()
    session_target: tuple[str, str] | None = None  # model and agent that the session was handed over to
    path: tuple[int, ...] = ()  # the rungs used, lowest first
    decision: ev.Decision | None = None
    active_decision: ev.Decision | None = None  # the decision that built the current request; never a retry
    last_question: ev.Ask | None = None
    answer: str = ""
    checkpoints: Mapping[int, str] = _EMPTY
    steps_at_checkpoint: Mapping[int, tuple[str, ...]] = (
        _EMPTY  # by the checkpoint's rung: the steps completed until then
    )
    hint: int = -1  # the rung that fixed the first failure before, according to the journal
    learned: Mapping[str, tuple[ev.LearnedSkip, ...]] = _EMPTY  # by kind: tries that recorded outcomes leave out

    @classmethod
    def of(cls, events: Iterable[ev.Event]) -> Incident:
        """Return the incident of these events.

        Args:
            events: All events of the incident, in order.
        """
        incident = cls()
        for event in events:
            incident.fold(event)
        return incident

    def fold(self, event: ev.Event) -> None:
        """Apply one event.

        Args:
            event: The next event.
        """
        FOLDS[type(event)](self, event)

    @property
    def resuming(self) -> bool:
        """Whether the current request continues a truncated answer."""
        if isinstance(self.active_decision, ev.HandOver) or self._is_compacted_for_target:
            return self.resumed_elsewhere
        return isinstance(self.active_decision, ev.Change) and self.active_decision.action is Action.RESUME

    @property
    def probe_at(self) -> float | None:
        """Time of the attempt after a park: shortly after the limit reopens. None: not parked."""
        if self.parked_until is None or not isinstance(self.decision, ev.Repeat):
            return None
        return self.parked_at + self.decision.wait

    @property
    def cause(self) -> str:
        """The root cause that was found last; empty if none was."""
        return next((each.cause for each in reversed(self.abandoned) if each.cause), "")

    @property
    def retries_of_model(self) -> int:
        """Return how often the current model or agent was asked again, in whatever form; probes and other keys do not count."""
        return max(0, self.attempts - self.probes - self.key_switches - self.attempts_elsewhere - 1)

    @property
    def handed_over(self) -> bool:
        """Whether the current request goes to another model or agent than the first one."""
        now, first = self.request, self.first_request
        return now is not None and first is not None and (now.model, now.agent) != (first.model, first.agent)

    @property
    def _is_compacted_for_target(self) -> bool:
        """Whether the current request was compacted for the model or agent handed over to."""
        last = self.active_decision
        return isinstance(last, ev.Change) and last.action is Action.COMPACT and self.handed_over

    @property
    def failure_to_solve(self) -> Failure | None:
        """Return the last failure, or the one that a rejected target was asked for: that target does not count."""
        return self.left_for if self.target_rejected else self.failure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Incident) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"<Incident {self.id} {self.status or 'open'} attempts={self.attempts} path={self.path}>"

    def _opened(self, event: ev.Opened) -> None:
        self.id = event.id
        self.terms = event.terms
        self.opened_at = event.at
        self.deadline = event.deadline
        if event.dollars is not None:
            self.dollar_cap = event.dollars
        if event.parent:
            self.parent = event.parent
        if event.used:
            self.session_used = event.used
        request = event.request
        if request is not None:
            self.first_request = self.request = request
            self.digests = frozenset((request.digest(),))
            self.models = frozenset((request.model,))
            self.agents = frozenset((request.agent,))

    def _attempt_failed(self, event: ev.AttemptFailed) -> None:
        failure = event.failure
        self.attempts += event.made
        if self.parked_until is not None:
            self._end_park(event.at - event.seconds)
        if (self.waits or self.parks) and event.made:
            self._count_probe()
        if failure.retry_after is not None or self.limits:
            self._note_limit(event.at, failure)
        if self.resuming and failure.evidence.progress and is_resumable(failure):
            self._count_resumptions_anew()
        if self.agent_sessions:
            self._keep_session(failure)
        if self.handover_rungs:
            self._judge_target(failure)
        if failure.evidence.prompt_unread or self.unread_by:
            self._note_reading(failure)
        self.failure = failure
        self.failed_request = self.request
        self.failures = (*self.failures, failure)
        self.retry_budget_ok = event.may_retry
        if event.dollars:
            self.dollars = round(self.dollars + event.dollars, DOLLAR_DIGITS)
        if (failure.evidence.output or self.partial_output) and failure.rule != PROCESS_DEATH_RULE:
            self.partial_output = (self.partial_output if self.resuming else "") + failure.evidence.output

    def _note_reading(self, failure: Failure) -> None:
        """Note whether the agent of the attempt has read its prompt: one that has not cannot be told anything."""
        agent = frozenset(("" if self.request is None else self.request.agent,))
        self.unread_by = self.unread_by | agent if failure.evidence.prompt_unread else self.unread_by - agent

    def _judge_target(self, failure: Failure) -> None:
        """Reject the model or agent handed over to if it fails for a reason of its own, such as a refused key.

        The work returns to the first one, as if there were no such target: its retries are those before the handover.
        """
        left_for, request = self.left_for, self.request
        self.target_rejected = False
        if request is None or left_for is None or not self.handed_over:
            return
        if left_for.kind not in INFRASTRUCTURE_KINDS or not self._is_targets_own(failure):
            return
        self.target_rejected = True
        self.rejected = {**self.rejected, (request.model, request.agent): failure}
        self.retries, self.backed_off = self.retries_before
        self.attempts_elsewhere = 0
        if is_passing(left_for):  # else each further model that is gone would be one more switch of the session
            rung = self.target_rung
            self.tries_used = {**self.tries_used, rung: max(0, self.tries_used.get(rung, 0) - 1)}

    def _is_targets_own(self, failure: Failure) -> bool:
        """Whether the model or agent handed over to fails for a reason of its own, and no longer for a change of a rung."""
        if self._is_compacted_for_target:
            return failure.kind is Kind.CONTEXT_LIMIT
        return isinstance(self.active_decision, ev.HandOver) and rejects_target(failure)

    def _note_route(self, decision: ev.Decision) -> None:
        """Note what the first model or agent is left for; return to it from a rejected target."""
        if isinstance(decision, ev.HandOver):
            if self.target_rejected or not self.handed_over:
                self.left_for = self.failure_to_solve
                self.retries_before = (self.retries, self.backed_off)
            if self.failure is not None and is_resumable(self.failure):
                self.left_request = None
            elif not self.handed_over:
                self.left_request = self.request
        elif self.target_rejected and not isinstance(decision, ev.Finish) and not _is_key_switch(decision):
            self._return_to_first()

    def _return_to_first(self) -> None:
        if self.first_request is not None:
            self._go_to(self.first_request.model, self.first_request.agent)

    def _go_to(self, model: str, agent: str) -> None:
        """Send the request to this model and agent. The first gets the one that it had: no change for another concerns it."""
        request, left = self.request, self.left_request
        if request is None or (request.model, request.agent) == (model, agent):
            return
        if left is not None and (left.model, left.agent) == (model, agent):
            self.request = left
        else:
            self.request = request.replace(model=model, agent=agent)

    def _keep_session(self, failure: Failure) -> None:
        """Forget the session of the attempt that failed, if it cannot be continued."""
        agent = self.request.agent if self.request is not None else ""
        session = self.agent_sessions.get(agent)
        if session is not None and not survives_failure(session, failure, self.failure):
            self._forget_session(agent)

    def _forget_session(self, agent: str) -> None:
        self.agent_sessions = {name: session for name, session in self.agent_sessions.items() if name != agent}

    def _attempt_succeeded(self, event: ev.AttemptSucceeded) -> None:
        self.attempts += 1
        if self.parked_until is not None:
            self._end_park(event.at - event.seconds)
        if self.waits or self.parks:
            self._count_probe()
        if event.dollars:
            self.dollars = round(self.dollars + event.dollars, DOLLAR_DIGITS)
        last = self.active_decision
        if isinstance(last, ev.Change) and last.action is Action.FORCE_DONE and not event.verified:
            self.status = ev.Status.PARTIAL
            self.reason = last.reason
        else:
            self.status = _RECOVERED if self.failures else _SUCCEEDED

    def _charged(self, event: ev.Charged) -> None:
        self.dollars = round(self.dollars + event.dollars, DOLLAR_DIGITS)

    def _hinted(self, event: ev.Hinted) -> None:
        self.hint = event.rung

    def _learned(self, event: ev.Learned) -> None:
        self.learned = {**self.learned, event.kind: () if event.explored else event.skips}

    def _decided(self, event: ev.Decided) -> None:
        decision = event.decision
        self.decision = decision
        rung = decision.rung
        if self.agent_sessions and not survives_decision(decision, self.failure, self.request):
            self._forget_session(self.request.agent if self.request is not None else "")
        self._note_route(decision)
        if isinstance(decision, ev.Repeat) and decision.until is not None:
            if decision.parked:
                self._park(event.at, decision.until)
            else:
                self._wait_for_service(decision)
        elif isinstance(decision, ev.Repeat) and decision.other_key:
            self.key_switches += 1
            return  # another key of the same upstream and model: no try of a rung
        elif isinstance(decision, ev.Repeat):
            if self.failure is not None and self.failure.rule == PROCESS_DEATH_RULE:
                return  # the attempt did not fail: no try is used
            self.retries = {**self.retries, rung: self.retries.get(rung, 0) + 1} if self.retries else {rung: 1}
            if self.failure is None or self.failure.retry_after is None:
                self.backed_off += decision.wait
        elif _asks_for_approval(decision):
            self.last_question = decision
            return  # nothing is tried yet: the rung is entered, with new retries, when a person approves
        else:
            self._take_rung(decision, event.at)
        if not self.path or self.path[-1] < rung:
            self.path = (*self.path, rung)

    def _take_rung(self, decision: ev.Decision, at: float) -> None:
        """Enter the decision's rung, or take another try of it."""
        rung = decision.rung
        if rung > self.rung or (isinstance(decision, ev.HandOver) and not self.waits):  # each model has its retries
            self.retries = _EMPTY
            self.backed_off = 0.0
        if rung > self.rung:
            self.rung = rung
            self.entered_at = {**self.entered_at, rung: at}
        self._count_try(decision)

    def _wait_for_service(self, decision: ev.Repeat) -> None:
        """Count a wait, which uses nothing of the time of the rungs below.

        After a failed handover the first model is waited for: it is the one that was asked for. The others may be back as
        well, so handovers are possible again, but not to rejected ones, nor to those that a person has declined.
        """
        self.waits += 1
        self.patient_until = decision.until
        if self.entered_at:
            self.entered_at = {rung: at + decision.wait for rung, at in self.entered_at.items()}
        first = self.first_request
        if self.request is None or first is None or not self.handover_rungs:
            return
        self._return_to_first()
        self.digests = frozenset((self.request.digest(),))
        self.models = frozenset((first.model, *(model for model, _ in (*self.rejected, *self.declined))))
        agents = (agent for model, agent in self.rejected if model == first.model)  # others fail with their model alone
        self.agents = frozenset((first.agent, *agents, *(agent for _, agent in self.declined)))
        self.attempts_elsewhere = 0
        self.tries_used = {rung: tries for rung, tries in self.tries_used.items() if rung not in self.handover_rungs}

    def _park(self, at: float, until: float) -> None:
        """Park the request of the model and agent whose limit reopens at this time."""
        hint = None if self.failure is None else self.failure.retry_after
        self.parks += 1
        self.short_parks = self.short_parks + 1 if hint is None or hint <= SHORT_LIMIT_SECONDS else 0
        self.parked_at, self.parked_until = at, until
        target = next((target for target, reopens_at in self.limits.items() if reopens_at == until), None)
        if target is not None:
            self._go_to(*target)

    def _end_park(self, at: float) -> None:
        """Take up the work. The time parked counts against no time limit, but an enclosing incident's stays."""
        seconds = max(0.0, at - self.parked_at)
        self.parked_until = None
        if self.deadline is not None and not self.parent:
            self.deadline += seconds
        if self.patient_until is not None:
            self.patient_until += seconds
        if self.entered_at:
            self.entered_at = {rung: entered + seconds for rung, entered in self.entered_at.items()}

    def _note_limit(self, at: float, failure: Failure) -> None:
        """Note when the limit of the request's model and agent reopens, or that it is open."""
        target = ("", "") if self.request is None else (self.request.model, self.request.agent)
        limits = {key: reopens_at for key, reopens_at in self.limits.items() if key != target}
        if failure.retry_after is not None and is_limit(failure):
            limits[target] = at + failure.retry_after
        self.limits = limits

    def _unparked(self, event: ev.Unparked) -> None:
        if self.parked_until is not None:
            self._end_park(event.at)

    def _count_resumptions_anew(self) -> None:
        """After a resumption that added to the answer: only those in a row that add nothing are counted."""
        if isinstance(self.active_decision, ev.Change):
            rung = self.active_decision.rung
            self.tries_used = {each: tries for each, tries in self.tries_used.items() if each != rung}

    def _count_probe(self) -> None:
        """Count an attempt that was made after a wait for a failing service or a limit, or a handover after it."""
        if isinstance(self.decision, ev.HandOver) or (
            isinstance(self.decision, ev.Repeat) and self.decision.until is not None
        ):
            self.probes += 1

    def _count_try(self, decision: ev.Decision) -> None:
        """Count a try of the decision's rung."""
        if isinstance(decision, ev.Ask):
            self.last_question = decision
        elif isinstance(decision, ev.HandOver):
            self.resumed_elsewhere = self.failure is not None and is_resumable(self.failure)
            self.models |= {decision.model}
            self.agents |= {decision.agent}
            self.handover_rungs |= {decision.rung}
            self.target_rung = decision.rung
            self.attempts_elsewhere = self.attempts - self.probes - self.key_switches
        if not isinstance(decision, ev.Finish):
            self.tries_used = {**self.tries_used, decision.rung: self.tries_used.get(decision.rung, 0) + 1}
            self.active_decision = decision

    def _abandoned(self, event: ev.Abandoned) -> None:
        self.abandoned = (*self.abandoned, event)

    def _changed(self, event: ev.Changed) -> None:
        self.request = event.request
        self.digests |= {event.digest}
        self.session_told = False

    def _skipped(self, event: ev.Skipped) -> None:
        self.exhausted = {**self.exhausted, event.rung: event.reason}
        if self._is_compacted_for_target and self.failure is not None:
            self._judge_target(self.failure)

    def _step_completed(self, event: ev.StepCompleted) -> None:
        if event.step not in self.steps:  # a retried attempt reports its steps again
            self.steps = (*self.steps, event.step)

    def _agent_session_opened(self, event: ev.AgentSessionOpened) -> None:
        before = self.agent_sessions.get(event.agent) if event.continued else None
        session = AgentSession(event.program, event.session, 0 if before is None else before.continued + 1)
        self.agent_sessions = {**self.agent_sessions, event.agent: session}
        self.session_told = True

    def _answered(self, event: ev.Answered) -> None:
        self.answer = event.option
        if event.option == "decline" and self.last_question is not None:
            self.declined |= {(self.last_question.model, self.last_question.agent)}
            self.models |= {self.last_question.model}
            self.agents |= {self.last_question.agent}

    def _ordered(self, event: ev.Ordered) -> None:
        if event.model:
            self.models |= {event.model}

    def _checkpoint_taken(self, event: ev.CheckpointTaken) -> None:
        self.checkpoints = {**self.checkpoints, event.rung: event.reference}
        self.steps_at_checkpoint = {**self.steps_at_checkpoint, event.rung: self.steps}

    def _rolled_back(self, event: ev.RolledBack) -> None:
        """Forget the steps completed since the checkpoint: their work is undone."""
        if event.rung in self.steps_at_checkpoint:
            self.steps = self.steps_at_checkpoint[event.rung]

    def _model_restored(self, event: ev.ModelRestored) -> None:
        self._go_to(event.model, event.agent)

    def _session_switched(self, event: ev.SessionSwitched) -> None:
        self.session_target = (event.model, event.agent)

    def _crashed(self, event: ev.Crashed) -> None:
        pass

    def _cancelled(self, event: ev.Cancelled) -> None:
        self.parked_until = None
        self.status = ev.Status.PARTIAL
        self.reason = event.reason

    def _closed(self, event: ev.Closed) -> None:
        self.parked_until = None
        self.status = event.status
        self.reason = event.reason
        self.failure = self.failure_to_solve


FOLDS: Final[Mapping[type, Callable[[Incident, Any], None]]] = {
    ev.Opened: Incident._opened,  # noqa: SLF001  # this class's own methods
    ev.AttemptFailed: Incident._attempt_failed,  # noqa: SLF001
    ev.AttemptSucceeded: Incident._attempt_succeeded,  # noqa: SLF001
    ev.Charged: Incident._charged,  # noqa: SLF001
    ev.Hinted: Incident._hinted,  # noqa: SLF001
    ev.Learned: Incident._learned,  # noqa: SLF001
    ev.Decided: Incident._decided,  # noqa: SLF001
    ev.Unparked: Incident._unparked,  # noqa: SLF001
    ev.Abandoned: Incident._abandoned,  # noqa: SLF001
    ev.Changed: Incident._changed,  # noqa: SLF001
    ev.Skipped: Incident._skipped,  # noqa: SLF001
    ev.StepCompleted: Incident._step_completed,  # noqa: SLF001
    ev.AgentSessionOpened: Incident._agent_session_opened,  # noqa: SLF001
    ev.Answered: Incident._answered,  # noqa: SLF001
    ev.Ordered: Incident._ordered,  # noqa: SLF001
    ev.CheckpointTaken: Incident._checkpoint_taken,  # noqa: SLF001
    ev.RolledBack: Incident._rolled_back,  # noqa: SLF001
    ev.ModelRestored: Incident._model_restored,  # noqa: SLF001
    ev.SessionSwitched: Incident._session_switched,  # noqa: SLF001
    ev.Crashed: Incident._crashed,  # noqa: SLF001
    ev.Cancelled: Incident._cancelled,  # noqa: SLF001
    ev.Closed: Incident._closed,  # noqa: SLF001
}
