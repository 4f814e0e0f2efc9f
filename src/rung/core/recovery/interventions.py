"""Interventions: a person retries or cancels a running recovery without having been asked."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.domain.request import Request


class InterventionType(StrEnum):
    """Action that a person can request."""

    RETRY = "retry"
    CANCEL = "cancel"


class Intervention(NamedTuple):
    """Request to retry at once, optionally with another model or prompt, or to cancel.

    `prompt` replaces the request's prompt; in a conversation it is appended as a user message, in place of the one that an
    earlier intervention or rung has appended.
    """

    action: InterventionType
    by: str = ""
    model: str = ""
    prompt: str = ""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Intervention:
        """Parse an intervention from its JSON object."""
        action = table.get("action")
        if action not in tuple(InterventionType):
            raise ConfigError("action", action, "one of " + ", ".join(InterventionType))
        return cls(InterventionType(action), *(str(table.get(name) or "") for name in cls._fields[1:]))

    def apply_to(self, request: Request) -> Request:
        """Return the request with the intervention's model and prompt."""
        if self.model:
            request = request.replace(model=self.model)
        if not self.prompt:
            return request
        if request.messages:
            message = {"role": "user", "content": self.prompt}
            return request.replace(messages=(*_without_recovery(request), message), recovery=self.prompt)
        return request.replace(prompt=self.prompt, recovery=self.prompt)


def _without_recovery(request: Request) -> Sequence[Mapping[str, Any]]:
    """Return the messages without a recovery text at their end: a repeated retry tells about the last failure alone."""
    messages = request.messages
    is_told = bool(request.recovery) and messages[-1] == {"role": "user", "content": request.recovery}
    return messages[:-1] if is_told else messages
