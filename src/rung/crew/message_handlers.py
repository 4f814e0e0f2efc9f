"""Handlers for workers' messages: errors, context warnings, review requests and completions."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rung.core.classify.classifier import classify
from rung.core.crew.context_warning import ContextDecision, ContextReport, assess_context
from rung.core.crew.contract import (
    ANSWER_MESSAGES,
    ASKS_PREFIX,
    CONTEXT_WARNING,
    MessageType,
    TaskState,
)
from rung.core.crew.corrections import corrections_spent, leaves_for_replanner
from rung.core.crew.error_triage import CONSIDER_REPLANNING, ErrorReport
from rung.core.crew.evidence import NOBODY_CHECKED
from rung.core.crew.learning import most_relevant
from rung.core.crew.mandatory import mandatory_items, named_change, proposed_change
from rung.core.crew.pool import PARKED_PREFIX
from rung.core.crew.review import (
    ReviewDecision,
    ReviewRequest,
    judge_review,
    request_changes,
    review_exhausted,
    reviews_left,
)
from rung.core.crew.service_trouble import trouble_of
from rung.core.domain import events as ev
from rung.core.domain.error_size import Size, size_of
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action
from rung.crew.dispatch import is_instructed
from rung.crew.judgement import WorkerError
from rung.crew.learnings import learn_from_recovery
from rung.crew.plan_sync import current_plan
from rung.crew.pool_control import absorb, progressed, sent_at
from rung.crew.replanning import replan
from rung.crew.subagent import ask
from rung.crew.worker_supervision import redispatch
from rung.engine.local_zone import local_zone
from rung.store.crew.learnings import load_learnings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.failures import Failure
    from rung.crew.context import ConductorContext
    from rung.crew.subagent import Asking
    from rung.crew.task_recovery import EventsJson
    from rung.store.crew.rows import CrewMessageRow, TaskRow


def handle_error(crew: ConductorContext, task: TaskRow) -> Asking[None]:
    """Classify the task's error report and take the rung that the `crew` ladder decides on."""
    if task.last_error == CONTEXT_WARNING:
        handle_context_warning(crew, task)
        return
    message = newest_message(crew, task, MessageType.ERROR)
    report = message.message if message is not None else task.last_error or ""
    evidence = ErrorReport.parse(report).evidence(f"{task.last_error or ''}\n{report}".strip())
    if named_change(evidence.text, _mandatory(crew, task)):
        evidence = evidence._replace(finding=Kind.BEYOND_AUTHORITY)
    at = crew.now() if message is None else sent_at(message, crew.now())
    failure = classify(evidence, at, local_zone())
    if absorb(crew, task, trouble_of(failure, at)):
        _ask_to_wait(crew, task, failure)
        return
    yield from take_next_rung(crew, task, failure, report)


def _mandatory(crew: ConductorContext, task: TaskRow) -> tuple[str, ...]:
    return mandatory_items(current_plan(crew.table), task.task_id)


def _ask_to_wait(crew: ConductorContext, task: TaskRow, failure: Failure) -> None:
    """Ask the worker to hand its task over: another one continues when the pool opens. Its error is not counted."""
    body = f"PARKED: {failure.headline()}\nHand the task over. It goes on when the service is available again."
    note = f"{PARKED_PREFIX} {failure.headline()}"
    crew.table.reply(task, TaskState.EXIT_REQUESTED, body, MessageType.EXIT_REQUEST, excuse=True, note=note)
    crew.log(f"{task.task_id}: waits for its pool: {failure.kind}")


def take_next_rung(crew: ConductorContext, task: TaskRow, failure: Failure, report: str) -> Asking[None]:
    """Record the failure and act on the ladder's decision: fix, investigate, replan, or ask a person."""
    no_progress = crew.recoveries.makes_no_progress(task, failure)
    decision, history = crew.recoveries.record_failure(task, failure)
    error = WorkerError(
        task=task,
        failure=failure,
        report=report,
        tries=task.errors,
        no_progress=no_progress,
        learnings=most_relevant(load_learnings(crew.table), failure.fingerprint),
    )
    if isinstance(decision, ev.Change) and decision.action in (Action.FIX, Action.INVESTIGATE):
        investigates = decision.action is Action.INVESTIGATE
        question = (crew.judgement.investigate if investigates else crew.judgement.propose_fix)(error)
        with _kept_if_dropped(crew, task, history):
            proposal = yield from ask(crew, task, question)
        item = "" if proposal is None else proposed_change(proposal, _mandatory(crew, task))
        if proposal is not None and not item:
            body = proposal.body(task.errors) + (f"\n\n{CONSIDER_REPLANNING}" if no_progress else "")
            crew.table.reply(task, TaskState.FIX_PROPOSED, body, MessageType.FIX_PROPOSAL, history=history)
            crew.log(f"{task.task_id}: {decision.action}: {failure.kind}")
            return
        crew.table.update_columns(task.task_id, history=history)
        found = f"the proposed fix changes {item}, which is mandatory in the plan" if item else "no cause was found"
        yield from replan(crew, task, f"{found}: {failure.headline()}")
        if item:
            crew.table.excuse_error(task)
        return
    crew.table.update_columns(task.task_id, history=history)
    if isinstance(decision, ev.Change) and decision.action is Action.REPLAN:
        yield from replan(crew, task, failure.headline())
        if failure.kind is Kind.BEYOND_AUTHORITY or size_of(failure) is Size.BEYOND:
            crew.table.excuse_error(task)  # no correction was spent on it
        return
    crew.request_operator(task, decision.question if isinstance(decision, ev.Ask) else decision.reason)


