"""The contract of a crew: task states, legal transitions and who may make them, and message types.

The triggers of the database are generated from these transitions, so that every store rejects illegal ones itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

CONDUCTOR: Final = "task-00"  # task id of the conductor's row, and its name as a sender
WATCHDOG: Final = "souffleur"  # task id of the watchdog's row, and its name as a sender
PERSON: Final = "person"  # a person's name as a sender
RESERVED: Final = (CONDUCTOR, WATCHDOG)  # task ids that no worker can claim
RESERVED_SENDERS: Final = (*RESERVED, PERSON)  # names as a sender that only the holder of the crew's key may use
FALLBACK_PREFIX: Final = "fallback-"  # of the task id of a session whose claim was blocked; the session id follows
CONTEXT_WARNING: Final = "context_exhaustion_warning"  # value of `last_error` that is not counted as an error
SHUTDOWN_PREFIX: Final = "the conductor ended:"  # of the note of a task whose healthy worker ended with the conductor
ASKS_PREFIX: Final = "asks:"  # of the note of a task that waits for a person
ESCALATED: Final = "escalated"  # outcome of a task that was given up for a person
STOP_KEY: Final = "stop"  # fact of the crew: why its conductor is to stop
STOPPED_KEY: Final = "stopped"  # fact of the crew: why its conductor has stopped, before its tasks had ended
HAND_OVER_PREFIX: Final = "hand over: "  # of that reason, if another conductor is to take over

HEARTBEAT_SECONDS: Final = 60.0  # between two heartbeats of a worker
STALE_SECONDS: Final = 540.0  # without a heartbeat until a worker is stale; a task can have its own limit
CONDUCTOR_STALE_SECONDS: Final = 240.0  # without a heartbeat until the conductor is replaced
MAX_ERROR_TRIES: Final = 5  # per task, in its lifetime
MAX_REVIEW_CYCLES: Final = 5  # per checkpoint
TASK_ID_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"  # task ids are file names, too
MAX_NAME_CHARS: Final = 200  # of a session
MAX_MESSAGE_BYTES: Final = 1_000_000
MAX_TEXT_BYTES: Final = 65_536  # of any other text that a worker writes


class TaskState(StrEnum):
    """State of a task. Only the conductor and the watchdog use reviewing, context_recovery and confirmed."""

    WATCHING = "watching"
    REVIEWING = "reviewing"
    EXIT_REQUESTED = "exit_requested"
    COMPLETE = "complete"
    WORKING = "working"
    NEEDS_REVIEW = "needs_review"
    REVIEW_APPROVED = "review_approved"
    REVIEW_FAILED = "review_failed"
    ERROR = "error"
    FIX_PROPOSED = "fix_proposed"
    EXITED = "exited"
    CONTEXT_RECOVERY = "context_recovery"
    CONFIRMED = "confirmed"


class MessageType(StrEnum):
    """Type of a message."""

    REVIEW_REQUEST = "review_request"
    ERROR = "error"
    CONTEXT_WARNING = "context_warning"
    COMPLETION = "completion"
    EMERGENCY = "emergency"
    HANDOFF = "handoff"
    APPROVAL = "approval"
    FIX_PROPOSAL = "fix_proposal"
    REJECTION = "rejection"
    INSTRUCTION = "instruction"
    CLAIM_BLOCKED = "claim_blocked"
    RESUMPTION = "resumption"
    SYSTEM = "system"
    WARNING = "warning"
    EXIT_REQUEST = "exit_request"


class Actor(StrEnum):
    """Role that may make a transition."""

    WORKER = "worker"
    CONDUCTOR = "conductor"
    WATCHDOG = "watchdog"


TERMINAL: Final = frozenset({TaskState.COMPLETE, TaskState.EXITED})
CLAIMABLE: Final = (TaskState.WATCHING, TaskState.FIX_PROPOSED, TaskState.EXIT_REQUESTED)
ANSWERED: Final = (
    TaskState.REVIEW_APPROVED,
    TaskState.REVIEW_FAILED,
    TaskState.FIX_PROPOSED,
)  # the conductor has answered, and the worker continues
OWNED: Final = (
    TaskState.WORKING,
    TaskState.NEEDS_REVIEW,
    TaskState.ERROR,
    TaskState.EXIT_REQUESTED,
    *ANSWERED,
)  # a session has the task
# Messages that only the session that has the task may send.
OWNER_ONLY_MESSAGES: Final = (
    MessageType.REVIEW_REQUEST,
    MessageType.ERROR,
    MessageType.CONTEXT_WARNING,
    MessageType.COMPLETION,
    MessageType.HANDOFF,
    MessageType.RESUMPTION,
)
# A worker sends one of these messages before it sets the state. An UPDATE does not tell who wrote it, its message does:
# the message of a former session is rejected, and so is the UPDATE that follows it, even without a transaction.
REPORTS: Final = {
    TaskState.NEEDS_REVIEW: (MessageType.REVIEW_REQUEST,),
    TaskState.ERROR: (MessageType.ERROR, MessageType.CONTEXT_WARNING),
}
# Messages that answer an error, a context warning or a review request.
ANSWER_MESSAGES: Final = (MessageType.APPROVAL, MessageType.FIX_PROPOSAL, MessageType.REJECTION)
# Messages that only the conductor and a person may send.
CONDUCTOR_ONLY_MESSAGES: Final = (
    MessageType.APPROVAL,
    MessageType.FIX_PROPOSAL,
    MessageType.REJECTION,
    MessageType.INSTRUCTION,
    MessageType.EXIT_REQUEST,
    MessageType.SYSTEM,
)


class TransitionGuard(StrEnum):
    """Condition under which a transition is legal."""

    ALWAYS = ""
    CLAIM = "claim"  # the claim names its session, and no live worker has the task
    OWNED = "owned"  # a session has the task
    APPROVED = "approved"  # a review has approved the task, without an error since
    STALE = "stale"  # no heartbeat for longer than the task allows
    WARNED = "warned"  # the error is a context warning
    REPORTED = "reported"  # its session has sent the message that belongs to the state, since the last change of state
    SPOKEN = "spoken"  # its session has sent a message about the task


_GUARD_TEXT: Final = {
    TransitionGuard.ALWAYS: "",
    TransitionGuard.CLAIM: " by a claim that names its session",
    TransitionGuard.OWNED: " that has the task",
    TransitionGuard.APPROVED: " once a review has approved it",
    TransitionGuard.STALE: " once its heartbeat is stale",
    TransitionGuard.WARNED: " in answer to a context warning",
    TransitionGuard.REPORTED: " that has the task, after its message",
    TransitionGuard.SPOKEN: " that has the task, after a message of its own",
}


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal change of state."""

    before: TaskState
    after: TaskState
    by: Actor
    guard: TransitionGuard = TransitionGuard.ALWAYS


