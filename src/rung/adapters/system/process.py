"""Commands as attempts: exit code, signal, output and JSON result become evidence; a rung's text becomes input."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from rung.adapters.system.placeholders import fill_placeholders, uses_placeholder
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError, AttemptTimeout
from rung.core.domain.failures import Phase
from rung.core.text.json_in_text import parse_json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.request import Request

GRACE_SECONDS: Final = 2.0  # between SIGTERM and SIGKILL
MAX_STDERR_BYTES: Final = 64 * 1024  # tail of stderr that is kept
RECOVERY_PLACEHOLDER: Final = "{recovery}"
MODEL_PLACEHOLDER: Final = "{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """Command line of each agent (the empty name: the first one), and callbacks that show its output."""

    by_agent: Mapping[str, Sequence[str]]
    show_output: Callable[[bytes], object] | None = None
    show_errors: Callable[[bytes], object] | None = None

    def __post_init__(self) -> None:
        for command in self.by_agent.values():
            fill_placeholders(command, {RECOVERY_PLACEHOLDER: "", MODEL_PLACEHOLDER: ""})  # refuses text as code

    def __call__(self, request: Request) -> str:
        """Run the command once. Return its standard output, or raise AttemptError with the evidence."""
        template = self.by_agent[request.agent]
        values = {RECOVERY_PLACEHOLDER: request.recovery, MODEL_PLACEHOLDER: request.model}
        argv, variables = fill_placeholders(template, values)
        in_place = uses_placeholder(template, RECOVERY_PLACEHOLDER)
        stdin = str(request.params.get("stdin", "")) if in_place else request.prompt
        environment = {**os.environ, **variables}
        return RunningProcess(argv, stdin, self.show_output, self.show_errors, env=environment).result()


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

    By default it has its own process group. Without one, it is terminated by any signal to the group of this process.
    """

    def __init__(
        self,
        argv: Sequence[str],
        stdin: str,
        show_output: Callable[[bytes], object] | None = None,
        show_errors: Callable[[bytes], object] | None = None,
        *,
        own_group: bool = True,
        keep: int = 0,
        **places: Any,
    ) -> None:
        try:
            self.process = subprocess.Popen(  # noqa: S603  # the user's own command
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=own_group,
                **places,  # cwd, env
            )
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            raise AttemptError(str(error), errno=error.errno, exit_code=code) from error
        self._own_group = own_group
        self._output = _Pump(self.process.stdout, show_output, keep)
        self._errors = _Pump(self.process.stderr, show_errors, MAX_STDERR_BYTES)
        threading.Thread(target=_feed, args=(self.process.stdin, stdin), daemon=True).start()

    def result(self, seconds: float | None = None) -> str:
        """Return its output or raise AttemptError with the evidence. After `seconds`, or on Ctrl-C, terminate it."""
        return output_or_raise(*self.completed(seconds))

    def completed(self, seconds: float | None = None) -> Completed:
        """Wait for its end and return the result. After `seconds` (AttemptTimeout), or on Ctrl-C, terminate it."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.terminate()
            raise AttemptTimeout(seconds or 0.0) from None
        except BaseException:  # timeout or Ctrl-C: terminate it with its child processes
            self.terminate()
            raise
        return Completed(code, self._output.text(), self._errors.text())

    def terminate(self) -> None:
        """Terminate it and its child processes; without its own group, only itself."""
        if self._own_group:
            terminate_group(self.process)
        else:
            _terminate_one(self.process)


def output_or_raise(exit_code: int, output: str, errors: str) -> str:
    """Return the output of a successful run, or raise AttemptError."""
    text = output.strip()
    result = parse_json_object(text) or parse_json_object(text.rsplit("\n", 1)[-1])
    facts = _error_facts(result) if result is not None else None
    if facts is None and exit_code == 0:
        return output
    facts = facts or {"text": clip(errors.strip() or output.strip() or f"exit code {exit_code}", 4_096)}
    raise AttemptError(
        facts.pop("text"),
        exit_code=exit_code if exit_code > 0 else None,
        signal=-exit_code if exit_code < 0 else None,
        output=clip(output),
        **facts,
    )


def _error_facts(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error facts in a JSON result, or None if it reports no error. `subtype` is unreliable."""
    error = result.get("error")
    bad = result.get("is_error") is True or error or result.get("status") in ("error", "failed")
    if not bad:
        return None
    inner = error if isinstance(error, dict) else {}
    message = inner.get("message") or (error if isinstance(error, str) else "") or result.get("result")
    message = message or result.get("errors") or "is_error"
    code = inner.get("type") or result.get("terminal_reason") or ""
    status = result.get("api_error_status")
    return {
        "text": clip(str(message), 4_096),
        "code": str(code),
        "status": status if isinstance(status, int) else None,
        "phase": Phase.RESULT if status is None else Phase.CALL,
    }


class _Pump:
    """Background reader of a pipe: shows each chunk, and keeps all of it or its tail."""

    def __init__(self, pipe: IO[bytes] | None, show: Callable[[bytes], object] | None, keep: int = 0) -> None:
        self.pipe = pipe
        self.show = show
        self.keep = keep
        self.kept = bytearray()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.pipe is not None  # noqa: S101  # opened as a pipe
        with self.pipe:
            while chunk := os.read(self.pipe.fileno(), 65_536):
                self.kept += chunk
                if self.keep and len(self.kept) > 2 * self.keep:
                    del self.kept[: -self.keep]
                if self.show is not None:
                    self.show(chunk)

    def text(self) -> str:
        """Return what was read. Does not wait for a grandchild that holds the pipe open."""
        self.thread.join(GRACE_SECONDS)
        kept = bytes(self.kept)
        return (kept[-self.keep :] if self.keep else kept).decode("utf-8", "replace")


def _feed(pipe: IO[bytes] | None, text: str) -> None:
    assert pipe is not None  # noqa: S101  # opened as a pipe
    try:
        with pipe:
            pipe.write(text.encode())
    except OSError:
        return  # the command does not read its input


def terminate_group(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process group: SIGTERM first, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_SECONDS)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue


def _terminate_one(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
