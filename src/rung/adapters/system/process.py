"""A command as an attempt: its exit code, signal, output and JSON result to evidence, a rung's text to its input."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError, AttemptTimeout
from rung.core.domain.failures import Phase
from rung.core.text.json_in_text import parse_json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.request import Request

GRACE: Final = 2.0  # seconds between asking a command to end and ending it
TAIL: Final = 64 * 1024  # what is kept of its stderr
RECOVERY: Final = "{recovery}"
MODEL: Final = "{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """What to run for each agent (the empty name: the first one), and where to show what it prints."""

    by_agent: Mapping[str, Sequence[str]]
    show_output: Callable[[bytes], object] | None = None
    show_errors: Callable[[bytes], object] | None = None

    def __call__(self, request: Request) -> str:
        """One run: its standard output, or an AttemptError with the evidence."""
        template = self.by_agent[request.agent]
        in_place = any(RECOVERY in word for word in template)
        words = [word.replace(RECOVERY, request.recovery).replace(MODEL, request.model) for word in template]
        given = str(request.params.get("stdin", "")) if in_place else request.prompt
        return RunningProcess(words, given, self.show_output, self.show_errors).result()


class Completed(NamedTuple):
    """A command that ran to its end; a negative code is the signal that killed it."""

    code: int
    output: str
    errors: str


def run_command(
    command: str | Sequence[str], given: str = "", *, seconds: float | None = None, keep: int = TAIL, **places: Any
) -> Completed:
    """Run a command to its end, without a shell, with `given` as its standard input.

    OSError when it cannot be started; TimeUp after so many seconds. Nothing it started stays behind. Of its output
    only the last `keep` bytes are kept (0: all), of its errors the last 64 KiB. `places` are `cwd` and `env`.
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    try:
        started = RunningProcess(words, given, keep=keep, **places)
    except AttemptError as error:
        raise error.__cause__ or error from None
    return started.completed(seconds)


class RunningProcess:
    """A command that runs: given its input, read to its end, and ended with all it started.

    It has a group of its own; without one it ends with ours, whatever that is ended by.
    """

    def __init__(
        self,
        words: Sequence[str],
        given: str,
        show_output: Callable[[bytes], object] | None = None,
        show_errors: Callable[[bytes], object] | None = None,
        *,
        own_group: bool = True,
        keep: int = 0,
        **places: Any,
    ) -> None:
        try:
            self.process = subprocess.Popen(  # noqa: S603  # running the user's command is what this is for
                words,
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
        self._errors = _Pump(self.process.stderr, show_errors, TAIL)
        threading.Thread(target=_feed, args=(self.process.stdin, given), daemon=True).start()

    def result(self, seconds: float | None = None) -> str:
        """Its output, or an AttemptError with the evidence. After so many seconds, or on Ctrl-C, it is ended."""
        return judge(*self.completed(seconds))

    def completed(self, seconds: float | None = None) -> Completed:
        """Wait for its end. After so many seconds (TimeUp), or on Ctrl-C, it is killed."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            raise AttemptTimeout(seconds or 0.0) from None
        except BaseException:  # its time is up, or Ctrl-C: nothing it started stays behind
            self.end()
            raise
        return Completed(code, self._output.text(), self._errors.text())

    def end(self) -> None:
        """End it and everything it started; without a group of its own, it alone."""
        if self._own_group:
            end_group(self.process)
        else:
            _end_one(self.process)


def judge(exit_code: int, output: str, errors: str) -> str:
    """The output of a good run; AttemptError for any other."""
    text = output.strip()
    result = parse_json_object(text) or parse_json_object(text.rsplit("\n", 1)[-1])
    facts = _facts(result) if result is not None else None
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


def _facts(result: dict[str, Any]) -> dict[str, Any] | None:
    """What a JSON result says went wrong; None when it says nothing did. `subtype` is not to be trusted."""
    error = result.get("error")
    bad = result.get("is_error") is True or error or result.get("status") in ("error", "failed")
    if not bad:
        return None
    inner = error if isinstance(error, dict) else {}
    said = inner.get("message") or (error if isinstance(error, str) else "") or result.get("result")
    said = said or result.get("errors") or "is_error"
    code = inner.get("type") or result.get("terminal_reason") or ""
    status = result.get("api_error_status")
    return {
        "text": clip(str(said), 4_096),
        "code": str(code),
        "status": status if isinstance(status, int) else None,
        "phase": Phase.RESULT if status is None else Phase.CALL,
    }


class _Pump:
    """Reads a pipe to its end in the background, shows what comes, and keeps it (or its tail)."""

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
        """What was read; a grandchild that holds the pipe open is not waited for."""
        self.thread.join(GRACE)
        kept = bytes(self.kept)
        return (kept[-self.keep :] if self.keep else kept).decode("utf-8", "replace")


def _feed(pipe: IO[bytes] | None, text: str) -> None:
    assert pipe is not None  # noqa: S101  # opened as a pipe
    try:
        with pipe:
            pipe.write(text.encode())
    except OSError:
        return  # it does not read its input; that is its right


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command and everything it started: first asked, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue


def _end_one(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
