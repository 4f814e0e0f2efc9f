"""Judge that is a command: it reads the case as JSON from standard input and prints a verdict as JSON."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.adapters.system.process import run_command
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptTimeout, JudgeError
from rung.detectors.judging import verdict_in_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rung.core.domain.verdict import Verdict
    from rung.detectors.judging import JudgeCase

_MAX_STDERR_CHARACTERS: Final = 400


@dataclass(frozen=True, slots=True)
class CommandJudge:
    """Judge that runs a command for each case, without a shell. Its child processes are terminated with it."""

    command: Sequence[str] | str
    seconds: float = 120.0
    cwd: str | Path | None = None  # directory it runs in; by default that of this process

    def __call__(self, case: JudgeCase) -> Verdict:
        """Return the command's verdict, or raise JudgeError."""
        argv = shlex.split(self.command) if isinstance(self.command, str) else list(self.command)
        try:
            done = run_command(argv, json.dumps(case.to_json()), seconds=self.seconds, cwd=self.cwd)
        except AttemptTimeout:
            raise JudgeError(f"{argv[0]}: no verdict within {self.seconds:g} s") from None
        except OSError as error:
            raise JudgeError(f"{argv[0]}: cannot be run: {error.strerror or error}") from error
        if done.code:
            raise JudgeError(f"{argv[0]}: exit code {done.code}: {clip(done.errors.strip(), _MAX_STDERR_CHARACTERS)}")
        return verdict_in_text(done.output)