@contextmanager
def _kept_if_dropped(crew: ConductorContext, task: TaskRow, history: EventsJson) -> Iterator[None]:
    """Store the history if the handler is dropped in the block: the failure was real, whoever has answered it."""
    try:
        yield
    except GeneratorExit:
        fresh = crew.table.task(task.task_id)
        if fresh is not None and fresh.history == task.history and not fresh.outcome:
            crew.table.update_columns(task.task_id, history=history)
        raise


def handle_context_warning(crew: ConductorContext, task: TaskRow) -> None:
    """Answer a context warning: proceed, override, or stop and hand over. It is never counted as an error."""
    progressed(crew, task)
    warning = newest_message(crew, task, MessageType.CONTEXT_WARNING)
    report = ContextReport.parse(warning.message if warning is not None else "")
    plan = current_plan(crew.table)
    planned = plan.task(task.task_id) if plan is not None else None
    estimate = None if planned is None else planned.estimate
    answer = assess_context(report, estimate=estimate, earlier_warnings=max(0, task.warnings - 1))
    state, message_type = {
        ContextDecision.PROCEED: (TaskState.REVIEW_APPROVED, MessageType.APPROVAL),
        ContextDecision.OVERRIDE: (TaskState.FIX_PROPOSED, MessageType.FIX_PROPOSAL),
        ContextDecision.STOP: (TaskState.EXIT_REQUESTED, MessageType.EXIT_REQUEST),
    }[answer.decision]
    crew.table.reply(task, state, answer.body, message_type)
    crew.log(f"{task.task_id}: context warning: {answer.decision}")


def handle_review(crew: ConductorContext, task: TaskRow) -> Asking[None]:
    """Answer a review request. A checkpoint with too many failed reviews becomes a failure on the ladder."""
    if not is_instructed(crew, task):
        return
    progressed(crew, task)
    message = newest_message(crew, task, MessageType.REVIEW_REQUEST)
    request = replace(
        ReviewRequest.parse(message.message if message is not None else ""), checkpoint=task.checkpoint
    )  # the table's number: a worker cannot choose which checkpoint is reviewed
    exhausted = review_exhausted(task.checkpoint, task.review_cycles)
    if exhausted is not None:
        yield from take_next_rung(crew, task, classify(exhausted), exhausted.text)
        return
    if crew.settings.reviewed_by_person:
        crew.table.update_columns(
            task.task_id, note=f"{ASKS_PREFIX} review of checkpoint {task.checkpoint}: {request.summary}"
        )
        crew.log(f"{task.task_id}: waits for a person's review")
        return
    verdict = judge_review(request)
    if crew.judgement.has_reviewer:
        reviewed = yield from ask(crew, task, crew.judgement.review(task, request, verdict))
        if reviewed is None:
            yield from replan(crew, task, f"the reviewer gave no usable answer on checkpoint {task.checkpoint}")
            return
        verdict = reviewed
    elif verdict.decision is ReviewDecision.NEEDS_FULL_REVIEW:
        problem = yield from ask(crew, task, crew.judgement.review_work(task, request))
        if problem == NOBODY_CHECKED:  # the worker cannot help it, so it is not sent back
            crew.request_operator(task, problem)
            return
        verdict = request_changes(request, problem) if problem else judge_review(request, fully_reviewed=True)
    if verdict.decision is ReviewDecision.APPROVE:
        learn_from_recovery(crew, task)
        history = crew.recoveries.close(task, ev.Status.RECOVERED, "")
        left = reviews_left(task.checkpoints, task.reviews_approved + 1)
        body = verdict.body + (f"\n{left}." if left else "")
        crew.table.reply(task, TaskState.REVIEW_APPROVED, body, MessageType.APPROVAL, history=history)
    else:
        crew.table.reply(task, TaskState.REVIEW_FAILED, verdict.body, MessageType.REJECTION)
    crew.log(f"{task.task_id}: review: {verdict.decision}")


def handle_completion(crew: ConductorContext, task: TaskRow) -> None:
    """Record that the task is complete and close its incident. Its worker exits by itself."""
    progressed(crew, task)
    learn_from_recovery(crew, task)  # a person has approved it
    history = crew.recoveries.close(task, ev.Status.RECOVERED, "")
    crew.table.update_columns(task.task_id, outcome="complete", history=history)
    crew.log(f"{task.task_id}: complete")


def handle_exit(crew: ConductorContext, task: TaskRow) -> Asking[None]:
    """Give the task to another worker, or to the replanner if its worker left because its corrections are spent."""
    if task.note.startswith(PARKED_PREFIX) or not _leaves_for_replanner(crew, task):
        redispatch(crew, task)
        return
    crew.terminate(task.task_id)
    yield from replan(crew, task, f"its worker left after error {task.errors}: {task.last_error}")


def _leaves_for_replanner(crew: ConductorContext, task: TaskRow) -> bool:
    if not corrections_spent(task.errors):
        return False
    newest = {message.message_type: message for message in crew.table.messages(task.task_id)}
    own = {
        kind: message.id if message.from_session == task.session_id else 0
        for kind, message in newest.items()
        if kind in (MessageType.ERROR, MessageType.HANDOFF)
    }
    return leaves_for_replanner(
        task.errors,
        error=own.get(MessageType.ERROR, 0),
        answer=max((newest[kind].id for kind in ANSWER_MESSAGES if kind in newest), default=0),
        handoff=own.get(MessageType.HANDOFF, 0),
        left_by_itself=not task.note,
    )


def newest_message(crew: ConductorContext, task: TaskRow, message_type: MessageType) -> CrewMessageRow | None:
    """Return the task's newest message of this type. Messages are ordered by id: two can have the same time."""
    return next(reversed(crew.table.messages(task.task_id, types=(message_type,))), None)
