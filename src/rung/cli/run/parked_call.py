"""Call of a run that is parked or has failed: what another process needs to take it up or to make it again.

It is kept in the journal, sealed under this account's key.

A journal that somebody else can write to can therefore not make this account run a command.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from binascii import a2b_base64
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from rung.core.domain.errors import ConfigError
from rung.engine.durable.parking import CALL_STEP
from rung.store.recorded_calls import command_table
from rung.store.sealing import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.store.journal.journal import Journal

TAKE_UP_VARIABLE: Final = "RUNG_TAKE_UP"  # id of the run that the process takes up
RETRY_VARIABLE: Final = "RUNG_RETRY"  # id of the order by which the process makes a run again
PARK_VARIABLE: Final = "RUNG_PARK"  # overrides --park
MAX_INPUT_BYTES: Final = 64 << 20


class ParkedCall(NamedTuple):
    """Command line of a run, with its directory, its standard input and the search path of its programs."""

    words: tuple[str, ...]
    folder: str
    path: str
    host: str
    given: bytes

    @classmethod
    def of_this_process(cls, given: bytes = b"", words: tuple[str, ...] | None = None) -> ParkedCall:
        """Return the call of this process."""
        path = os.environ.get("PATH", "")
        return cls(words or tuple(sys.argv[1:]), str(Path.cwd()), path, socket.gethostname(), given)

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> ParkedCall:
        """Return the call of a JSON object."""
        words, given = tuple(map(str, table["words"])), a2b_base64(table["given"])
        return cls(words, str(table["folder"]), str(table["path"]), str(table["host"]), given)

    def to_table(self) -> dict[str, Any]:
        """Return the call as a JSON object."""
        return command_table(*self)

    def sealed(self, journal: Journal, run: str) -> dict[str, str]:
        """Return the call as it is kept in the journal."""
        return {"sealed": journal.key.seal(json.dumps(self.to_table()), _place(run))}

    def environment(
        self, run: str, journal_at: str, park: str = "", variable: str = TAKE_UP_VARIABLE
    ) -> dict[str, str]:
        """Return the environment of a process that takes the run up, or makes it again: the variable says which."""
        environment = {**os.environ, "PATH": self.path, "RUNG_JOURNAL": journal_at, variable: run}
        return {**environment, PARK_VARIABLE: park} if park else environment

    def command(self) -> list[str]:
        """Return the command line of a process that takes the run up."""
        return [sys.executable, "-P", "-m", "rung", *self.words]

    def require_runnable(self) -> None:
        """Raise ConfigError if the call is one of another machine, or its directory is gone."""
        if self.host != socket.gethostname():
            raise ConfigError("RUN", self.host, f"a run of this machine, {socket.gethostname()}")
        if not Path(self.folder).is_dir():
            raise ConfigError("RUN", self.folder, "a run whose directory exists")

    def input_file(self) -> Any:
        """Return an open file without a name that holds the standard input."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the process that takes the run up inherits it
        file.write(self.given)
        file.seek(0)
        return file


def load_parked_call(journal: Journal, run: str) -> ParkedCall | None:
    """Return the call of a parked run; None if none was kept. Raises SealedElsewhere if another account has sealed it."""
    step = journal.runs.step(run, CALL_STEP)
    if not isinstance(step, dict) or not str(step.get("sealed", "")).startswith(PREFIX):
        return None
    return ParkedCall.of_table(json.loads(journal.key.unseal(step["sealed"], _place(run))))


def replace_process(call: ParkedCall, run: str, journal_at: str, variable: str = TAKE_UP_VARIABLE) -> NoReturn:
    """Replace this process by the command of a run, with the input that it had."""
    call.require_runnable()
    if call.given or not sys.stdin.isatty():
        with call.input_file() as file:
            os.dup2(file.fileno(), 0)
    os.chdir(call.folder)
    sys.stdout.flush()
    environment = call.environment(run, journal_at, variable=variable)
    os.execve(sys.executable, call.command(), environment)  # noqa: S606  # the user's own command


def resumed_options(options: Mapping[str, Any], *, has_own_id: bool = False) -> dict[str, Any]:
    """Return the options of a command that may take a parked run up. Its agents do not inherit that.

    `has_own_id`: the words of the command name the run.
    """
    run, park = os.environ.pop(TAKE_UP_VARIABLE, ""), os.environ.pop(PARK_VARIABLE, "")
    changed = dict(options)
    if run and not has_own_id and changed["run_id"] is None:
        changed["run_id"] = run
    if park:
        changed["park"] = park
    return changed


def _place(run: str) -> str:
    return f"run {run!r}, call"
