"""A judge that is a program: given the case as JSON on its standard input, it prints a verdict as JSON."""

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

    from rung.core.domain.verdict import Verdict
    from rung.detectors.judging import JudgeCase

_TOLD: Final = 400


@dataclass(frozen=True, slots=True)
class CommandJudge:
    """Runs a command for each case; no shell, and nothing it starts stays behind."""

    command: Sequence[str] | str
    seconds: float = 120.0

    def __call__(self, case: JudgeCase) -> Verdict:
        """The command's verdict, or a JudgeError."""
        words = shlex.split(self.command) if isinstance(self.command, str) else list(self.command)
        try:
            done = run_command(words, json.dumps(case.to_json()), seconds=self.seconds)
        except AttemptTimeout:
            raise JudgeError(f"{words[0]}: no verdict within {self.seconds:g} s") from None
        except OSError as error:
            raise JudgeError(f"{words[0]}: cannot be run: {error.strerror or error}") from error
        if done.code:
            raise JudgeError(f"{words[0]}: exit code {done.code}: {clip(done.errors.strip(), _TOLD)}")
        return verdict_in_text(done.output)
