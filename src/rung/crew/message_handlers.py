"""Answers what workers say: errors, context warnings, reviews, completions, claims that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.classifier import classify
from rung.core.crew.context_warning import ContextDecision, ContextReport, weigh
from rung.core.crew.contract import ASKS, CLAIMABLE, CONDUCTOR, CONTEXT_WARNING, FALLBACK, MessageType, TaskState
from rung.core.crew.error_triage import CONSIDER_REPLANNING, ErrorReport
from rung.core.crew.review import ReviewDecision, ReviewRequest, judge_review, review_exhausted, sent_back
from rung.core.domain import events as ev
from rung.core.domain.ladder import Action
from rung.crew.judgement import WorkerError
from rung.crew.plan_sync import current
from rung.crew.replanning import replan

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import CrewMessageRow, TaskRow


def answer_error(crew: ConductorContext, task: TaskRow) -> None:
    """Read the report, name it, and do what the ladder says."""
    if task.last_error == CONTEXT_WARNING:
        answer_warning(crew, task)
        return
    report = last(crew, task, MessageType.ERROR)
    text = report.message if report is not None else task.last_error or ""
    failure = classify(ErrorReport.parse(text).evidence(f"{task.last_error or ''}\n{text}".strip()))
    recover(crew, task, failure, text)


def recover(crew: ConductorContext, task: TaskRow, failure: Failure, report: str) -> None:
    """One step of the task's ladder: fix, investigate, replan, or a person."""
    stuck = crew.stories.stuck(task, failure)
    decision, story = crew.stories.failed(task, failure)
    trouble = WorkerError(task=task, failure=failure, report=report, tries=task.error_tries, no_progress=stuck)
    if isinstance(decision, ev.Change) and decision.action in (Action.FIX, Action.INVESTIGATE):
        looked_for = decision.action is Action.INVESTIGATE
        proposal = (crew.judgement.investigate if looked_for else crew.judgement.propose)(trouble)
        if proposal is not None:
            body = proposal.body(task.error_tries) + (f"\n\n{CONSIDER_REPLANNING}" if stuck else "")
            crew.table.reply(task, TaskState.FIX_PROPOSED, body, MessageType.FIX_PROPOSAL, history=story)
            crew.log(f"{task.task_id}: {decision.action}: {failure.kind}")
            return
        replan(crew, task, f"no cause was found for {failure.headline()}")
        return
    if isinstance(decision, ev.Change) and decision.action is Action.REPLAN:
        crew.table.update_columns(task.task_id, history=story)
        replan(crew, task, failure.headline())
        return
    crew.table.update_columns(task.task_id, history=story)
    crew.request_operator(task, decision.question if isinstance(decision, ev.Ask) else decision.reason)


def answer_warning(crew: ConductorContext, task: TaskRow) -> None:
    """Context runs out: as proposed, less than proposed, or stop and hand over. Never counted as an error."""
    warning = last(crew, task, MessageType.CONTEXT_WARNING)
    report = ContextReport.parse(warning.message if warning is not None else "")
    plan = current(crew.table)
    planned = next((one for one in plan.tasks if one.id == task.task_id), None) if plan is not None else None
    estimate = None if planned is None else planned.estimate
    weighed = weigh(report, estimate=estimate, earlier_warnings=max(0, task.warnings - 1))
    to, kind = {
        ContextDecision.PROCEED: (TaskState.REVIEW_APPROVED, MessageType.APPROVAL),
        ContextDecision.OVERRIDE: (TaskState.FIX_PROPOSED, MessageType.FIX_PROPOSAL),
        ContextDecision.STOP: (TaskState.EXIT_REQUESTED, MessageType.EXIT_REQUEST),
    }[weighed.answer]
    crew.table.reply(task, to, weighed.body, kind)
    crew.log(f"{task.task_id}: context warning: {weighed.answer}")


def answer_review(crew: ConductorContext, task: TaskRow) -> None:
    """Approve, read deeply first, send back, or reject; a checkpoint whose reviews are exhausted goes up the ladder."""
    asked = last(crew, task, MessageType.REVIEW_REQUEST)
    request = ReviewRequest.parse(asked.message if asked is not None else "")
    exhausted = review_exhausted(task.checkpoint, task.review_cycles)
    if exhausted is not None:
        recover(crew, task, classify(exhausted), exhausted.text)
        return
    if crew.settings.reviewed_by_person:
        crew.table.update_columns(
            task.task_id, note=f"{ASKS} review of checkpoint {task.checkpoint}: {request.summary}"
        )
        crew.log(f"{task.task_id}: waits for a person's review")
        return
    verdict = judge_review(request)
    if verdict.judged is ReviewDecision.READ_DEEPLY:
        wrong = crew.judgement.read_deeply(task, request)
        verdict = judge_review(request, read=True) if not wrong else sent_back(request, wrong)
    if verdict.judged is ReviewDecision.APPROVE:
        story = crew.stories.over(task, ev.Status.RECOVERED, "")
        crew.table.reply(task, TaskState.REVIEW_APPROVED, verdict.body, MessageType.APPROVAL, history=story)
    else:
        crew.table.reply(task, TaskState.REVIEW_FAILED, verdict.body, MessageType.REJECTION)
    crew.log(f"{task.task_id}: review: {verdict.judged}")


def note_completion(crew: ConductorContext, task: TaskRow) -> None:
    """Done: its story ends well, and what waited for it may begin. Its worker has a moment to leave by itself."""
    story = crew.stories.over(task, ev.Status.RECOVERED, "")
    crew.table.update_columns(task.task_id, outcome="complete", history=story)
    crew.log(f"{task.task_id}: complete")


def answer_blocked_claim(crew: ConductorContext, fallback: TaskRow) -> None:
    """A session came too late, or could not claim: cleaned up when another has the task, tried once more when none has."""
    session = fallback.session_id or fallback.task_id.removeprefix(FALLBACK)
    process = next((one for one in crew.table.processes() if one.session_id == session), None)
    task_id = process.task_id if process is not None else _blocked_on(crew, session)
    task = crew.table.task(task_id) if task_id else None
    if process is not None and (task is None or task.session_id != session):
        crew.terminate(process.task_id)
    crew.table.delete_fallback(session)
    if task is None or task.state not in CLAIMABLE:
        return
    blocked = crew.table.messages(task.task_id, types=(MessageType.CLAIM_BLOCKED,))
    if len(blocked) > 1 and not task.outcome:
        crew.escalate(task, "it is free, and yet could not be claimed twice: look at what blocks it")
        return
    body = f"INSTRUCTION: {task.instruction_path or task.title}"
    crew.table.post_message(task.task_id, CONDUCTOR, body, MessageType.INSTRUCTION)


def _blocked_on(crew: ConductorContext, session: str) -> str:
    blocked = crew.table.messages(types=(MessageType.CLAIM_BLOCKED,))
    return next((message.task_id for message in reversed(blocked) if message.from_session == session), "")


def last(crew: ConductorContext, task: TaskRow, kind: MessageType) -> CrewMessageRow | None:
    """The newest message of this type from the task's worker; by its number, for two may have one time."""
    return next(reversed(crew.table.messages(task.task_id, types=(kind,))), None)
