"""A crew's contract: the states of a task, who may move it where, the kinds of messages, and the words of a refusal.

The database itself refuses what is not legal here: its triggers are made from these moves, on every store.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

CONDUCTOR: Final = "task-00"  # the conductor's row, and its name as a sender
WATCHDOG: Final = "souffleur"  # the watchdog's
PERSON: Final = "person"  # a person's name as a sender
RESERVED: Final = (CONDUCTOR, WATCHDOG)  # in no worker's query
FALLBACK: Final = "fallback-"  # and a session: the row of one that did not get what it wanted to claim
CONTEXT_WARNING: Final = "context_exhaustion_warning"  # as `last_error`: no error, and never counted as one
ENDED_WITH_US: Final = "the conductor ended:"  # how the note of a task begins whose worker was well, and ended with it
ASKS: Final = "asks:"  # how the note of a task begins that waits for a person
ESCALATED: Final = "escalated"  # the outcome of a task that only a person can help
STOP: Final = "stop"  # a fact of the crew: why it is to end, and how
HAND_OVER: Final = "hand over: "  # how that begins when another conductor is to take over

BEAT: Final = 60.0  # seconds between two heartbeats
STALE: Final = 540.0  # seconds without one, after which a worker is looked for; each task may have its own
CONDUCTOR_STALE: Final = 240.0  # the same for the conductor
ERROR_TRIES: Final = 5  # of a task, for life
REVIEW_CYCLES: Final = 5  # of a checkpoint


class TaskState(StrEnum):
    """Where a task is. Three are the conductor's and the watchdog's own: reviewing, context_recovery, confirmed."""

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
    """What a message is about."""

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
    """Who may make a move."""

    WORKER = "worker"
    CONDUCTOR = "conductor"
    WATCHDOG = "watchdog"


TERMINAL: Final = frozenset({TaskState.COMPLETE, TaskState.EXITED})
CLAIMABLE: Final = (TaskState.WATCHING, TaskState.FIX_PROPOSED, TaskState.EXIT_REQUESTED)
ANSWERED: Final = (
    TaskState.REVIEW_APPROVED,
    TaskState.REVIEW_FAILED,
    TaskState.FIX_PROPOSED,
)  # it is the worker's turn
OWNED: Final = (
    TaskState.WORKING,
    TaskState.NEEDS_REVIEW,
    TaskState.ERROR,
    TaskState.EXIT_REQUESTED,
    *ANSWERED,
)  # somebody has it
# What only the session that has the task may say about it.
WORKERS_OWN: Final = (
    MessageType.REVIEW_REQUEST,
    MessageType.ERROR,
    MessageType.CONTEXT_WARNING,
    MessageType.COMPLETION,
    MessageType.HANDOFF,
    MessageType.RESUMPTION,
)


class TransitionGuard(StrEnum):
    """What has to be so, for a move to be legal."""

    ALWAYS = ""
    CLAIM = "claim"  # it names its session; and nobody alive has the task
    OWNED = "owned"  # somebody has the task
    APPROVED = "approved"  # a review has approved it, and nothing went wrong since
    STALE = "stale"  # no heartbeat for longer than the task allows
    WARNED = "warned"  # the error is a context warning


_WORDS: Final = {
    TransitionGuard.ALWAYS: "",
    TransitionGuard.CLAIM: " by a claim that names its session",
    TransitionGuard.OWNED: " who has it",
    TransitionGuard.APPROVED: " once a review has approved it",
    TransitionGuard.STALE: " once its heartbeat is stale",
    TransitionGuard.WARNED: " in answer to a context warning",
}


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal change of a state."""

    before: TaskState
    after: TaskState
    by: Actor
    condition: TransitionGuard = TransitionGuard.ALWAYS


