"""A judge that is a program: given the case as JSON on its standard input, it prints a verdict as JSON."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.errors import JudgeError
from rung.core.evidence import clip
from rung.detectors.judging import verdict_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.verdict import Verdict
    from rung.detectors.judging import Case

_TOLD: Final = 400


@dataclass(frozen=True, slots=True)
class CommandJudge:
    """Runs a command for each case; no shell, and nothing it starts stays behind."""

    command: Sequence[str] | str
    seconds: float = 120.0

    def __call__(self, case: Case) -> Verdict:
        """The command's verdict, or a JudgeError."""
        words = shlex.split(self.command) if isinstance(self.command, str) else list(self.command)
        try:
            process = subprocess.Popen(  # noqa: S603  # running the user's judge is what this is for
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise JudgeError(f"{words[0]}: cannot be run: {error.strerror or error}") from error
        try:
            output, errors = process.communicate(json.dumps(case.to_json()).encode(), timeout=self.seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            raise JudgeError(f"{words[0]}: no verdict within {self.seconds:g} s") from None
        except BaseException:
            _end(process)
            raise
        if process.returncode:
            told = clip(errors.decode("utf-8", "replace").strip(), _TOLD)
            raise JudgeError(f"{words[0]}: exit code {process.returncode}: {told}")
        return verdict_in(output.decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, 9)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.communicate()
