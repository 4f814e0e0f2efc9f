"""Questions to a helper command: JSON in, JSON out, recovered on the `helper` ladder, counted in the crew's table.

A handler that asks is a generator: it yields each run of the command and is resumed with its result, so that the conductor
never waits for a helper. `None` instead of a run means: resume me in the next turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from rung.core.classify.evidence import clip
from rung.core.crew.helper_report import helper_report
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError, AttemptTimeout
from rung.core.domain.event_codec import from_json, to_json
from rung.core.domain.failures import GROUPS, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.policy.presets import HELPER
from rung.core.policy.templates import preset
from rung.core.text.json_in_text import find_json_object
from rung.crew.helper_runs import HelperRun, RunningHelper
from rung.engine.external_loop import ExternalRecovery

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.crew.context import ConductorContext
    from rung.store.crew.rows import TaskRow

T = TypeVar("T")
Asking: TypeAlias = Generator[HelperRun | None, RunningHelper | None, T]

TIMEOUT_SECONDS: Final = 900.0
QUESTION_FACT: Final = (
    "question/"  # fact of the crew; question and task id follow: how often it was asked, and what failed
)
NOT_RUNNABLE_EXIT_CODES: Final = (126, 127)  # of a shell: program not executable, program not found
MAX_NOTE_CHARS: Final = 2_000  # of an error that is added to the question
REPLANNER_STEP: Final = "the replanner"
PERSON_STEP: Final = "a person decides"
REPORT_FILE: Final = "escalations/helpers.md"
_POLICY: Final = preset(HELPER, "helper").replace(report="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    """A question about a task. `parse` raises AttemptError if an answer is of no use; `otherwise` answers instead."""

    name: str
    command: tuple[str, ...]  # empty: `otherwise` answers
    fields: dict[str, Any]
    parse: Callable[[dict[str, Any]], T]
    otherwise: Callable[[], T]
    next_step: str  # that follows if the command gives no usable answer, for the report
    seconds: float = TIMEOUT_SECONDS  # time limit of one run
    outlives_worker: bool = False


def unusable(problem: str) -> AttemptError:
    """Return the error for an answer that is JSON, but of no use. The next question contains it."""
    return AttemptError(problem, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)


def ask(crew: ConductorContext, task: TaskRow, question: Question[T]) -> Asking[T]:
    """Ask a command at most three times, whatever fails, also over several conductors. Return its answer, or the other one.

    A transient failure is asked again unchanged, after a backoff. Any other error is added to the question; one that was
    already added is not asked again.
    """
    if not question.command:
        return question.otherwise()
    dialogue = _Dialogue.load(crew, task, question.name)
    while not dialogue.is_over:
        run = HelperRun(
            command=question.command,
            prompt=json.dumps({"question": question.name, **question.fields, **dialogue.notes}),
            seconds=question.seconds,
            delay=dialogue.wait,
            outlives_worker=question.outlives_worker,
        )
        dialogue.begin()
        helper = yield run
        try:
            answer = question.parse(_parse_output(helper))
        except (AttemptError, AttemptTimeout) as error:
            dialogue.failed(error)
        else:
            dialogue.clear()
            return answer
    may_replan = crew.consultations() < crew.settings.max_consultations
    is_true = question.next_step != REPLANNER_STEP or may_replan
    dialogue.report(question.command[0], question.next_step if is_true else PERSON_STEP)
    return question.otherwise()


def _parse_output(helper: RunningHelper | None) -> dict[str, Any]:
    """Return the answer of a run that has ended; raises the error of a run without one."""
    assert helper is not None  # noqa: S101  # a generator that yielded a run is resumed with it
    if helper.error is not None:
        raise helper.error
    answer = find_json_object(helper.output)
    if answer is None:
        raise AttemptError(
            "the answer is not a JSON object",
            finding=Kind.MALFORMED_OUTPUT,
            phase=Phase.RESULT,
            output=clip(helper.output, 4_096),
        )
    return answer


@dataclass(slots=True, kw_only=True)
class _Dialogue:
    """The runs of one question, stored as a fact of the crew before each of them."""

    crew: ConductorContext
    task_id: str
    question: str
    key: str  # of the error or review that the question is about
    asked: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)  # corrections that the next question contains
    is_over: bool = False
    is_reported: bool = False
    wait: float = 0.0

    @classmethod
    def load(cls, crew: ConductorContext, task: TaskRow, question: str) -> _Dialogue:
        """Return the stored dialogue if it is about the same error or review, else a new one."""
        key = f"{task.generation}/{task.error_tries}/{task.reviews_approved}/{task.checkpoint}/{task.review_cycles}"
        dialogue = cls(crew=crew, task_id=task.task_id, question=question, key=key)
        stored = json.loads(crew.table.get_fact(dialogue._fact) or "{}")
        if stored.get("key") == key:
            dialogue.asked, dialogue.events, dialogue.notes = stored["asked"], stored["events"], stored["notes"]
            dialogue.is_over, dialogue.is_reported = stored["is_over"], stored["is_reported"]
            if dialogue.asked > len(dialogue._failures()) and not dialogue.is_over:
                text = "the conductor ended while the helper was at work"
                dialogue.failed(AttemptError(text, finding=Kind.STREAM_INTERRUPTED))
        return dialogue

    @property
    def _fact(self) -> str:
        return f"{QUESTION_FACT}{self.question}/{self.task_id}"

    def begin(self) -> None:
        """Count a run, before it starts."""
        self.asked += 1
        self._store()

    def failed(self, error: AttemptError | AttemptTimeout) -> None:
        """Record a failed run and decide on the next one."""
        recovery = ExternalRecovery(
            _POLICY,
            events=[from_json(event) for event in self.events],
            now=self.crew.now,
            jitter=self.crew.jitter,
        )
        decision = recovery.failed(error)
        self.events = [to_json(event) for event in recovery.events]
        if isinstance(decision, ev.Repeat):
            self.wait = decision.wait
        else:
            note = correction(recovery.incident.failures) if _is_fix(decision) else {}
            self.wait, self.is_over = 0.0, not note
            self.notes = {**self.notes, **note}
        self._store()

    def clear(self) -> None:
        """Forget the dialogue: the question is answered."""
        self.crew.table.set_fact(self._fact, "")

    def report(self, program: str, next_step: str) -> None:
        """Append the report about the unanswered question, once."""
        if self.is_reported:
            return
        text = helper_report(
            question=self.question,
            task=self.task_id,
            program=program,
            failures=self._failures(),
            next_step=next_step,
        )
        file = self.crew.runtime_dir / REPORT_FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as report:
            report.write(text)
        self.crew.log(f"{self.task_id}: the question {self.question!r} was not answered; next: {next_step}")
        self.is_reported = True
        self._store()

    def _failures(self) -> tuple[Failure, ...]:
        events = (from_json(event) for event in self.events)
        return tuple(event.failure for event in events if isinstance(event, ev.AttemptFailed))

    def _store(self) -> None:
        names = ("key", "asked", "events", "notes", "is_over", "is_reported")
        self.crew.table.set_fact(self._fact, json.dumps({name: getattr(self, name) for name in names}))


def _is_fix(decision: ev.Decision) -> bool:
    return isinstance(decision, ev.Change) and decision.action is Action.FIX


def correction(failures: tuple[Failure, ...]) -> dict[str, str]:
    """Return what the next question says about the last error.

    Nothing if an earlier question already said it, or if the command cannot be run at all: another run would fail again.
    """
    *earlier, failure = failures
    is_runnable = failure.evidence.exit_code not in NOT_RUNNABLE_EXIT_CODES
    if not is_runnable or any(_is_same(failure, one) for one in earlier):
        return {}
    note = f"{failure.kind}: {clip(failure.message.strip(), MAX_NOTE_CHARS)}"
    return {"look_up" if failure.kind in GROUPS["request"] else "correction": note}


def _is_same(one: Failure, other: Failure) -> bool:
    """Return whether two failures are the same. What is wrong with an answer is compared with its names and numbers."""
    return one.fingerprint == other.fingerprint and (
        one.kind is not Kind.MALFORMED_OUTPUT or one.message == other.message
    )
