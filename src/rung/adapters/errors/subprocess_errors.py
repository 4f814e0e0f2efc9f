"""Programs that ended badly or not in time: what subprocess returns and raises."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from rung.core.classify.evidence import attribute, int_or_none, read_exception, text_of
from rung.core.domain.failures import Evidence, Phase

_TAIL: Final = 16_384  # characters kept of each stream: what went wrong stands at its end


def read(thing: object) -> Evidence | None:
    """What a finished program says; None of one that ended well."""
    command = attribute(thing, "cmd") or attribute(thing, "args")
    code = int_or_none(attribute(thing, "returncode"))
    seconds = attribute(thing, "timeout")
    if code == 0 or (code is None and not isinstance(seconds, int | float)):
        return None
    evidence = read_exception(thing) if isinstance(thing, Exception) else Evidence()
    return evidence._replace(
        text=_text(_program(command), code, seconds, thing),
        exit_code=code if code is not None and code > 0 else None,
        signal=-code if code is not None and code < 0 else None,
        phase=Phase.TOOL,
    )


def _text(program: str, code: int | None, seconds: object, thing: object) -> str:
    if code is None:
        ended = f"{program} was stopped after {seconds} seconds"
    else:
        ended = f"{program} was ended by signal {-code}" if code < 0 else f"{program} ended with exit code {code}"
    output, errors = (_tail(attribute(thing, name)) for name in ("stdout", "stderr"))
    return "\n".join(part for part in (ended, output, errors) if part)


def _tail(stream: object) -> str:
    return text_of(stream[-_TAIL:]).strip() if isinstance(stream, str | bytes) else ""


def _program(command: object) -> str:
    """The name of the program alone: its arguments and the variables set before it may hold keys."""
    words = command.split() if isinstance(command, str) else command
    if not isinstance(words, list | tuple):
        words = [command]
    first = next((word for word in map(text_of, words) if "=" not in word), "")
    return PurePath(first).name or "program"
