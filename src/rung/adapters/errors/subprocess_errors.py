"""Results and exceptions of subprocess: programs that failed or timed out."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from rung.core.classify.evidence import read_exception, text_of
from rung.core.classify.untrusted_objects import attribute, int_or_none
from rung.core.domain.failures import Evidence, Phase

_MAX_TAIL_CHARACTERS: Final = 16_384  # characters of each stream: the error is at the end


def read(obj: object) -> Evidence | None:
    """Return evidence from a failed program, or None if it succeeded."""
    command = attribute(obj, "cmd") or attribute(obj, "args")
    code = int_or_none(attribute(obj, "returncode"))
    seconds = attribute(obj, "timeout")
    if code == 0 or (code is None and not isinstance(seconds, int | float)):
        return None
    evidence = read_exception(obj) if isinstance(obj, Exception) else Evidence()
    return evidence._replace(
        text=_text(_program(command), code, seconds, obj),
        exit_code=code if code is not None and code > 0 else None,
        signal=-code if code is not None and code < 0 else None,
        phase=Phase.TOOL,
    )


def _text(program: str, code: int | None, seconds: object, obj: object) -> str:
    # These texts are input of the classifier: phrases such as "timed out after" and "killed" have rules.
    if code is None:
        summary = f"{program} was stopped after {seconds} seconds"
    else:
        summary = f"{program} was ended by signal {-code}" if code < 0 else f"{program} ended with exit code {code}"
    output, errors = (_tail(attribute(obj, name)) for name in ("stdout", "stderr"))
    return "\n".join(part for part in (summary, output, errors) if part)


def _tail(stream: object) -> str:
    return text_of(stream[-_MAX_TAIL_CHARACTERS:]).strip() if isinstance(stream, str | bytes) else ""


def _program(command: object) -> str:
    """Return the program name only. Arguments and environment assignments may contain secrets."""
    words = command.split() if isinstance(command, str) else command
    if not isinstance(words, list | tuple):
        words = [command]
    first = next((word for word in map(text_of, words) if "=" not in word), "")
    return PurePath(first).name or "program"
