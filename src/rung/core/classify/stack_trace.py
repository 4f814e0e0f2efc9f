"""Stack traces of exceptions as text: where each frame is, without the source, which would have to be read from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.classify.untrusted_objects import class_name

if TYPE_CHECKING:
    from types import TracebackType

    from rung.core.domain.failures import Evidence

MAX_FRAMES: Final = 20  # of one exception: the last ones, which show the error
MAX_STACK_CHARS: Final = 4_000
_MAX_LINKS: Final = 4
_OWN_PACKAGE: Final = "rung."


def stack_of(error: BaseException, traceback: TracebackType | None = None) -> str:
    """Return the frames of an exception and of its causes, innermost frame last; empty if none is the caller's own.

    `traceback` is that of an earlier time, for an exception that may have been raised again since. Frames of Rung itself
    are left out: they say nothing about the work. Secrets are redacted. Never raises.
    """
    try:
        stack = _stack(error, traceback)
    except Exception:  # noqa: BLE001  # a third-party attribute may raise anything
        return ""
    return redacted(clip(stack, MAX_STACK_CHARS)) if stack else ""


def with_stack(evidence: Evidence, error: BaseException, traceback: TracebackType | None = None) -> Evidence:
    """Return the evidence with the stack of its exception, unless it has one; `traceback` as in `stack_of`."""
    stack = "" if evidence.stack else stack_of(error, traceback)
    return evidence._replace(stack=stack) if stack else evidence


def _stack(error: BaseException, traceback: TracebackType | None) -> str:
    parts: list[str] = []
    link: BaseException | None = error
    for _ in range(_MAX_LINKS):
        if link is None:
            break
        frames = _frames(traceback or link.__traceback__)
        traceback = None  # of the first one only
        if frames:
            parts.append("\n".join((*frames[-MAX_FRAMES:], class_name(link))))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "\ncaused by:\n".join(parts)


def _frames(traceback: TracebackType | None) -> list[str]:
    frames = []
    while traceback is not None:
        frame = traceback.tb_frame
        if not str(frame.f_globals.get("__name__")).startswith(_OWN_PACKAGE):
            code = frame.f_code
            frames.append(f'File "{code.co_filename}", line {traceback.tb_lineno}, in {code.co_name}')
        traceback = traceback.tb_next
    return frames
