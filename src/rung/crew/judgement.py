"""Who judges where code cannot: a rule, a command (any model behind it), or a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.classify.evidence import clip
from rung.core.classify.guide.work import GUIDES
from rung.core.crew.contract import ERROR_TRIES
from rung.core.crew.error_triage import FixProposal
from rung.crew.subagent import SECONDS, ask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rung.core.crew.review import ReviewRequest
    from rung.core.domain.failures import Failure
    from rung.store.crew.rows import TaskRow

_KEPT: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerError:
    """An error of a worker, as it is put to whoever judges."""

    task: TaskRow
    failure: Failure
    report: str
    tries: int
    no_progress: bool = False


class Judgement(Protocol):
    """The questions that need judgement. None: cannot say, so the ladder climbs."""

    def propose(self, trouble: WorkerError) -> FixProposal | None:
        """A correction for something whose cause is plain."""
        ...

    def investigate(self, trouble: WorkerError) -> FixProposal | None:
        """The same for something whose cause has to be looked for, by a helper of its own."""
        ...

    def read_deeply(self, task: TaskRow, review: ReviewRequest) -> str:
        """What is wrong with the work, after reading it; nothing: it may pass."""
        ...

    def write_instructions(self, task: TaskRow, wrong: str) -> str | None:
        """The whole text of a task's instructions, written anew because they cannot be worked with."""
        ...

    def replan(self, task: TaskRow, blocker: str) -> dict[str, Any] | None:
        """A new plan, as plan.toml's table; None: there is no better one."""
        ...


class RuleJudgement:
    """What is known about each kind of failure. It reads no code, so it never replans and finds no hidden cause."""

    def propose(self, trouble: WorkerError) -> FixProposal | None:
        """What helps with this kind, and what does not."""
        guide = GUIDES[trouble.failure.kind]
        said = " ".join(guide.helps[:2])
        return FixProposal(
            root_cause=f"{guide.summary} It was: {clip(trouble.failure.message or trouble.report, 300)}",
            fix=f"{said} {guide.avoid}",
            afterwards=f"go on with {trouble.task.task_id}, and run its tests before you ask for a review",
        )

    def investigate(self, trouble: WorkerError) -> FixProposal | None:
        """Nobody to look for the cause: the worker itself is asked to, before it changes anything."""
        if trouble.no_progress or trouble.tries >= ERROR_TRIES:
            return None
        return FixProposal(
            root_cause="not known yet; nobody but you has looked at it",
            fix="Before changing anything, find the cause: reproduce the error, read the code it comes from, say what "
            "the cause is and how you know. Only then correct it. Do not try variations.",
            afterwards="if you cannot find the cause, report that as the next error, with what you have ruled out",
        )

    def read_deeply(self, task: TaskRow, review: ReviewRequest) -> str:  # noqa: ARG002  # the port's
        """A rule cannot read; what can be checked is whether what was promised is there."""
        return "" if review.tests and not review.missing else "the review does not say what was tested"

    def write_instructions(self, task: TaskRow, wrong: str) -> str | None:  # noqa: ARG002  # the port's
        """A rule has nothing to say about the task."""
        return None

    def replan(self, task: TaskRow, blocker: str) -> dict[str, Any] | None:  # noqa: ARG002  # the port's
        """A rule has no other plan."""
        return None


class CommandJudgement:
    """A command is asked: JSON on its standard input, JSON on its standard output. What it cannot say, the rule does."""

    def __init__(
        self,
        judge: Sequence[str] = (),
        replanner: Sequence[str] = (),
        *,
        seconds: float = SECONDS,
        report: Path | None = None,
    ) -> None:
        self._judge = list(judge)
        self._replanner = list(replanner)
        self._seconds = seconds
        self._report = report  # where a command that fails for good is written down
        self._rule = RuleJudgement()

    def propose(self, trouble: WorkerError) -> FixProposal | None:
        """The command's correction, or the rule's."""
        return _proposal(self._ask(self._judge, "propose", _facts(trouble))) or self._rule.propose(trouble)

    def investigate(self, trouble: WorkerError) -> FixProposal | None:
        """The command looks for the cause."""
        if not self._judge:
            return self._rule.investigate(trouble)
        return _proposal(self._ask(self._judge, "investigate", _facts(trouble)))

    def read_deeply(self, task: TaskRow, review: ReviewRequest) -> str:
        """The command reads the work."""
        said = self._ask(self._judge, "review", {"task": task.task_id, "review": review.body()})
        if said is None:
            return self._rule.read_deeply(task, review)
        return "" if said.get("approve") else str(said.get("reason") or "not approved, and no reason was given")

    def write_instructions(self, task: TaskRow, wrong: str) -> str | None:
        """The command writes them anew."""
        said = self._ask(self._judge, "instructions", {"task": task.task_id, "title": task.title, "wrong": wrong})
        text = (said or {}).get("instructions")
        return text if isinstance(text, str) and text.strip() else None

    def replan(self, task: TaskRow, blocker: str) -> dict[str, Any] | None:
        """The command's new plan."""
        said = self._ask(self._replanner, "replan", {"task": task.task_id, "blocker": blocker})
        plan = (said or {}).get("plan")
        return plan if isinstance(plan, dict) else None

    def _ask(self, command: Sequence[str], question: str, facts: dict[str, Any]) -> dict[str, Any] | None:
        """One answer; None where there is none one could use."""
        if not command:
            return None
        return ask(command, {"question": question, **facts}, seconds=self._seconds, report=self._report)


def _facts(trouble: WorkerError) -> dict[str, Any]:
    return {
        "task": trouble.task.task_id,
        "title": trouble.task.title,
        "instruction_path": trouble.task.instruction_path,
        "kind": trouble.failure.kind.value,
        "report": clip(trouble.report, _KEPT),
        "tries": trouble.tries,
        "no_progress": trouble.no_progress,
    }


def _proposal(said: dict[str, Any] | None) -> FixProposal | None:
    if not said or not said.get("fix"):
        return None
    return FixProposal(
        root_cause=str(said.get("root_cause") or "not said"),
        fix=str(said["fix"]),
        afterwards=str(said.get("afterwards") or "go on with the task"),
    )