def _worker_transitions() -> tuple[Transition, ...]:
    worker, conductor = Actor.WORKER, Actor.CONDUCTOR
    transitions = [
        *(Transition(before, TaskState.WORKING, worker, TransitionGuard.CLAIM) for before in CLAIMABLE),
        *(Transition(TaskState.WORKING, after, worker, TransitionGuard.REPORTED) for after in REPORTS),
        Transition(TaskState.WORKING, TaskState.COMPLETE, worker, TransitionGuard.APPROVED),
        *(
            Transition(TaskState.NEEDS_REVIEW, after, conductor)
            for after in (TaskState.REVIEW_APPROVED, TaskState.REVIEW_FAILED)
        ),
        *(
            Transition(TaskState.ERROR, after, conductor)
            for after in (TaskState.FIX_PROPOSED, TaskState.REVIEW_APPROVED, TaskState.EXIT_REQUESTED)
        ),
        Transition(
            TaskState.ERROR, TaskState.REVIEW_FAILED, conductor, TransitionGuard.WARNED
        ),  # older conductors stop a worker this way
        *(Transition(before, TaskState.WORKING, worker, TransitionGuard.OWNED) for before in ANSWERED),
        *(Transition(before, TaskState.NEEDS_REVIEW, worker, TransitionGuard.REPORTED) for before in ANSWERED),
        *(Transition(before, TaskState.EXITED, worker, TransitionGuard.SPOKEN) for before in OWNED),
        *(Transition(before, TaskState.EXITED, conductor) for before in TaskState if before not in TERMINAL),
    ]
    for after in (TaskState.FIX_PROPOSED, TaskState.WATCHING):
        transitions += [
            Transition(before, after, conductor, TransitionGuard.STALE)
            for before in TaskState
            if before not in {*TERMINAL, TaskState.WATCHING, after}
        ]
        transitions.append(Transition(TaskState.EXITED, after, conductor))
    return tuple(transitions)


