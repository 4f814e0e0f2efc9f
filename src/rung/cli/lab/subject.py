"""The command that the lab tests: runs it against the lab, and checks the effects of a run."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.process import RunningProcess
from rung.cli.agent_endpoints import point_command
from rung.core.domain.errors import AttemptError, AttemptTimeout, ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rung.testing.provider import Lab
    from rung.testing.provider.fault_report import FaultRun

REMOVED_VARIABLES: Final = (
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
)  # they would take precedence over the dummy keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A command with its environment and input, and the shell commands around each run of it."""

    given_words: tuple[str, ...]  # as the user wrote them
    words: tuple[str, ...]  # pointed at the lab
    env: Mapping[str, str]
    given: str
    seconds: float
    check: str = ""
    reset: str = ""

    @classmethod
    def of(cls, words: Sequence[str], lab: Lab, given: str, scratch: Path, options: Mapping[str, Any]) -> Subject:
        """Point a command at the lab."""
        env = {key: value for key, value in os.environ.items() if key not in REMOVED_VARIABLES}
        env |= lab.env | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        pointed = point_command(words, lab.url, env, scratch)
        return cls(
            given_words=tuple(words), words=pointed.words, env={**env, **pointed.env}, given=given,
            seconds=options["seconds"], check=options["check"], reset=options["reset"],
        )  # fmt: skip

    def run(self) -> FaultRun:
        """Restore the starting state, run the command, and check its effects."""
        if self.reset:
            code = self._shell(self.reset, "").exit_code
            if code != 0:
                how = "it timed out" if code is None else f"it exits {code}"
                raise ConfigError("--reset", self.reset, f"a command that succeeds; {how}")
        run = self._execute(self.words, self.given)
        if not self.check:
            return run
        return replace(run, is_checked=self._shell(self.check, run.output).exit_code == 0)

    def _shell(self, command: str, given: str) -> FaultRun:
        return self._execute(("/bin/sh", "-c", command), given)

    def _execute(self, words: Sequence[str], given: str) -> FaultRun:
        from rung.testing.provider.fault_report import FaultRun

        began = time.monotonic()
        try:
            process = RunningProcess(words, given, env=self.env)
        except AttemptError as error:
            text = f"a command that can be run ({error.evidence.text})"
            raise ConfigError("command", shlex.join(self.given_words), text) from None
        try:
            done = process.completed(self.seconds)
            code: int | None = done.code
            output = done.output
        except AttemptTimeout:
            code, output = None, process.output_text()
        return FaultRun(exit_code=code, output=output, seconds=time.monotonic() - began)
