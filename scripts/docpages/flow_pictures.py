"""Draw the path of a failure and the states of a crew's task, from the tables in the code."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, get_args

from docpages import drawing
from docpages.drawing import BLUE, GREEN, LINE, ORANGE, Box
from rung.core.classify.classifier import RULES
from rung.core.crew.contract import (
    ANSWERED,
    TERMINAL,
    WORKER_TRANSITIONS,
    Actor,
    TaskState,
    Transition,
    TransitionGuard,
)
from rung.core.domain import events
from rung.core.domain.events import Status
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

# What each decision does, in the order of the picture, and where it leads.
DECISIONS: Final = {
    events.Repeat: ("wait, repeat", "attempt"),
    events.Change: ("change the request", "attempt"),
    events.HandOver: ("other model or agent", "attempt"),
    events.Ask: ("a person decides", "attempt"),
    events.Finish: ("nothing left helps", "outcome"),
}


def pictures() -> dict[str, str]:
    """Return the path and SVG of both pictures."""
    if set(DECISIONS) != set(get_args(events.Decision)):
        raise ValueError("docpages/flow_pictures.py does not have every decision")
    return {
        "pictures/failure-path.svg": drawing.picture("The path of a failure", 860, 300, _path()),
        "pictures/crew-states.svg": drawing.picture("States of a crew's task", 860, 400, _states()),
    }


def _path() -> Iterator[str]:
    boxes = (
        Box(20, 30, 180, 70, "Attempt", ("your function, command", "or model call")),
        Box(240, 30, 180, 70, "Failure", (f"one of {len(Kind)} kinds, by the", f"first of {len(RULES)} rules")),
        Box(460, 30, 180, 70, "Decision", ("cheapest rung that can", "help within the budgets")),
        Box(680, 30, 160, 70, "Journal", ("written down before", "it is carried out")),
    )
    for box in boxes:
        yield box.draw()
    for left, right in pairwise(boxes):
        yield drawing.arrow([(left.x + left.width, 65), (right.x - 2, 65)])
    yield drawing.text("fails", 220, 57, anchor="middle", style="pale")
    yield drawing.arrow([(766, 100), (766, 130), (94, 130), (94, 152)])
    for place, (decision, (does, leads)) in enumerate(DECISIONS.items()):
        x = 20 + 168 * place
        ends = leads == "outcome"
        yield Box(x, 154, 148, 54, decision.__name__, (does,), ORANGE if ends else GREEN).draw()
        if place:
            yield drawing.arrow([(x + 74, 130), (x + 74, 152)])
        if not ends:
            yield f'<line x1="{x + 74}" y1="208" x2="{x + 74}" y2="238" stroke="{GREEN}" stroke-width="1.6"/>'
    yield drawing.arrow([(598, 238), (8, 238), (8, 65), (18, 65)], colour=GREEN)
    yield drawing.text("the next attempt", 20, 256, style="pale")
    yield drawing.arrow([(766, 208), (766, 248)], colour=ORANGE)
    yield drawing.text("Outcome: " + ", ".join(Status), 840, 266, anchor="end", style="name")
    yield drawing.text(
        "with what was done, what failed, and what a person should do", 840, 285, anchor="end", style="pale"
    )


NODES: Final = {
    TaskState.WATCHING: (20, 40),
    TaskState.WORKING: (240, 40),
    TaskState.COMPLETE: (460, 40),
    TaskState.EXITED: (690, 40),
    TaskState.NEEDS_REVIEW: (290, 150),
    TaskState.ERROR: (500, 150),
    TaskState.REVIEW_APPROVED: (60, 270),
    TaskState.REVIEW_FAILED: (240, 270),
    TaskState.FIX_PROPOSED: (420, 270),
    TaskState.EXIT_REQUESTED: (690, 270),
}
# Single transitions: where the arrow starts and ends.
ARROWS: Final = {
    (TaskState.WATCHING, TaskState.WORKING): ((170, 60), (238, 60)),
    (TaskState.WORKING, TaskState.COMPLETE): ((390, 60), (458, 60)),
    (TaskState.WORKING, TaskState.NEEDS_REVIEW): ((330, 80), (350, 148)),
    (TaskState.WORKING, TaskState.ERROR): ((375, 80), (545, 148)),
    (TaskState.NEEDS_REVIEW, TaskState.REVIEW_APPROVED): ((310, 190), (170, 268)),
    (TaskState.NEEDS_REVIEW, TaskState.REVIEW_FAILED): ((345, 190), (325, 268)),
    (TaskState.ERROR, TaskState.REVIEW_APPROVED): ((515, 190), (200, 268)),
    (TaskState.ERROR, TaskState.REVIEW_FAILED): ((540, 190), (370, 268)),
    (TaskState.ERROR, TaskState.FIX_PROPOSED): ((570, 190), (510, 268)),
    (TaskState.ERROR, TaskState.EXIT_REQUESTED): ((620, 190), (740, 268)),
    (TaskState.EXIT_REQUESTED, TaskState.WORKING): ((790, 268), (790, 112), (430, 112), (388, 82)),
}


def _states() -> Iterator[str]:
    drawn = {pair for pair in ARROWS if pair[0] is not TaskState.EXIT_REQUESTED or _claims(pair)}
    by = {(each.before, each.after): each for each in WORKER_TRANSITIONS}
    _check_all_are_drawn(drawn)
    yield '<rect x="40" y="250" width="560" height="80" rx="10" fill="none" stroke="#9aa5b1" stroke-dasharray="3 4"/>'
    yield drawing.text("answers of the conductor", 50, 346, style="pale")
    for pair, points in ARROWS.items():
        each = by[pair]
        dashed = each.guard is TransitionGuard.WARNED
        yield drawing.arrow(points, colour=BLUE if each.by is Actor.WORKER else ORANGE, dashed=dashed)
    yield drawing.arrow([(80, 250), (80, 100), (250, 82)], colour=BLUE)  # every answer → working
    yield drawing.text("resume", 88, 180, style="pale")
    yield drawing.arrow([(420, 250), (420, 192)], colour=BLUE)  # every answer → needs_review
    yield drawing.arrow([(640, 60), (688, 60)], colour=ORANGE, dashed=True)
    yield drawing.text("from any", 664, 34, anchor="middle", style="pale")
    yield drawing.text("state", 664, 48, anchor="middle", style="pale")
    for state, (x, y) in NODES.items():
        colour = GREEN if state is TaskState.COMPLETE else LINE
        yield Box(x, y, 150, 40, str(state), (), colour, "#e3f5ec" if state is TaskState.COMPLETE else "#f5f7fa").draw()
    yield drawing.text("claim", 204, 52, anchor="middle", style="pale")
    yield drawing.text("approved", 424, 52, anchor="middle", style="pale")
    yield f'<line x1="20" y1="376" x2="50" y2="376" stroke="{BLUE}" stroke-width="2"/>'
    yield drawing.text("by the worker", 56, 380, style="pale")
    yield f'<line x1="150" y1="376" x2="180" y2="376" stroke="{ORANGE}" stroke-width="2"/>'
    yield drawing.text("by the conductor", 186, 380, style="pale")
    yield drawing.text(
        "A task that exited, or whose worker is silent for too long,", 840, 372, anchor="end", style="pale"
    )
    yield drawing.text("returns to watching or fix_proposed.", 840, 388, anchor="end", style="pale")


def _claims(pair: tuple[TaskState, TaskState]) -> bool:
    return any((each.before, each.after) == pair and each.guard is TransitionGuard.CLAIM for each in WORKER_TRANSITIONS)


def _check_all_are_drawn(drawn: set[tuple[TaskState, TaskState]]) -> None:
    """Raise ValueError if a legal transition is neither an arrow nor covered by a note, or an arrow is not legal."""
    legal = {(each.before, each.after) for each in WORKER_TRANSITIONS}
    rest = {(each.before, each.after) for each in WORKER_TRANSITIONS if not _is_noted(each)} - drawn
    wrong = (
        drawn - legal
        | {(state, after) for state in ANSWERED for after in (TaskState.WORKING, TaskState.NEEDS_REVIEW)} - legal
    )
    if rest or wrong:
        raise ValueError(
            f"docpages/flow_pictures.py: transitions {sorted(rest)} are missing, {sorted(wrong)} are not legal"
        )


def _is_noted(each: Transition) -> bool:
    """Return whether a note or a group's arrow stands for the transition."""
    from_answer = each.before in ANSWERED and each.after in (TaskState.WORKING, TaskState.NEEDS_REVIEW)
    exits = each.after is TaskState.EXITED and each.before not in TERMINAL
    returns = each.guard is TransitionGuard.STALE or each.before is TaskState.EXITED
    return from_answer or exits or returns
