"""A request with the project's notes: what is known about failures here, as data before the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.core.domain.request import Request

NOTES_PROMPT: Final = "notes"  # id of the prompt in events
_HEADING: Final = "What is known in this project about earlier failures:"


def with_notes(request: Request, notes: str) -> Request:
    """Return the request with the notes before its prompt, or before its messages; unchanged if it has neither."""
    if not notes:
        return request
    text = f"{_HEADING}\n{notes}"
    if request.messages:
        return request.replace(messages=({"role": "user", "content": text}, *request.messages))
    if not request.prompt:
        return request
    recovery = f"{text}\n\n{request.recovery}" if request.recovery else text
    return request.replace(prompt=f"{text}\n\n{request.prompt}", recovery=recovery)
