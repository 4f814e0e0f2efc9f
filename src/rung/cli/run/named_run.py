"""Runs of `rung run --run-id`: the same command goes on after a stop; another one under the same id is refused."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from rung.cli.usage import UsageError
from rung.core.domain.errors import ConfigError, RunOwnedElsewhere
from rung.core.domain.events import Cancelled, Status
from rung.core.domain.incident import Incident
from rung.core.domain.outcome import SUCCESS_STATUSES
from rung.engine.durable.attempt_replay import SESSION_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.adapters.system.command_input import CommandInput
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.core.domain.outcome import Outcome
    from rung.store.durable_runs import RunRow
    from rung.store.journal.journal import Journal

TASK: Final = "rung run"  # task of these runs in the journal
# What makes two calls the same run. Limits and checks may change between them.
_COMPARED: Final = {
    "command": "the command",
    "fallbacks": "--fallback",
    "input": "the input",
    "folder": "the directory",
}


def describe_call(agents: Mapping[str, Sequence[str]], given: CommandInput) -> dict[str, Any]:
    """Return what identifies this call, as digests, and the command line to type again, without secrets."""
    from rung.core.classify.redaction import redacted

    first, *others = agents.values()
    return {
        "command": _digest(first),
        "fallbacks": _digest([word for words in others for word in ("", *words)]),
        "input": given.digest(),
        "folder": str(Path.cwd()),
        "words": [redacted(word) for word in sys.argv[1:]],
        "has_input": given.size > 0,
    }


def claimable_id(
    journal: Journal, run_id: str, call: dict[str, Any], *, may_repeat: bool, resumes_sessions: bool = False
) -> str:
    """Return the id to run under: a new one, or that of a run which goes on, or `ID~2` after a run that ended badly.

    Raises ConfigError if the id belongs to another call; UsageError if an attempt was cut off that may not be repeated and whose
    agent has no session to continue (`resumes_sessions`); RunOwnedElsewhere while another process runs it.
    """
    number, name = 1, run_id
    while (row := journal.runs.find(name)) is not None:
        _require_same_call(run_id, row, call)
        if row.owned:
            raise RunOwnedElsewhere(name, "another process runs it")
        ended = row.result.get("status") if row.result is not None else _cancelled(journal, name)
        if ended is None and not may_repeat:
            _refuse_cut_off_attempt(journal, name, resumes_sessions=resumes_sessions)
        if ended is None or Status(ended) in SUCCESS_STATUSES:
            return name
        number += 1
        click.echo(f"rung: run {name!r} ended {ended}; it starts again as '{run_id}~{number}'", err=True)
        name = f"{run_id}~{number}"
    journal.runs.submit(name, TASK, call)
    return name


def _cancelled(journal: Journal, name: str) -> Status | None:
    """Return how a run ended that an older version closed when it was stopped. A run of a process that died goes on."""
    events = journal.events(name)
    return Incident.of(events).status if any(isinstance(event, Cancelled) for event in events) else None


def _require_same_call(run_id: str, row: RunRow, call: dict[str, Any]) -> None:
    if not row.task and row.arguments is None:
        return  # of a version that did not store the call
    if row.task != TASK:
        raise ConfigError("--run-id", run_id, f"an id of its own: it is that of a run of {row.task!r}")
    changed = [name for key, name in _COMPARED.items() if row.arguments.get(key) != call[key]]
    if changed:
        raise ConfigError(
            "--run-id", run_id, f"an id of its own: under this one {' and '.join(changed)} had another value"
        )


def has_session(outcome: Outcome[Any]) -> bool:
    """Return whether the agent of a stopped run has a session that the next attempt continues."""
    return bool(Incident.of(outcome.events).agent_sessions)


def _refuse_cut_off_attempt(journal: Journal, run_id: str, *, resumes_sessions: bool) -> None:
    """Raise UsageError if the last attempt of the run began and did not end, and cannot be continued."""
    incident = Incident.of(journal.events(run_id))
    number = incident.attempts + 1
    keys = journal.runs.step_keys(run_id)
    known = bool(incident.agent_sessions) or any(key.startswith(f"attempt.{number}.{SESSION_STEP}.") for key in keys)
    if resumes_sessions and known:
        return
    if f"attempt.{number}.begun" in keys and f"attempt.{number}" not in keys:
        repeat = shlex.join(["rung", "resume", run_id, "--idempotent"])
        raise UsageError(
            f"attempt {number} of run {run_id!r} was cut off and may have had side effects;"
            f" `{repeat}` repeats it, --ask of `rung run` asks you first"
        )


def command_to_type(call: Mapping[str, Any]) -> dict[str, str]:
    """Return the command line that continues a run, for a person to type. Secrets in it are placeholders."""
    line = shlex.join(["rung", *call["words"]]) + (" < INPUT" if call["has_input"] else "")
    return {"folder": call["folder"], "command": f"cd {shlex.quote(call['folder'])} && {line}"}


def take_up(call: Mapping[str, Any], *, idempotent: bool = False) -> NoReturn:
    """Replace this process by the command of a run, in its directory. Raises ConfigError if it cannot be run as it was.

    `idempotent`: an attempt that was cut off may be repeated.
    """
    name, *options = call["words"]
    words = [name, "--idempotent", *options] if idempotent else call["words"]
    if any("<secret:" in word for word in words):
        typed = command_to_type(call)["command"]
        raise ConfigError("RUN", call["folder"], f"a run without secrets in its command; type it with them: {typed}")
    if call["has_input"] and sys.stdin.isatty():
        raise ConfigError("standard input", "a terminal", "the input of the run: rung resume RUN < INPUT")
    try:
        os.chdir(call["folder"])
    except OSError as error:
        raise ConfigError("RUN", call["folder"], f"a run whose directory exists ({error.strerror})") from None
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "rung", *words])  # noqa: S606  # the user's own command


class RunProcess:
    """The running command of a named run, in a PID file, so that a later call can end what an earlier one left behind."""

    def __init__(self, run_id: str) -> None:
        from rung.adapters.system.worker_processes import RealProcesses
        from rung.wiring.journals import default_path

        self._processes: RealProcesses = RealProcesses(default_path().parent / "runs")
        shown = re.sub(r"[^A-Za-z0-9_-]", "_", run_id)[:64]
        self._name = f"{shown}.{_digest([run_id])[:12]}"

    @property
    def file(self) -> Path:
        """The PID file."""
        return self._processes.pid_file(self._name)

    def end(self) -> None:
        """End the command of an earlier process, if it still runs, and remove its PID file. No other process is signalled."""
        self._processes.end(self._name)

    @property
    def launcher(self) -> Callable[[Sequence[str]], Sequence[str]] | None:
        """Wraps a command line so that it writes the PID file first."""
        from rung.adapters.system.pid_file import launcher

        return (lambda command: launcher(self.file, command)) if os.name == "posix" else None


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()
