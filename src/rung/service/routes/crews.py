"""Crew routes: crews, tasks, messages and the operator's actions."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Response

from rung.core.crew.contract import CONDUCTOR_STALE_SECONDS, TERMINAL, TaskState
from rung.core.domain.errors import ConfigError, IllegalTransition, TaskChanged
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.idempotency import IdempotencyKey, run_idempotent
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.incidents import NO_NUL, timeline
from rung.service.schemas.base import ActionResult
from rung.service.schemas.crews import (
    CoordinatorOut,
    CrewMessage,
    CrewOut,
    OperatorMessageIn,
    PoolOut,
    StopIn,
    TaskAction,
    TaskDetail,
    TaskOut,
    TaskPage,
    WakeCrewIn,
    WorkerProcessOut,
)
from rung.store.crew import board
from rung.store.crew.operator_commands import OperatorReply, allowed_replies, reply_to_task, request_stop, wake_pools
from rung.store.settings import record_audit

if TYPE_CHECKING:
    from rung.core.crew.pool import Pool
    from rung.store.crew.rows import CrewMessageRow, ProcessRow, TaskRow

router = APIRouter(prefix="/api", tags=["crews"], responses=PROBLEM_RESPONSES)

MAX_MESSAGES: Final = 200  # of a task, the newest
Name = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]
IfMatch = Annotated[str | None, Header(max_length=200, description="ETag of the task as it was read.")]


@router.get("/crews")
def list_crews(context: Context, _: Reader) -> list[CrewOut]:
    """All crews of this service."""
    return [crew_out(context, name) for name in context.crews.names]


@router.get("/crews/{crew}")
def one_crew(crew: Name, context: Context, _: Reader) -> CrewOut:
    """One crew: its conductor, its watchdog and its task counts by state."""
    with context.crews.open_table(crew):
        pass  # raises where the crew is unknown or its table is unavailable
    return crew_out(context, crew)


@router.get("/tasks")
def crew_tasks(
    context: Context,
    _: Reader,
    crew: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    needs_person: Annotated[bool, Query(alias="needsPerson")] = False,  # a query parameter
    cursor: Annotated[str, Query(max_length=500, pattern=NO_NUL)] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> TaskPage:
    """Tasks of one crew or of all; within a crew, those that need a person first."""
    if state and state not in tuple(TaskState):
        raise ConfigError("state", state, "one of " + ", ".join(TaskState))
    states = (TaskState(state),) if state else ()
    names, after = _remaining_crews(context, crew, cursor)
    items: list[TaskOut] = []
    for number, name in enumerate(names):
        with context.crews.open_table(name) as table:
            remaining = limit - len(items)
            page = board.load_page(table, remaining, after=after, states=states, text=q, for_person=needs_person)
        items += [TaskOut(**_task(name, row)) for row in page.tasks]
        after = ""
        if page.after:
            return TaskPage(items=items, next_cursor=f"{name}/{page.after}")
        if len(items) >= limit and number + 1 < len(names):
            return TaskPage(items=items, next_cursor=f"{names[number + 1]}/")
    return TaskPage(items=items, next_cursor=None)


def _remaining_crews(context: AppContext, crew: str, cursor: str) -> tuple[list[str], str]:
    """Return the crews left to read, and the cursor within the first of them."""
    names = context.crews.names
    if crew:
        if crew not in names:
            raise ApiProblem(404, f"there is no crew {crew[:100]!r}")
        names = [crew]
    if not cursor:
        return names, ""
    name, separator, after = cursor.rpartition("/")
    if not separator or name not in names:
        raise ConfigError("cursor", cursor, "the nextCursor of an earlier page")
    return names[names.index(name) :], after


@router.get("/crews/{crew}/tasks/{task}")
def one_task(crew: Name, task: Name, context: Context, _: Reader, response: Response) -> TaskDetail:
    """One task: its messages, worker processes, recovery timeline and allowed actions."""
    with context.crews.open_table(crew) as table:
        row = board.worker_task(table, task)
        if row is None:
            raise ApiProblem(404, f"there is no task {task[:100]!r} in crew {crew!r}")
        messages = table.messages(task)[-MAX_MESSAGES:]
        processes = board.recent_processes(table, task)
    response.headers["etag"] = f'"{row.version}"'
    return _detail(crew, row, messages, processes)


@router.get("/crews/{crew}/tasks/{task}/messages")
def task_messages(
    crew: Name, task: Name, context: Context, _: Reader, after: Annotated[int, Query(ge=0, le=2**60)] = 0
) -> list[CrewMessage]:
    """Messages about a task after a message id; at most the newest 200."""
    with context.crews.open_table(crew) as table:
        if board.worker_task(table, task) is None:
            raise ApiProblem(404, f"there is no task {task[:100]!r} in crew {crew!r}")
        return [_message(item) for item in table.messages(task, after=after)[-MAX_MESSAGES:]]


@router.post("/crews/{crew}/tasks/{task}/{act}")
def tell_task(
    crew: Name, task: Name, act: TaskAction, body: OperatorMessageIn, context: Context, principal: Actor,
    if_match: IfMatch = None, key: IdempotencyKey = None,
) -> ActionResult:  # fmt: skip
    """Send a message to a task's worker (tell), answer what it waits for, restart it, or end it."""
    about = f"{act} {crew}/{task}"
    return run_idempotent(
        context,
        key,
        principal,
        about,
        body,
        ActionResult,
        lambda: _reply(context, crew, task, OperatorReply(act), body, principal.name, if_match),
    )


