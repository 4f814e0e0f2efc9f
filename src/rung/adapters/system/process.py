"""Commands as attempts: exit code, signal, output and JSON result become evidence; a rung's text becomes input."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.adapters.system.agent_processes import end_agent, new_agent_run
from rung.adapters.system.agent_sessions.agent_sessions import AgentSessions
from rung.adapters.system.agent_sessions.changed_files import changed_files
from rung.adapters.system.child_processes import exit_code, wait_for_exit
from rung.adapters.system.command_input import CommandInput
from rung.adapters.system.command_output import OutputClosed, OutputReader, OutputText
from rung.adapters.system.command_result import output_or_raise, report_cost_in
from rung.adapters.system.filled_pipe import filled_pipe
from rung.adapters.system.foreground import TERMINAL_SIGNALS, foreground, wait_in_foreground
from rung.adapters.system.input_pipe import InputPipe
from rung.adapters.system.placeholders import fill_placeholders, uses_placeholder
from rung.adapters.system.process_guardian import ProcessGuardian, deferred_signals
from rung.adapters.system.process_tree import terminate_tree
from rung.adapters.system.step_file import STEPS_VARIABLE
from rung.core.domain.errors import AttemptError, AttemptTimeout
from rung.core.domain.failures import Phase
from rung.engine.agent_sessions import sessions_of_attempt
from rung.engine.attempt_api import progress_reporter, report_unread_prompt
from rung.engine.process_identity import group_members
from rung.engine.timeouts.sync_timeout import AttemptInterrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rung.adapters.system.agent_sessions.agent_sessions import SessionCommand
    from rung.adapters.system.step_file import StepFile
    from rung.core.domain.request import Request
    from rung.engine.agent_sessions import RunSessions

STDIN: Final = 0
WAIT_SLICE_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 2.0  # between SIGTERM and SIGKILL
_KILL_POLL_SECONDS: Final = 0.005
MAX_STDERR_BYTES: Final = 64 * 1024  # tail of stderr that is kept
RECOVERY_PLACEHOLDER: Final = "{recovery}"
MODEL_PLACEHOLDER: Final = "{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """Command line of each agent (the empty name: the first one), its standard input, and callbacks that show its output.

    `terminal` gives the command the terminal as its standard input, in attempts that have no text for it. With `guard`, the
    command ends when this process is killed. Output that is not shown is kept byte for byte.
    """

    by_agent: Mapping[str, Sequence[str]]
    show_output: Callable[[], Callable[[bytes], object]] | None = None  # called once for each attempt
    show_errors: Callable[[bytes], object] | None = None
    given: CommandInput = field(default_factory=lambda: CommandInput(None))
    given_text: str = ""  # what stands for the input in the first request's prompt
    terminal: bool = False
    guard: bool = True
    launch: Callable[[Sequence[str]], Sequence[str]] | None = None  # wraps a command line
    keep_output: Callable[[str], object] | None = None  # gets the output of each attempt, however it ended
    steps: StepFile | None = None  # in which the command reports its completed steps
    sessions: AgentSessions = field(default_factory=AgentSessions)

    def __post_init__(self) -> None:
        for command in self.by_agent.values():
            fill_placeholders(command, {RECOVERY_PLACEHOLDER: "", MODEL_PLACEHOLDER: ""})  # refuses text as code

    def __call__(self, request: Request) -> str:
        """Run the command once, in the agent's session. Return its output, or raise AttemptError with the evidence."""
        template, log = self.by_agent[request.agent], sessions_of_attempt()
        command = self.sessions.continued(template, log)
        try:
            return self._run(request, command, log)
        except AttemptError as error:
            instead = self.sessions.replacement(template, command, error, log)
            if instead is None:
                raise
        return self._run(request, instead, log)

    def _run(self, request: Request, command: SessionCommand, log: RunSessions | None) -> str:
        if command.is_fresh and log is not None and not log.is_first:
            request = log.handed_over(request, changed_files())
        recovery = request.recovery if command.prompt is None else command.prompt
        values = {RECOVERY_PLACEHOLDER: recovery, MODEL_PLACEHOLDER: request.model}
        argv, variables = fill_placeholders(command.words, values)
        has_text = bool(request.prompt) and not uses_placeholder(command.words, RECOVERY_PLACEHOLDER)
        stdin = self.given.insert_into(request.prompt, self.given_text) if has_text else self.given.chunks()
        if command.prompt is not None:
            has_text, stdin = True, iter((command.prompt.encode("utf-8", "replace"),))
        process = RunningProcess(
            argv if self.launch is None else self.launch(argv),
            None if self.terminal and not has_text else stdin,
            command.show("output", None if self.show_output is None else self.show_output()),
            command.show("errors", self.show_errors),
            guard=self.guard,
            keep_bytes=self.show_output is None,
            poll=None if self.steps is None else self.steps.report_new,
            is_agent=command.records_steps,
            env={**os.environ, **variables, **({} if self.steps is None else {STEPS_VARIABLE: self.steps.path})},
        )
        has_task = has_text and command.prompt is None
        try:
            text = process.result()
        except AttemptError as error:
            evidence = error.evidence
            if has_task and evidence.signal is None and evidence.phase is Phase.CALL:
                error.evidence = evidence._replace(prompt_unread=process.is_input_unread)
            raise
        else:
            if has_task and process.is_input_unread:
                report_unread_prompt()
            return text
        finally:
            output = process.output_text()  # after its end: all of it has been read
            command.finish()
            report_cost_in(output)
            if self.keep_output is not None:
                self.keep_output(output)
            if self.steps is not None:
                self.steps.report_new(final=True)


