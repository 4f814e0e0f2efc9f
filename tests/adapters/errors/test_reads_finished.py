"""What subprocess returns and raises when a program ends badly or not at all."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence

FAILS = "import sys; print('working'); print('disk is full', file=sys.stderr); sys.exit(3)"
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def run(code: str, *, check: bool = False, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", code, "--token", "sk-secret"]
    return subprocess.run(words, capture_output=True, text=True, check=check, timeout=timeout)


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


@pytest.mark.parametrize("check", [False, True])
def test_a_program_that_fails(check: bool) -> None:
    """Exit code, output, then what it said on stderr; the arguments are not repeated."""
    evidence = seen(raised_by(lambda: run(FAILS, check=True))) if check else evidence_of(run(FAILS))
    assert (evidence.exit_code, evidence.signal, evidence.phase) == (3, None, Phase.TOOL)
    assert evidence.text.splitlines()[1:] == ["working", "disk is full"]
    assert "exit code 3" in evidence.text.splitlines()[0]
    assert "sk-secret" not in evidence.text
    assert evidence.exceptions[:1] == (("subprocess.CalledProcessError",) if check else ())


def test_a_program_that_is_killed() -> None:
    """A negative return code is a signal."""
    evidence = seen(raised_by(lambda: run(DIES, check=True)))
    assert (evidence.exit_code, evidence.signal) == (None, 9)
    assert "signal 9" in evidence.text


def test_a_program_that_takes_too_long() -> None:
    """What it printed before it was stopped is kept."""
    error = raised_by(lambda: run("import time; print('begun', flush=True); time.sleep(9)", timeout=0.3))
    evidence = seen(error)
    assert (evidence.exit_code, evidence.signal, evidence.phase) == (None, None, Phase.TOOL)
    assert "stopped after 0.3 seconds" in evidence.text
    assert "sk-secret" not in evidence.text
    assert evidence.exceptions[0] == "subprocess.TimeoutExpired"


def test_the_end_of_a_long_output_is_kept() -> None:
    """Of a megabyte the last lines matter."""
    evidence = evidence_of(run("import sys; print('x' * 1_000_000 + 'END', file=sys.stderr); sys.exit(1)"))
    assert evidence.text.endswith("xEND")
    assert len(evidence.text) < 20_000


def test_a_command_for_a_shell_with_a_key_before_it() -> None:
    """Variables set before the program are not its name."""
    done = subprocess.run("TOKEN=sk-secret false --key sk-secret", shell=True, check=False)
    assert evidence_of(done).text == "false ended with exit code 1"


def test_a_program_that_ended_well_is_no_trouble() -> None:
    """Its adapter has nothing to say."""
    from rung.adapters.errors.subprocess_errors import read

    assert read(run("print('fine')")) is None
    assert read(subprocess.Popen) is None
