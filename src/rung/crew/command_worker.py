"""Runs an ordinary command as a worker: heartbeats, error reports, review requests and completion for it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rung.adapters.system.agent_sessions.agent_sessions import AgentSessions
from rung.adapters.system.foreground import has_terminal
from rung.adapters.system.placeholders import fill_placeholders
from rung.adapters.system.process import RECOVERY_PLACEHOLDER, RunningProcess, run_command
from rung.core.classify.classifier import classify
from rung.core.classify.evidence import clip
from rung.core.crew.contract import TaskState
from rung.core.crew.error_triage import ErrorReport
from rung.core.crew.evidence import NO_CHECK
from rung.core.crew.review import ReviewRequest, reviews_left
from rung.core.crew.service_trouble import hand_back_text, trouble_of
from rung.core.domain.errors import AttemptError, PoolUnavailable
from rung.core.domain.failures import first_line
from rung.crew.instruction_file import full_instructions
from rung.crew.worker_sessions import WorkerSessions
from rung.engine.local_zone import local_zone
from rung.engine.process_identity import group_cpu_seconds
from rung.store.crew.worker import GENERATION_VARIABLE, SESSION_VARIABLE, TABLE_VARIABLE, TASK_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.adapters.system.agent_sessions.agent_sessions import SessionCommand
    from rung.store.crew.worker import CrewWorker

INSTRUCTION_PLACEHOLDER: Final = "{instruction}"
POLL_SECONDS: Final = 0.2
UNTESTED_SMOOTHNESS: Final = 5  # the grade that needs a full review
TESTED_SMOOTHNESS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWorker:
    """Works on a task by running a command.

    A known agent continues its own session in every run but the first. The work counts as tested if the command
    `check`, which runs without a shell, exits with 0. `poll` is the number of seconds between heartbeats, and between
    polls for an answer.
    """

    command: Sequence[str]
    check: str = ""
    poll: float = 2.0
    sessions: AgentSessions | None = None  # None: the agent starts afresh in every run
    show_output: Callable[[bytes], object] = lambda _: None  # gets the command's output as it comes
    show_errors: Callable[[bytes], object] = lambda _: None

    def __post_init__(self) -> None:
        fill_placeholders(self.command, {INSTRUCTION_PLACEHOLDER: "", RECOVERY_PLACEHOLDER: ""})  # refuses text as code

    def work(self, worker: CrewWorker) -> None:
        """Run the command until a review approves its work. An exception hands the task over.

        After the approval of a checkpoint, the command runs again: it is told which review is the next one.

        If the service behind the command is unavailable, PoolUnavailable hands the task back: the process ends, and the
        conductor starts another one when the pool of the task opens.
        """
        prompt = self._instructions(worker)
        log = None
        if self.sessions is not None:
            log = WorkerSessions(worker.table.location, worker.task_id, is_first=worker.claim.generation <= 1)
            log.instruct(prompt)
        while True:
            output = ""
            try:
                output = self._run_in_session(worker, prompt, log)
            except AttemptError as error:
                if log is not None:
                    log.failed(classify(error.evidence))
                _hand_back_if_unavailable(error)
                _report_error(worker, error)
            else:
                self._request_review(worker, output)
            answer = worker.wait_for_answer(poll=self.poll)
            task = worker.table.require_task(worker.task_id)
            left = reviews_left(task.checkpoints, task.reviews_approved)
            if answer.state is TaskState.REVIEW_APPROVED and task.approved and not left:
                worker.complete(f"TASK COMPLETE\n{clip(output, 500)}")
                if log is not None:
                    log.forget()
                return
            instructions = self._instructions(worker)
            reply = answer.text if left in answer.text else f"{answer.text}\n{left}."
            prompt = f"{reply}\n\n{instructions}"
            if log is not None:
                log.instruct(instructions, reply)

    def _instructions(self, worker: CrewWorker) -> str:
        """Return everything that the worker is told, with the text of the instruction file."""
        return full_instructions(worker.table, worker.table.require_task(worker.task_id))

    def _run_in_session(self, worker: CrewWorker, prompt: str, log: WorkerSessions | None) -> str:
        """Run the command in the session of its agent, and return its output."""
        sessions = self.sessions or AgentSessions()
        command = sessions.continued(self.command, log)
        try:
            return self._run(worker, prompt, command)
        except AttemptError as error:
            instead = sessions.replacement(self.command, command, error, log)
            if instead is None:
                raise
        return self._run(worker, prompt, instead)

    def _run(self, worker: CrewWorker, prompt: str, command: SessionCommand) -> str:
        """Run the command once and return its output. The amount of output is reported as progress."""
        prompt = prompt if command.prompt is None else command.prompt
        values = {INSTRUCTION_PLACEHOLDER: prompt, RECOVERY_PLACEHOLDER: prompt}
        arguments, variables = fill_placeholders(command.words, values)
        printed_bytes = 0

        def counted(show: Callable[[bytes], object]) -> Callable[[bytes], None]:
            def count(chunk: bytes) -> None:
                nonlocal printed_bytes
                printed_bytes += len(chunk)
                with suppress(OSError):  # a full disk or a closed pipe does not end the work
                    show(chunk)

            return count

        # Under a conductor the command stays in this process group, so that a signal to the worker's group ends it too. In a
        # terminal it does not: Ctrl-C goes to the whole group, and the worker ends its command before it hands over.
        shows = command.show("output", counted(self.show_output)), command.show("errors", counted(self.show_errors))
        environment = {**os.environ, **variables, **_lease_variables(worker)}
        run = RunningProcess(
            arguments, prompt, *shows, own_group=has_terminal(), is_agent=command.records_steps, env=environment
        )
        try:
            last_beat = time.monotonic()
            while run.process.poll() is None:
                time.sleep(POLL_SECONDS)
                if time.monotonic() - last_beat >= self.poll:
                    last_beat = time.monotonic()
                    cpu_seconds = group_cpu_seconds(os.getpgid(run.process.pid))
                    worker.beat(f"{printed_bytes} bytes of output, {cpu_seconds} s of processor time")
        except BaseException:  # lease lost, or asked to stop
            run.terminate()
            raise
        try:
            return run.result()
        finally:
            command.finish()

    def _request_review(self, worker: CrewWorker, output: str) -> None:
        """Request a review of the output, unless the command itself has reported something."""
        task = worker.table.require_task(worker.task_id)
        if task.state is TaskState.WORKING:
            checkpoint = task.reviews_approved + 1
            worker.review(self._review_request(output, checkpoint), checkpoint=checkpoint)

    def _review_request(self, output: str, checkpoint: int) -> str:
        """Return the output if it is a complete review request, else a request of our own. `check` has the last word."""
        request = ReviewRequest.parse(output)
        is_complete = request.smoothness is not None and not request.missing
        if is_complete and not self.check:
            return output
        tests, passed = self._test()
        if is_complete:
            return replace(request, checkpoint=checkpoint, tests=tests).body()
        return ReviewRequest(
            checkpoint=checkpoint,
            context=0.0,
            self_correction=False,
            deviations="none known",
            agents_remaining="0",
            proposal="N/A",
            summary=clip(output.strip(), 500) or "no output",
            files_modified="not counted",
            tests=tests,
            smoothness=TESTED_SMOOTHNESS if passed else UNTESTED_SMOOTHNESS,
            reason="the command ended with exit code 0",
            key_outputs="see the worker's log",
        ).body()

    def _test(self) -> tuple[str, bool]:
        """Run `check`. Return its result as a text that reviews understand, and whether it passed."""
        if not self.check:
            return NO_CHECK, False
        code = run_command(self.check).code
        named = "`" + self.check.replace("`", "'") + "`"
        return (f"{named} passes", True) if code == 0 else (f"failed with exit code {code}: {named}", False)


def _report_error(worker: CrewWorker, error: AttemptError) -> None:
    """Report that the command failed, unless the command itself has reported something, which may be answered already."""
    task = worker.table.require_task(worker.task_id)
    if task.state is not TaskState.WORKING:
        return
    code, phase = error.evidence.exit_code, error.evidence.phase
    report = ErrorReport(error=clip(str(error), 1_000), exit_code=code, phase=phase)
    worker.error(first_line(str(error), 300), body=report.body(task.error_tries + 1))


def _lease_variables(worker: CrewWorker) -> dict[str, str]:
    """Return the environment variables with which the command itself can use `rung worker`."""
    return {
        TABLE_VARIABLE: worker.table.location,
        TASK_VARIABLE: worker.task_id,
        SESSION_VARIABLE: worker.session,
        GENERATION_VARIABLE: str(worker.claim.generation),
    }


def _hand_back_if_unavailable(error: AttemptError) -> None:
    """Raise PoolUnavailable if the command failed because of the service behind it."""
    now = time.time()
    trouble = trouble_of(classify(error.evidence, now, local_zone()), now)
    if trouble is not None:
        raise PoolUnavailable(hand_back_text(trouble), is_temporary=not trouble.needs_person)
