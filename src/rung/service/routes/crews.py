"""Crews over HTTP: the board, one task whole, and what a person can do about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Response

from rung.core.crew.contract import CONDUCTOR_STALE, TERMINAL, TaskState
from rung.core.domain.errors import ConfigError, IllegalTransition, TaskChanged
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened
from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.idempotency import IdempotencyKey, run_idempotent
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.routes.incidents import NO_NUL, timeline
from rung.service.schemas.base import ActionResult
from rung.service.schemas.crews import (
    TaskAction,
    CrewMessage,
    CrewOut,
    CoordinatorOut,
    StopIn,
    TaskDetail,
    TaskOut,
    TaskPage,
    OperatorMessageIn,
    WorkerProcessOut,
)
from rung.store.crew import board
from rung.store.crew.operator_commands import OperatorReply, allowed_replies, request_stop, reply_to_task
from rung.store.settings import trace

if TYPE_CHECKING:
    from rung.store.crew.rows import CrewMessageRow, ProcessRow, TaskRow

router = APIRouter(prefix="/api", tags=["crews"], responses=PROBLEM_RESPONSES)

MESSAGES: Final = 200  # of a task, shown: the newest
Name = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]
IfMatch = Annotated[str | None, Header(max_length=200, description="The task as it was seen, by its ETag.")]


@router.get("/crews")
def list_crews(hub: Context, _: Reader) -> list[CrewOut]:
    """The crews that this service shows."""
    return [crew_out(hub, name) for name in hub.crews.names]


@router.get("/crews/{crew}")
def one_crew(crew: Name, hub: Context, _: Reader) -> CrewOut:
    """One crew: its conductor, its watchdog, and how many tasks are where."""
    with hub.crews.open_table(crew):
        pass  # unknown, or not to be used: that is the answer
    return crew_out(hub, crew)


@router.get("/tasks")
def crew_tasks(
    hub: Context,
    _: Reader,
    crew: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    state: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    needs_person: Annotated[bool, Query(alias="needsPerson")] = False,  # a query's, not a caller's
    cursor: Annotated[str, Query(max_length=500, pattern=NO_NUL)] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> TaskPage:
    """The tasks of a crew, or of all, one crew after the other; those that need a person first."""
    if state and state not in tuple(TaskState):
        raise ConfigError("state", state, "one of " + ", ".join(TaskState))
    states = (TaskState(state),) if state else ()
    names, after = _from(hub, crew, cursor)
    items: list[TaskOut] = []
    for number, name in enumerate(names):
        with hub.crews.open_table(name) as table:
            room = limit - len(items)
            page = board.load_page(table, room, after=after, states=states, text=q, for_person=needs_person)
        items += [TaskOut(**_task(name, row)) for row in page.tasks]
        after = ""
        if page.after:
            return TaskPage(items=items, next_cursor=f"{name}/{page.after}")
        if len(items) >= limit and number + 1 < len(names):
            return TaskPage(items=items, next_cursor=f"{names[number + 1]}/")
    return TaskPage(items=items, next_cursor=None)


def _from(hub: AppContext, crew: str, cursor: str) -> tuple[list[str], str]:
    """The crews that are still to be read, and where in the first of them."""
    names = hub.crews.names
    if crew:
        if crew not in names:
            raise ApiProblem(404, f"there is no crew {crew[:100]!r}")
        names = [crew]
    if not cursor:
        return names, ""
    name, found, after = cursor.rpartition("/")
    if not found or name not in names:
        raise ConfigError("cursor", cursor, "the nextCursor of an earlier page, as it was given")
    return names[names.index(name) :], after


@router.get("/crews/{crew}/tasks/{task}")
def one_task(crew: Name, task: Name, hub: Context, _: Reader, response: Response) -> TaskDetail:
    """One task: what was said about it, who worked on it, what the ladder did, and what a person can do now."""
    with hub.crews.open_table(crew) as table:
        row = board.worker_task(table, task)
        if row is None:
            raise ApiProblem(404, f"there is no task {task[:100]!r} in the crew {crew}")
        messages = table.messages(task)[-MESSAGES:]
        processes = board.recent_processes(table, task)
    response.headers["etag"] = f'"{row.version}"'
    return _detail(crew, row, messages, processes)


@router.get("/crews/{crew}/tasks/{task}/messages")
def task_messages(
    crew: Name, task: Name, hub: Context, _: Reader, after: Annotated[int, Query(ge=0, le=2**60)] = 0
) -> list[CrewMessage]:
    """What was said about a task, after the message of that number; the newest, where there are very many."""
    with hub.crews.open_table(crew) as table:
        if board.worker_task(table, task) is None:
            raise ApiProblem(404, f"there is no task {task[:100]!r} in the crew {crew}")
        return [_message(one) for one in table.messages(task, after=after)[-MESSAGES:]]


@router.post("/crews/{crew}/tasks/{task}/{act}")
def tell_task(
    crew: Name, task: Name, act: TaskAction, said: OperatorMessageIn, hub: Context, who: Actor,
    if_match: IfMatch = None, key: IdempotencyKey = None,
) -> ActionResult:  # fmt: skip
    """Say something to a task's worker (tell), or answer what it waits for, begin it again, end it."""
    about = f"{act} {crew}/{task}"
    return run_idempotent(
        hub, key, who, about, said, ActionResult, lambda: _tell(hub, crew, task, OperatorReply(act), said, who.name, if_match)
    )