def _transitions_from(by: Actor, table: dict[TaskState, tuple[TaskState, ...]]) -> tuple[Transition, ...]:
    return tuple(Transition(before, after, by) for before, afters in table.items() for after in afters)


_END_STATES: Final = (
    TaskState.EXIT_REQUESTED,
    TaskState.CONTEXT_RECOVERY,
    TaskState.COMPLETE,
    TaskState.ERROR,
    TaskState.EXITED,
)
WORKER_TRANSITIONS: Final = _worker_transitions()
CONDUCTOR_TRANSITIONS: Final = _transitions_from(
    Actor.CONDUCTOR,
    {
        TaskState.WATCHING: (TaskState.REVIEWING, *_END_STATES),
        TaskState.REVIEWING: (TaskState.WATCHING, *_END_STATES),
        TaskState.EXIT_REQUESTED: (TaskState.WATCHING, TaskState.COMPLETE, TaskState.EXITED),
        **dict.fromkeys(_END_STATES[1:], (TaskState.WATCHING,)),  # a new conductor starts
    },
)
WATCHDOG_TRANSITIONS: Final = _transitions_from(
    Actor.WATCHDOG,
    {
        TaskState.WATCHING: (TaskState.CONFIRMED, TaskState.ERROR, TaskState.EXITED, TaskState.COMPLETE),
        TaskState.CONFIRMED: (TaskState.WATCHING, TaskState.ERROR, TaskState.EXITED, TaskState.COMPLETE),
        TaskState.ERROR: (TaskState.WATCHING, TaskState.CONFIRMED, TaskState.EXITED),
        TaskState.EXITED: (TaskState.WATCHING,),
        TaskState.COMPLETE: (TaskState.WATCHING,),
    },
)


def transitions_of(task_id: str) -> tuple[Transition, ...]:
    """Return all legal transitions of the row with this task id."""
    return {CONDUCTOR: CONDUCTOR_TRANSITIONS, WATCHDOG: WATCHDOG_TRANSITIONS}.get(task_id, WORKER_TRANSITIONS)


@lru_cache(maxsize=256)
def legal_transitions(before: TaskState, task_id: str = "") -> tuple[Transition, ...]:
    """Return the legal transitions from a state. Without a reserved task id, they are those of a worker's task."""
    return tuple(transition for transition in transitions_of(task_id) if transition.before == before)


def illegal_transition_message(before: TaskState, task_id: str = "") -> str:
    """Return the error message for an illegal transition: it lists the legal ones and who may make them."""
    transitions = legal_transitions(before, task_id)
    if before == TaskState.COMPLETE and not task_id:
        return (
            "rung: complete is final: no transition is legal; work on a later problem is a new task, such as"
            " task-NN-fix (conductor)"
        )
    by_state: dict[TaskState, list[str]] = {}
    for transition in transitions:
        by_state.setdefault(transition.after, []).append(f"{transition.by}{_GUARD_TEXT[transition.guard]}")
    legal = ", ".join(f"{state} ({', or '.join(actors)})" for state, actors in by_state.items())
    subject = task_id or "the task"
    return f"rung: {subject} is {before}; legal from there: {legal or 'no transition'}"