class Completed(NamedTuple):
    """Result of a command. A negative code is the signal that killed it."""

    code: int
    output: str
    errors: str


def run_command(
    command: str | Sequence[str],
    stdin: str = "",
    *,
    seconds: float | None = None,
    keep: int = MAX_STDERR_BYTES,
    **places: Any,
) -> Completed:
    """Run a command without a shell, with `stdin` as its standard input, and return its result.

    Raises OSError if it cannot be started and AttemptTimeout after `seconds`. Its child processes are terminated with it.
    The last `keep` bytes of stdout are kept (0: all), and the last 64 KiB of stderr. `places` are `cwd` and `env`.
    """
    argv = shlex.split(command) if isinstance(command, str) else list(command)
    try:
        process = RunningProcess(argv, stdin, keep=keep, **places)
    except AttemptError as error:
        raise error.__cause__ or error from None
    return process.completed(seconds)


class RunningProcess:
    """Running command: receives its input, is read to its end, and is terminated with its child processes.

    By default it has its own process group, which also ends when this process is killed (`guard`). Without one, it is
    terminated by any signal to the group of this process. `stdin` None is the terminal, whose foreground it gets.

    An agent that records its steps (`is_agent`) is killed before its tools are terminated, so that it takes no further step.
    """

    def __init__(
        self,
        argv: Sequence[str],
        stdin: str | bytes | Iterable[bytes] | None,
        show_output: Callable[[bytes], object] | None = None,
        show_errors: Callable[[bytes], object] | None = None,
        *,
        own_group: bool = True,
        guard: bool = True,
        keep: int = 0,
        keep_bytes: bool = False,
        poll: Callable[[], object] | None = None,
        is_agent: bool = False,
        **places: Any,
    ) -> None:
        self._agent_run = new_agent_run() if is_agent else {}
        if is_agent:
            places["env"] = {**(places.get("env") or os.environ), **self._agent_run}
        self._poll = poll  # called about every second while it runs
        self._own_group = own_group
        self._has_terminal = stdin is None
        self._guardian: ProcessGuardian | None = None
        self._input: InputPipe | None = None
        self.is_input_unread = False  # known at its end: it certainly read nothing of what it was given
        stdin = stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin
        pipe = filled_pipe(stdin) if isinstance(stdin, bytes) else None
        if pipe is None and stdin is not None:
            self._input = InputPipe((stdin,) if isinstance(stdin, bytes) else stdin)
        given = pipe if self._input is None else self._input.reader
        try:
            with deferred_signals():  # one between the start and the guardian's word would leave the command behind
                self.process = self._start(argv, given, guard=own_group and guard, **places)
                progress = progress_reporter()
                self._output = OutputReader(
                    self.process.stdout,
                    show_output,
                    keep,
                    keep=keep_bytes,
                    on_closed=self.terminate,
                    on_output=progress,
                )
                self._errors = OutputReader(self.process.stderr, show_errors, MAX_STDERR_BYTES, on_output=progress)
        except BaseException:
            if hasattr(self, "process"):
                self.terminate()
            self._release()
            raise
        finally:
            if pipe is not None:
                os.close(pipe)

    def _start(self, argv: Sequence[str], stdin: int | None, *, guard: bool, **places: Any) -> subprocess.Popen[bytes]:
        self._guardian = ProcessGuardian() if guard and os.name == "posix" else None
        try:
            process = subprocess.Popen(  # noqa: S603  # the user's own command
                argv,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=self._own_group and stdin is not None,
                process_group=0 if self._own_group and stdin is None else None,
                **places,  # cwd, env
            )
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            raise AttemptError(str(error), errno=error.errno, exit_code=code) from error
        if self._guardian is not None:
            self._guardian.watch(process.pid)
        return process

    def result(self, seconds: float | None = None) -> str:
        """Return its output or raise AttemptError with the evidence. After `seconds`, or on Ctrl-C, terminate it."""
        text = output_or_raise(*self.completed(seconds))
        return text if self._output.captured is None else OutputText.of(text, self._output.captured)

    def completed(self, seconds: float | None = None) -> Completed:
        """Wait for its end and return the result. After `seconds` (AttemptTimeout), or on Ctrl-C, terminate it."""
        try:
            code = self._wait(seconds)
        except BaseException:  # timeout or Ctrl-C: terminate it with its child processes
            self.terminate()
            raise
        if code is None:
            self.terminate()
            raise AttemptTimeout(seconds or 0.0)
        self._release()
        output = self._output.text()
        if self._output.is_closed:
            raise OutputClosed
        return Completed(code, output, self._errors.text())

    def output_text(self) -> str:
        """Return what it has written to standard output so far."""
        return self._output.text()

    def _wait(self, seconds: float | None) -> int | None:
        if not self._has_terminal:
            return self._wait_interruptible(seconds)
        with foreground(self.process, STDIN):
            code = wait_in_foreground(self.process, STDIN)
        if -code in TERMINAL_SIGNALS or code - 128 in TERMINAL_SIGNALS:
            raise KeyboardInterrupt
        return code

    def _wait_interruptible(self, seconds: float | None) -> int | None:
        """Wait in slices, with a poll after each. Return None if it still runs after `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            left = WAIT_SLICE_SECONDS if until is None else until - time.monotonic()
            code = wait_for_exit(self.process, min(left, WAIT_SLICE_SECONDS))
            if code is not None:
                return code
            if self._poll is not None:
                self._poll()
        return exit_code(self.process)

    def terminate(self) -> None:
        """Terminate it and its child processes; an agent before its tools."""
        if self._agent_run:
            entries = frozenset(f"{name}={value}" for name, value in self._agent_run.items())
            end_agent(entries, grace=GRACE_SECONDS, reap=lambda: exit_code(self.process))
        if self._own_group:
            terminate_group(self.process)
        else:
            terminate_tree(self.process, GRACE_SECONDS)
        self._release()

    def _release(self) -> None:
        if self._input is not None:
            self.is_input_unread = self._input.close()
        guardian, self._guardian = self._guardian, None
        if guardian is not None:
            guardian.release()


def terminate_group(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process group: SIGTERM first, then SIGKILL. A second Ctrl-C or signal ends the grace period."""
    try:
        _signal_group(process, signal.SIGTERM)
        _wait_for_grace(process)
    finally:
        _signal_group(process, signal.SIGKILL)
        wait_for_exit(process)
        _wait_for_members(process.pid)


def _wait_for_members(leader: int) -> None:
    """Wait until the killed members of a group are gone: a busy machine takes a moment, and the next attempt starts now."""
    until = time.monotonic() + GRACE_SECONDS  # a process that waits for a device cannot be killed
    while group_members(leader) and time.monotonic() < until:
        time.sleep(_KILL_POLL_SECONDS)


def _wait_for_grace(process: subprocess.Popen[bytes]) -> None:
    """Wait for its end. The time limit of the attempt, which strikes every second, does not shorten the grace period."""
    until = time.monotonic() + GRACE_SECONDS
    while (left := until - time.monotonic()) > 0:
        with suppress(AttemptInterrupt):
            wait_for_exit(process, left)
            return


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
