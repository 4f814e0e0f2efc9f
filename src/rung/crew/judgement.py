"""Decisions that need judgement: made by built-in rules or by a command, with any model behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.adapters.system.placeholders import fill_placeholders
from rung.core.classify.evidence import clip
from rung.core.classify.guide.work import GUIDES
from rung.core.crew.contract import MAX_ERROR_TRIES
from rung.core.crew.error_triage import FixProposal
from rung.core.text.quoted_data import quote_data
from rung.crew.subagent import PROMPT_PLACEHOLDER, TIMEOUT_SECONDS, ask_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rung.core.crew.review import ReviewRequest
    from rung.core.domain.failures import Failure
    from rung.store.crew.rows import TaskRow

_MAX_REPORT_CHARS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerError:
    """An error of a worker, with the context that a judge needs."""

    task: TaskRow
    failure: Failure
    report: str
    tries: int
    no_progress: bool = False


class Judgement(Protocol):
    """The decisions that need judgement. None means "no answer", and the ladder climbs."""

    def propose_fix(self, error: WorkerError) -> FixProposal | None:
        """Return a fix for an error whose cause is evident."""
        ...

    def investigate(self, error: WorkerError) -> FixProposal | None:
        """Find the cause of an error that is not evident. Return a fix for it."""
        ...

    def review_work(self, task: TaskRow, review: ReviewRequest) -> str:
        """Read the work and return what is wrong with it; empty if it can be approved."""
        ...

    def write_instructions(self, task: TaskRow, problem: str) -> str | None:
        """Return the full text of new instructions for a task whose instructions cannot be used."""
        ...

    def replan(self, task: TaskRow, blocker: str) -> dict[str, Any] | None:
        """Return a new plan as the content of a plan.toml, or None if there is no better plan."""
        ...


class RuleJudgement:
    """Answers from the guide to failure kinds. It reads no code, so it never replans or finds a hidden cause."""

    def propose_fix(self, error: WorkerError) -> FixProposal | None:
        """Return the guide's advice for the error's kind."""
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
        return FixProposal(
            root_cause="unknown; no other agent has investigated it",
            fix="Before you change anything, find the cause: reproduce the error, read the code it comes from, and "
            "state the cause and how you know it. Only then fix it. Do not try variations.",
            afterwards="if you cannot find the cause, report that as the next error, with what you have ruled out",
        )

    def review_work(self, task: TaskRow, review: ReviewRequest) -> str:  # noqa: ARG002  # the protocol's
        """Return a problem if the request says nothing about tests or lacks a field. A rule cannot read the work."""
        return "" if review.tests and not review.missing else "the review request does not say what was tested"

    def write_instructions(self, task: TaskRow, problem: str) -> str | None:  # noqa: ARG002  # the protocol's
        """Return None: a rule cannot write instructions."""
        return None

    def replan(self, task: TaskRow, blocker: str) -> dict[str, Any] | None:  # noqa: ARG002  # the protocol's
        """Return None: a rule has no other plan."""
        return None


class CommandJudgement:
    """Asks a command: JSON on its standard input, JSON on its standard output. Falls back to `RuleJudgement`."""

    def __init__(
        self,
        judge: Sequence[str] = (),
        replanner: Sequence[str] = (),
        *,
        seconds: float = TIMEOUT_SECONDS,
        report: Path | None = None,
    ) -> None:
        for command in (judge, replanner):
            fill_placeholders(command, {PROMPT_PLACEHOLDER: ""})  # refuses a question that would be code
        self._judge = list(judge)
        self._replanner = list(replanner)
        self._seconds = seconds
        self._report = report  # file that records questions without an answer
        self._rule = RuleJudgement()

    def propose_fix(self, error: WorkerError) -> FixProposal | None:
        """Return the command's fix, or else the rule's."""
        answer = self._ask(self._judge, "propose", _error_fields(error))
        return _parse_proposal(answer) or self._rule.propose_fix(error)

    def investigate(self, error: WorkerError) -> FixProposal | None:
        """Return the command's fix after its investigation; the rule's only where there is no command."""
        if not self._judge:
            return self._rule.investigate(error)
        return _parse_proposal(self._ask(self._judge, "investigate", _error_fields(error)))

    def review_work(self, task: TaskRow, review: ReviewRequest) -> str:
        """Return what the command found wrong with the work, or else what the rule did."""
        answer = self._ask(self._judge, "review", {"task": task.task_id, "review": review.body()})
        if answer is None:
            return self._rule.review_work(task, review)
        return "" if answer.get("approve") else str(answer.get("reason") or "not approved; no reason was given")

    def write_instructions(self, task: TaskRow, problem: str) -> str | None:
        """Return the command's instructions."""
        answer = self._ask(self._judge, "instructions", {"task": task.task_id, "title": task.title, "wrong": problem})
        text = (answer or {}).get("instructions")
        return text if isinstance(text, str) and text.strip() else None

    def replan(self, task: TaskRow, blocker: str) -> dict[str, Any] | None:
        """Return the replanner command's new plan."""
        answer = self._ask(self._replanner, "replan", {"task": task.task_id, "blocker": blocker})
        plan = (answer or {}).get("plan")
        return plan if isinstance(plan, dict) else None

    def _ask(self, command: Sequence[str], question: str, fields: dict[str, Any]) -> dict[str, Any] | None:
        """Return the command's answer, or None if it gives no usable one."""
        if not command:
            return None
        return ask_command(command, {"question": question, **fields}, seconds=self._seconds, report=self._report)


def _error_fields(error: WorkerError) -> dict[str, Any]:
    return {
        "task": error.task.task_id,
        "title": error.task.title,
        "instruction_path": error.task.instruction_path,
        "kind": error.failure.kind.value,
        "report": clip(error.report, _MAX_REPORT_CHARS),
        "tries": error.tries,
        "no_progress": error.no_progress,
    }


def _parse_proposal(answer: dict[str, Any] | None) -> FixProposal | None:
    if not answer or not answer.get("fix"):
        return None
    return FixProposal(
        root_cause=str(answer.get("root_cause") or "not stated"),
        fix=str(answer["fix"]),
        afterwards=str(answer.get("afterwards") or "continue with the task"),
    )
