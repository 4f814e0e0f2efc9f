"""Decisions that need judgement: made by built-in rules or by a command, with any model behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.adapters.system.placeholders import fill_placeholders
from rung.core.classify.evidence import clip
from rung.core.classify.guide.work import GUIDES
from rung.core.crew.contract import MAX_ERROR_TRIES
from rung.core.crew.error_triage import FixProposal
from rung.core.crew.evidence import evidence_gap
from rung.core.crew.review import approve, request_changes
from rung.core.text.quoted_data import quote_data
from rung.crew.helper_runs import PROMPT_PLACEHOLDER
from rung.crew.subagent import PERSON_STEP, REPLANNER_STEP, TIMEOUT_SECONDS, Question, unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.crew.learning import CrewLearning
    from rung.core.crew.plan import CrewPlan
    from rung.core.crew.review import ReviewRequest, ReviewVerdict
    from rung.core.domain.failures import Failure
    from rung.store.crew.rows import TaskRow

NewPlan = TypeVar("NewPlan")
_MAX_REPORT_CHARS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerError:
    """An error of a worker, with the context that a judge needs."""

    task: TaskRow
    failure: Failure
    report: str
    tries: int
    no_progress: bool = False
    learnings: tuple[CrewLearning, ...] = ()

    @property
    def known_fix(self) -> FixProposal | None:
        """Return the fix after which this error was resolved before; None if the crew has not seen it."""
        known = next((one for one in self.learnings if one.fix and one.fingerprint == self.failure.fingerprint), None)
        if known is None:
            return None
        outcome = f" Its worker reported: {known.outcome}" if known.outcome else ""
        return FixProposal(
            root_cause=f"the same error was resolved in {known.task}; its cause there: {known.root_cause}{outcome}",
            fix=known.fix,  # unchanged, so that a recovery with it is the same learning
            afterwards=f"continue with {self.task.task_id}, and run its tests before you request a review",
        )


class RuleJudgement:
    """Answers from the guide to failure kinds. It reads no code, so it never replans or finds a hidden cause."""

    def propose_fix(self, error: WorkerError) -> FixProposal | None:
        """Return the fix that resolved this error before, or else the guide's advice for its kind."""
        if error.known_fix is not None and not error.no_progress:
            return error.known_fix
        guide = GUIDES[error.failure.kind]
        advice = " ".join(guide.helps[:2])
        return FixProposal(
            root_cause=f"{guide.summary} The error:\n{quote_data(clip(error.failure.message or error.report, 300), 'error')}",
            fix=f"{advice} {guide.avoid}",
            afterwards=f"continue with {error.task.task_id}, and run its tests before you request a review",
        )

    def investigate(self, error: WorkerError) -> FixProposal | None:
        """Tell the worker to find the cause itself before it changes anything."""
        if error.no_progress or error.tries >= MAX_ERROR_TRIES:
            return None
        if error.known_fix is not None:
            return error.known_fix
        return FixProposal(
            root_cause="unknown; no other agent has investigated it",
            fix="Before you change anything, find the cause: reproduce the error, read the code it comes from, and "
            "state the cause and how you know it. Only then fix it. Do not try variations.",
            afterwards="if you cannot find the cause, report that as the next error, with what you have ruled out",
        )

    def review_work(self, task: TaskRow, review: ReviewRequest) -> str:  # noqa: ARG002  # the protocol's
        """Return a problem unless the request is complete and shows passing tests. A rule cannot read the work."""
        missing = f"the review request lacks {', '.join(review.missing)}" if review.missing else ""
        return evidence_gap(review.tests) or missing


