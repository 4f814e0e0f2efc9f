"""Runs of helper commands in background threads: a few at once, one for each task, ended on request."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from rung.adapters.system.command_line import with_own_rung
from rung.adapters.system.placeholders import fill_placeholders, uses_placeholder
from rung.adapters.system.process import RunningProcess
from rung.core.domain.errors import AttemptError, AttemptTimeout
from rung.engine.signal_flag import SignalWakeup

MAX_HELPERS: Final = 4  # that run at once
END_SECONDS: Final = 5.0  # for helpers that were asked to end
PROMPT_PLACEHOLDER: Final = "{prompt}"


class HelperCancelled(BaseException):
    """Ends a run whose answer is no longer wanted. It passes through everything that catches errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperRun:
    """One run of a helper command. `outlives_worker`: the answer is wanted even if the task's worker leaves meanwhile."""

    command: tuple[str, ...]
    prompt: str
    seconds: float  # time limit
    delay: float = 0.0  # seconds before its start
    outlives_worker: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class RunningHelper:
    """A run that waits for its start, runs, or has ended. After its end it has an output or an error."""

    task_id: str
    run: HelperRun
    output: str = ""
    error: AttemptError | AttemptTimeout | None = None
    done: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Ask the run to end: its thread ends the command with its process group."""
        self.cancelled.set()

    def execute(self) -> None:
        """Run the command to its end, in the calling thread."""
        try:
            if not self.cancelled.wait(self.run.delay):
                self.output = self._run()
        except (AttemptError, AttemptTimeout) as error:
            self.error = error
        except HelperCancelled:
            pass
        finally:
            self.done.set()

    def _run(self) -> str:
        """Return the output of the command, with the prompt on standard input or in place of `{prompt}`."""
        command = self.run.command
        is_argument = uses_placeholder(command, PROMPT_PLACEHOLDER)
        arguments, variables = fill_placeholders(with_own_rung(command), {PROMPT_PLACEHOLDER: self.run.prompt})
        environment = {**os.environ, **variables}
        stdin = "" if is_argument else self.run.prompt
        process = RunningProcess(arguments, stdin, poll=self._raise_if_cancelled, env=environment)
        return process.result(self.run.seconds)

    def _raise_if_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise HelperCancelled


class HelperRuns:
    """The runs of one conductor. Threads only run commands: the table belongs to the threads that own a connection."""

    def __init__(self, limit: int = MAX_HELPERS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: list[RunningHelper] = []
        self._running: list[RunningHelper] = []
        self._wakeup = SignalWakeup()  # a signal handler may use it

    def start(self, task_id: str, run: HelperRun) -> RunningHelper:
        """Start a run as soon as there is room for it and no other run of this task."""
        helper = RunningHelper(task_id=task_id, run=run)
        with self._lock:
            self._waiting.append(helper)
        self._start_waiting()
        return helper

    def wait(self, seconds: float) -> None:
        """Wait until a run has ended or `wake` was called, but not longer than this."""
        self._wakeup.wait(seconds)

    def wake(self) -> None:
        """End the current or the next `wait`."""
        self._wakeup.wake()

    def end_all(self, seconds: float = END_SECONDS) -> None:
        """Ask every run to end, and wait for that, but not longer than this."""
        with self._lock:
            helpers = [*self._waiting, *self._running]
            self._waiting.clear()
            running = tuple(self._running)
        for helper in helpers:
            helper.cancel()
        until = time.monotonic() + seconds
        for helper in running:
            helper.done.wait(max(0.0, until - time.monotonic()))

    def _start_waiting(self) -> None:
        with self._lock:
            self._waiting = [helper for helper in self._waiting if not helper.cancelled.is_set()]
            busy = {helper.task_id for helper in self._running}
            for helper in tuple(self._waiting):
                if len(self._running) >= self._limit:
                    break
                if helper.task_id not in busy:
                    busy.add(helper.task_id)
                    self._waiting.remove(helper)
                    self._running.append(helper)
                    threading.Thread(target=self._work, args=(helper,), daemon=True).start()

    def _work(self, helper: RunningHelper) -> None:
        try:
            helper.execute()
        finally:
            with self._lock:
                self._running.remove(helper)
            self._start_waiting()
            self.wake()