def _tell(
    hub: AppContext, crew: str, task: str, how: OperatorReply, said: OperatorMessageIn, by: str, if_match: str | None
) -> ActionResult:  # fmt: skip
    if how is not OperatorReply.TELL and if_match is None:
        raise ApiProblem(428, "say which task you saw: the header If-Match with its ETag", field="If-Match")
    with hub.crews.open_table(crew) as table:
        if board.worker_task(table, task) is None:
            raise ApiProblem(404, f"there is no task {task[:100]!r} in the crew {crew}")
        try:
            row = reply_to_task(table, task, said.words, how, version=(if_match or "").removeprefix("W/").strip('"'))
        except IllegalTransition as error:
            raise ApiProblem(409, str(error)) from None
        except TaskChanged as error:
            raise ApiProblem(412, str(error), field="If-Match") from None
    trace(hub.journal, by, how.value, f"crew/{crew}/{task}", {"words": said.words, "state": row.state.value})
    return ActionResult(how="said", note=f"{task} is told" if how is OperatorReply.TELL else f"{task} is {row.state.value} now")


@router.post("/crews/{crew}/stop", status_code=202)
def stop_crew(crew: Name, wanted: StopIn, hub: Context, who: Actor, key: IdempotencyKey = None) -> ActionResult:
    """End a crew in order; or only its conductor, and another takes over."""
    return run_idempotent(hub, key, who, f"stop {crew}", wanted, ActionResult, lambda: _stop(hub, crew, wanted, who.name))


def _stop(hub: AppContext, crew: str, wanted: StopIn, by: str) -> ActionResult:
    with hub.crews.open_table(crew) as table:
        request_stop(table, wanted.why or "a person asked", hand_over=wanted.hand_over)
    trace(hub.journal, by, "stop", f"crew/{crew}", {"why": wanted.why, "hand_over": wanted.hand_over})
    return ActionResult(how="ordered", note="the conductor ends at its next look at the table")


# -- as it is sent ------------------------------------------------------------------------------------


def crew_out(hub: AppContext, name: str) -> CrewOut:
    """A crew; one whose table cannot be used says so itself."""
    place = hub.crews.location(name)
    try:
        with hub.crews.open_table(name) as table:
            head = board.load_header(table)
    except ApiProblem as problem:
        return CrewOut(
            name=name, place=place, trouble=problem.detail, conductor=None, watchdog=None, counts={}, tasks=0,
            for_person=0, facts={},
        )  # fmt: skip
    return CrewOut(
        name=name,
        place=place,
        trouble="",
        conductor=_leader(head.conductor),
        watchdog=_leader(head.watchdog),
        counts={state.value: number for state, number in head.counts.items() if number},
        tasks=head.tasks,
        for_person=head.for_person,
        facts=head.facts,
    )


def _leader(row: TaskRow | None) -> CoordinatorOut | None:
    if row is None:
        return None
    over = row.state in (TaskState.COMPLETE, TaskState.EXITED, TaskState.EXIT_REQUESTED)
    late = row.heartbeat_age is not None and row.heartbeat_age > CONDUCTOR_STALE
    return CoordinatorOut(state=row.state.value, heartbeat_at=parse_time(row.last_heartbeat), stale=late and not over)


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
            "warnings": row.warnings,
            "last_error": row.last_error,
            "report_path": row.report_path,
            "started_at": parse_time(row.started_at),
            "completed_at": parse_time(row.completed_at),
            "incident": opened.id if opened is not None else None,
            "can": [word.value for word in allowed_replies(row)],
            "messages": [_message(one) for one in messages],
            "workers": [
                WorkerProcessOut(
                    session=one.session_id,
                    launched_at=parse_time(one.launched_at),
                    ended_at=parse_time(one.ended_at),
                    exit_code=one.exit_code,
                    command=list(one.command),
                )
                for one in processes
            ],
            "story": timeline(events),
        }
    )


def _message(one: CrewMessageRow) -> CrewMessage:
    return CrewMessage(
        id=one.id, sender=one.from_session, kind=one.message_type.value, text=one.message, at=parse_time(one.timestamp)
    )


def parse_time(text: str | None) -> float | None:
    """A time of the table; nothing, where a stranger wrote what is none."""
    try:
        return datetime.fromisoformat(text or "").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
