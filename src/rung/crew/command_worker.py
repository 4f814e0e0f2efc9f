"""A plain command as a worker: claimed for, kept alive, its failures reported, its work put to review, until it is done."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.process import RECOVERY_PLACEHOLDER, RunningProcess, run_command
from rung.core.classify.evidence import clip
from rung.core.crew.contract import CONDUCTOR, PERSON, MessageType, TaskState
from rung.core.crew.error_triage import ErrorReport
from rung.core.crew.review import ReviewRequest
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import first_line
from rung.engine.process_identity import group_cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.crew.worker import CrewWorker

INSTRUCTION: Final = "{instruction}"
LOOK: Final = 0.2
UNTESTED: Final = 5  # the grade that has somebody read the work first
TESTED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWorker:
    """The command; `check` must exit 0 before its work is called tested; `poll` seconds between looks for an answer."""

    command: Sequence[str]
    check: str = ""
    poll: float = 2.0

    def work(self, worker: CrewWorker) -> None:
        """Run it until a review lets it pass. Whatever ends this early hands the task over."""
        told = self._instructions(worker)
        checkpoint = 1
        while True:
            try:
                output = self._run(worker, told)
            except AttemptError as error:
                code, phase = error.evidence.exit_code, error.evidence.phase
                report = ErrorReport(error=clip(str(error), 1_000), exit_code=code, phase=phase)
                tries = (worker.table.task(worker.task_id) or worker.table.known(worker.task_id)).error_tries + 1
                worker.error(first_line(str(error), 300), body=report.body(tries))
            else:
                worker.review(self._review(output, checkpoint), checkpoint=checkpoint)
            answer = worker.wait_for_answer(poll=self.poll)
            if answer.state is TaskState.REVIEW_APPROVED:
                worker.complete(f"TASK COMPLETE\n{clip(output, 500)}")
                return
            told = f"{answer.text}\n\n{self._instructions(worker)}"

    def _instructions(self, worker: CrewWorker) -> str:
        """What the task is: the file, and what the conductor has said of it."""
        path = worker.claim.instruction_path
        text = Path(path).read_text(encoding="utf-8") if path else ""
        said = worker.table.messages(worker.task_id, types=(MessageType.INSTRUCTION,))
        heard = [one.message for one in said if one.from_session in (CONDUCTOR, PERSON)]
        return "\n\n".join([*heard[-3:], text]).strip()

    def _run(self, worker: CrewWorker, told: str) -> str:
        """One run. What it prints is its progress; it is ended when the task is no longer ours."""
        words = [word.replace(INSTRUCTION, told).replace(RECOVERY_PLACEHOLDER, told) for word in self.command]
        printed = [0]

        def count(chunk: bytes) -> None:
            printed[0] += len(chunk)

        # In our own group: whoever ends this worker, by whatever signal, ends its command with it.
        run = RunningProcess(words, told, count, count, own_group=False)
        try:
            last = time.monotonic()
            while run.process.poll() is None:
                time.sleep(LOOK)
                if time.monotonic() - last >= self.poll:
                    last = time.monotonic()
                    worker.beat(f"{printed[0]} bytes of output, {group_cpu_seconds(os.getpgid(0))} s of processor time")
        except BaseException:  # its task is another's, or it was asked to end
            run.terminate()
            raise
        return run.result()

    def _review(self, output: str, checkpoint: int) -> str:
        """What the command says of its own work, or what can be said of it from outside."""
        said = ReviewRequest.parse(output)
        if said.smoothness is not None and not said.missing:
            return output
        tested, passed = "not run", False
        if self.check:
            done = run_command(self.check)
            passed = done.code == 0
            tested = f"`{self.check}` {'passes' if passed else f'failed with exit code {done.code}'}"
        return ReviewRequest(
            checkpoint=checkpoint,
            context=0.0,
            self_correction=False,
            deviations="none known",
            agents_remaining="0",
            proposal="N/A",
            summary=clip(output.strip(), 500) or "it printed nothing",
            files_modified="not counted",
            tests=tested,
            smoothness=TESTED if passed else UNTESTED,
            reason="the command ended with exit code 0",
            key_outputs="see its log",
        ).body()