def _worker_moves() -> tuple[Transition, ...]:
    worker, conductor = Actor.WORKER, Actor.CONDUCTOR
    moves = [
        *(Transition(before, TaskState.WORKING, worker, TransitionGuard.CLAIM) for before in CLAIMABLE),
        *(Transition(TaskState.WORKING, after, worker) for after in (TaskState.NEEDS_REVIEW, TaskState.ERROR)),
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
        ),  # how older conductors say "stop"
        *(
            Transition(before, after, worker, TransitionGuard.OWNED)
            for before in ANSWERED
            for after in (TaskState.WORKING, TaskState.NEEDS_REVIEW)
        ),
        *(Transition(before, TaskState.EXITED, worker, TransitionGuard.OWNED) for before in OWNED),
        *(Transition(before, TaskState.EXITED, conductor) for before in TaskState if before not in TERMINAL),
    ]
    for after in (TaskState.FIX_PROPOSED, TaskState.WATCHING):
        moves += [
            Transition(before, after, conductor, TransitionGuard.STALE)
            for before in TaskState
            if before not in {*TERMINAL, TaskState.WATCHING, after}
        ]
        moves.append(Transition(TaskState.EXITED, after, conductor))
    return tuple(moves)


def _own_moves(by: Actor, table: dict[TaskState, tuple[TaskState, ...]]) -> tuple[Transition, ...]:
    return tuple(Transition(before, after, by) for before, afters in table.items() for after in afters)


_ENDS: Final = (
    TaskState.EXIT_REQUESTED,
    TaskState.CONTEXT_RECOVERY,
    TaskState.COMPLETE,
    TaskState.ERROR,
    TaskState.EXITED,
)
MOVES: Final = _worker_moves()
CONDUCTOR_MOVES: Final = _own_moves(
    Actor.CONDUCTOR,
    {
        TaskState.WATCHING: (TaskState.REVIEWING, *_ENDS),
        TaskState.REVIEWING: (TaskState.WATCHING, *_ENDS),
        TaskState.EXIT_REQUESTED: (TaskState.WATCHING, TaskState.COMPLETE, TaskState.EXITED),
        **dict.fromkeys(_ENDS[1:], (TaskState.WATCHING,)),  # the next one begins anew
    },
)
WATCHDOG_MOVES: Final = _own_moves(
    Actor.WATCHDOG,
    {
        TaskState.WATCHING: (TaskState.CONFIRMED, TaskState.ERROR, TaskState.EXITED, TaskState.COMPLETE),
        TaskState.CONFIRMED: (TaskState.WATCHING, TaskState.ERROR, TaskState.EXITED, TaskState.COMPLETE),
        TaskState.ERROR: (TaskState.WATCHING, TaskState.CONFIRMED, TaskState.EXITED),
        TaskState.EXITED: (TaskState.WATCHING,),
        TaskState.COMPLETE: (TaskState.WATCHING,),
    },
)


def moves_of(task_id: str) -> tuple[Transition, ...]:
    """The legal moves of this row."""
    return {CONDUCTOR: CONDUCTOR_MOVES, WATCHDOG: WATCHDOG_MOVES}.get(task_id, MOVES)


@lru_cache(maxsize=256)
def legal(before: TaskState, task_id: str = "") -> tuple[Transition, ...]:
    """The moves from a state; of a worker's row, unless a reserved one is named."""
    return tuple(move for move in moves_of(task_id) if move.before == before)


def refusal(before: TaskState, task_id: str = "") -> str:
    """What is said when a move from this state is not legal: which are, and who may make them."""
    moves = legal(before, task_id)
    if before == TaskState.COMPLETE and not task_id:
        return "rung: complete is final: no move is legal; later trouble is a new task, as task-NN-fix (conductor)"
    after = dict.fromkeys(move.after for move in moves)
    ways = [
        f"{state} ({', or '.join(f'{move.by}{_WORDS[move.condition]}' for move in moves if move.after == state)})"
        for state in after
    ]
    whose = f"{task_id} is" if task_id else "the task is"
    return f"rung: {whose} {before}; legal from there: {', '.join(ways) or 'no move at all'}"