class CommandJudgement:
    """Asks commands: JSON on standard input, JSON on standard output. Without a usable answer, `RuleJudgement` decides.

    Each method returns the question; the handler asks it.
    """

    def __init__(
        self,
        judge: Sequence[str] = (),
        replanner: Sequence[str] = (),
        reviewer: Sequence[str] = (),
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        for command in (judge, replanner, reviewer):
            fill_placeholders(command, {PROMPT_PLACEHOLDER: ""})  # refuses a question that would be code
        self._judge = tuple(judge)
        self._replanner = tuple(replanner)
        self._reviewer = tuple(reviewer)
        self._seconds = seconds
        self._rule = RuleJudgement()

    @classmethod
    def of_plan(cls, plan: CrewPlan | None) -> CommandJudgement:
        """Return the commands that a plan names."""
        if plan is None:
            return cls()
        review = plan.settings.review
        return cls(plan.settings.judge, plan.settings.replanner, () if isinstance(review, str) else review)

    @property
    def has_replanner(self) -> bool:
        """Return whether a command writes new plans."""
        return bool(self._replanner)

    @property
    def has_reviewer(self) -> bool:
        """Return whether a command reviews all work."""
        return bool(self._reviewer)

    @property
    def _after_judge(self) -> str:
        """Return who is asked where a rule cannot decide instead of the judge."""
        return REPLANNER_STEP if self._replanner else PERSON_STEP

    def propose_fix(self, error: WorkerError) -> Question[FixProposal | None]:
        """Return the question for a fix of an error whose cause is evident. The rule proposes one otherwise."""
        return Question(
            name="propose",
            command=self._judge,
            fields=_error_fields(error),
            parse=lambda answer: _parse_proposal(answer) or self._rule.propose_fix(error),
            otherwise=lambda: self._rule.propose_fix(error),
            next_step="the rule's fix",
            seconds=self._seconds,
        )

    def investigate(self, error: WorkerError) -> Question[FixProposal | None]:
        """Return the question for the cause of an error that is not evident. The rule decides only without a command."""
        return Question(
            name="investigate",
            command=self._judge,
            fields=_error_fields(error),
            parse=_parse_proposal,
            otherwise=lambda: None if self._judge else self._rule.investigate(error),
            next_step=self._after_judge,
            seconds=self._seconds,
        )

    def review_work(self, task: TaskRow, review: ReviewRequest) -> Question[str]:
        """Return the question what is wrong with the work; the answer is empty if it can be approved."""
        return Question(
            name="review",
            command=self._judge,
            fields={"task": task.task_id, "review": review.body()},
            parse=_parse_review,
            otherwise=lambda: self._rule.review_work(task, review),
            next_step="the rule's review",
            seconds=self._seconds,
        )

    def review(self, task: TaskRow, request: ReviewRequest, by_rule: ReviewVerdict) -> Question[ReviewVerdict | None]:
        """Return the question for the reviewer's verdict on a review request. No rule approves in its place."""

        def parse(answer: dict[str, Any]) -> ReviewVerdict:
            problem = _parse_review(answer)
            return request_changes(request, problem) if problem else approve(request)

        return Question(
            name="review",
            command=self._reviewer,
            fields={
                "task": task.task_id,
                "title": task.title,
                "instruction_path": task.instruction_path,
                "workdir": task.workdir,
                "checkpoint": request.checkpoint,
                "checkpoints": task.checkpoints,
                "cycle": task.review_cycles,
                "review": request.body(),
                "rules": {"decision": by_rule.decision.value, "reasons": list(by_rule.reasons)},
            },
            parse=parse,
            otherwise=lambda: None,
            next_step=self._after_judge,
            seconds=self._seconds,
        )

    def write_instructions(self, task: TaskRow, problem: str, check: Callable[[str], str]) -> Question[str | None]:
        """Return the question for the full text of new instructions of a task whose instructions cannot be used.

        `check` returns the text to use; it raises AttemptError for a text that is sent back.
        """
        return Question(
            name="instructions",
            command=self._judge,
            fields={"task": task.task_id, "title": task.title, "wrong": problem},
            parse=lambda answer: check(_parse_instructions(answer)),
            otherwise=lambda: None,
            next_step=self._after_judge,
            seconds=self._seconds,
        )

    def replan(
        self, task: TaskRow, blocker: str, current: Mapping[str, Any], check: Callable[[dict[str, Any]], NewPlan]
    ) -> Question[NewPlan | None]:
        """Return the question for a new plan. `current` describes the plan; `check` raises AttemptError for one it refuses."""

        def parse(answer: dict[str, Any]) -> NewPlan | None:
            plan = _required(answer, "plan")
            if plan is None:
                return None
            if not isinstance(plan, dict):
                raise unusable("`plan` must be the content of a plan.toml, or null if there is no better plan")
            return check(plan)

        return Question(
            name="replan",
            command=self._replanner,
            fields={"task": task.task_id, "blocker": blocker, **current},
            parse=parse,
            otherwise=lambda: None,
            next_step=PERSON_STEP,
            seconds=self._seconds,
            outlives_worker=True,
        )


def _error_fields(error: WorkerError) -> dict[str, Any]:
    return {
        "task": error.task.task_id,
        "title": error.task.title,
        "instruction_path": error.task.instruction_path,
        "kind": error.failure.kind.value,
        "report": clip(error.report, _MAX_REPORT_CHARS),
        "tries": error.tries,
        "no_progress": error.no_progress,
        "learnings": [one.line() for one in error.learnings],
    }


def _required(answer: dict[str, Any], key: str) -> Any:
    if key not in answer:
        raise unusable(f"the answer has no `{key}`")
    return answer[key]


def _parse_proposal(answer: dict[str, Any]) -> FixProposal | None:
    """Return the proposed fix; None if the answer says, by an empty `fix`, that there is none."""
    fix = _required(answer, "fix")
    if not fix:
        return None
    return FixProposal(
        root_cause=str(answer.get("root_cause") or "not stated"),
        fix=str(fix),
        afterwards=str(answer.get("afterwards") or "continue with the task"),
    )


def _parse_review(answer: dict[str, Any]) -> str:
    """Return what is wrong with the work; empty if it is approved."""
    is_approved = _required(answer, "approve")
    if not isinstance(is_approved, bool):
        raise unusable("`approve` must be true or false")
    return "" if is_approved else str(answer.get("reason") or "not approved; no reason was given")


def _parse_instructions(answer: dict[str, Any]) -> str:
    text = _required(answer, "instructions")
    if not isinstance(text, str) or not text.strip():
        raise unusable("`instructions` must be the full text of the instructions")
    return text