def _reply(
    context: AppContext, crew: str, task: str, how: OperatorReply, body: OperatorMessageIn, by: str, if_match: str | None
) -> ActionResult:  # fmt: skip
    if how is not OperatorReply.TELL and if_match is None:
        raise ApiProblem(428, "If-Match is required: send the ETag of the task that was read", field="If-Match")
    with context.crews.open_table(crew) as table:
        if board.worker_task(table, task) is None:
            raise ApiProblem(404, f"there is no task {task[:100]!r} in crew {crew!r}")
        try:
            row = reply_to_task(table, task, body.words, how, version=(if_match or "").removeprefix("W/").strip('"'))
        except IllegalTransition as error:
            raise ApiProblem(409, str(error)) from None
        except TaskChanged as error:
            raise ApiProblem(412, str(error), field="If-Match") from None
    record_audit(context.journal, by, how.value, f"crew/{crew}/{task}", {"words": body.words, "state": row.state.value})
    return ActionResult(
        how="said", note=f"message sent to {task}" if how is OperatorReply.TELL else f"{task} is now {row.state.value}"
    )


@router.post("/crews/{crew}/stop", status_code=202)
def stop_crew(crew: Name, body: StopIn, context: Context, principal: Actor, key: IdempotencyKey = None) -> ActionResult:
    """Shut a crew down in order; or stop only its conductor, so that another takes over."""
    return run_idempotent(
        context, key, principal, f"stop {crew}", body, ActionResult, lambda: _stop(context, crew, body, principal.name)
    )


def _stop(context: AppContext, crew: str, body: StopIn, by: str) -> ActionResult:
    with context.crews.open_table(crew) as table:
        request_stop(table, body.why or "a person asked", hand_over=body.hand_over)
    record_audit(context.journal, by, "stop", f"crew/{crew}", {"why": body.why, "hand_over": body.hand_over})
    return ActionResult(how="ordered", note="the conductor stops when it next polls the table")


@router.post("/crews/{crew}/wake")
def wake_crew(
    crew: Name, body: WakeCrewIn, context: Context, principal: Actor, key: IdempotencyKey = None
) -> ActionResult:
    """Open a pool that waits for its limit or its service, or all of them."""
    return run_idempotent(
        context, key, principal, f"wake {crew}", body, ActionResult, lambda: _wake(context, crew, body, principal.name)
    )


def _wake(context: AppContext, crew: str, body: WakeCrewIn, by: str) -> ActionResult:
    with context.crews.open_table(crew) as table:
        opened = wake_pools(table, time.time(), body.pool)
    if not opened:
        raise ApiProblem(409, f"pool {body.pool!r} is open" if body.pool else "every pool of this crew is open")
    record_audit(context.journal, by, "wake", f"crew/{crew}", {"pools": opened})
    return ActionResult(how="ordered", note=f"opened: {', '.join(opened)}")


# -- conversion to schemas ----------------------------------------------------------------------------


def crew_out(context: AppContext, name: str) -> CrewOut:
    """Return a crew's status; an unavailable table is reported in its `trouble` field."""
    place = context.crews.location(name)
    try:
        with context.crews.open_table(name) as table:
            head = board.load_header(table)
    except ApiProblem as problem:
        return CrewOut(
            name=name, place=place, trouble=problem.detail, conductor=None, watchdog=None, counts={}, tasks=0,
            for_person=0, facts={}, pools=[],
        )  # fmt: skip
    return CrewOut(
        name=name,
        place=place,
        trouble="",
        conductor=_coordinator(head.conductor),
        watchdog=_coordinator(head.watchdog),
        counts={state.value: number for state, number in head.counts.items() if number},
        tasks=head.tasks,
        for_person=head.for_person,
        facts=head.facts,
        pools=[_pool(name, pool) for name, pool in head.pools.items()],
    )


def _pool(name: str, pool: Pool) -> PoolOut:
    return PoolOut.model_validate(
        {
            "name": name,
            "state": pool.state.value,
            "reason": pool.reason,
            "since": pool.since,
            "parked_until": pool.until,
            "next_probe": pool.next_probe,
            "probe": pool.probe,
        }
    )


def _coordinator(row: TaskRow | None) -> CoordinatorOut | None:
    if row is None:
        return None
    ended = row.state in (TaskState.COMPLETE, TaskState.EXITED, TaskState.EXIT_REQUESTED)
    is_late = row.heartbeat_age is not None and row.heartbeat_age > CONDUCTOR_STALE_SECONDS
    return CoordinatorOut(
        state=row.state.value, heartbeat_at=parse_time(row.last_heartbeat), stale=is_late and not ended
    )


def _task(crew: str, row: TaskRow) -> dict[str, Any]:
    owned = bool(row.session_id) and row.state not in TERMINAL
    return {
        "crew": crew,
        "id": row.task_id,
        "title": row.title,
        "state": row.state.value,
        "outcome": row.outcome,
        "worker": row.worked_by or row.session_id,
        "heartbeat_at": parse_time(row.last_heartbeat),
        "stale": owned and row.is_stale,
        "progress": row.progress,
        "error_tries": row.error_tries,
        "warnings": row.warnings,
        "redispatches": row.redispatches,
        "needs_person": row.needs_person,
        "note": row.note,
        "version": row.version,
    }


def _detail(crew: str, row: TaskRow, messages: list[CrewMessageRow], processes: list[ProcessRow]) -> TaskDetail:
    events = [from_json(event) for event in row.history or ()]
    opened = next((event for event in events if isinstance(event, Opened)), None)
    return TaskDetail.model_validate(
        {
            **_task(crew, row),
            "instruction_path": row.instruction_path,
            "depends_on": list(row.depends_on),
            "writes": list(row.writes),
            "workdir": row.workdir,
            "session": row.session_id,
            "generation": row.generation,
            "checkpoint": row.checkpoint,
            "review_cycles": row.review_cycles,
            "last_error": row.last_error,
            "report_path": row.report_path,
            "started_at": parse_time(row.started_at),
            "completed_at": parse_time(row.completed_at),
            "incident": opened.id if opened is not None else None,
            "can": [word.value for word in allowed_replies(row)],
            "messages": [_message(item) for item in messages],
            "workers": [
                WorkerProcessOut(
                    session=item.session_id,
                    launched_at=parse_time(item.launched_at),
                    ended_at=parse_time(item.ended_at),
                    exit_code=item.exit_code,
                    command=list(item.command),
                )
                for item in processes
            ],
            "story": timeline(events),
        }
    )


def _message(item: CrewMessageRow) -> CrewMessage:
    return CrewMessage(
        id=item.id,
        sender=item.from_session,
        kind=item.message_type.value,
        text=item.message,
        at=parse_time(item.timestamp),
    )


def parse_time(text: str | None) -> float | None:
    """Parse a timestamp of the table; None if a foreign writer stored an invalid one."""
    try:
        return datetime.fromisoformat(text or "").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
