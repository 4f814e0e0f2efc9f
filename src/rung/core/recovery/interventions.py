"""What a person wants of a recovery without having been asked, and what that makes of its request."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.request import Request


class InterventionType(StrEnum):
    """What can be ordered."""

    RETRY = "retry"
    CANCEL = "cancel"


class Intervention(NamedTuple):
    """Attempt it now, changed so, or end it. `prompt` is what is said instead, or to the conversation's end."""

    action: InterventionType
    by: str = ""
    model: str = ""
    prompt: str = ""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Intervention:
        """An order as it was sent."""
        action = table.get("action")
        if action not in tuple(InterventionType):
            raise ConfigError("action", action, "one of " + ", ".join(InterventionType))
        return cls(InterventionType(action), *(str(table.get(name) or "") for name in cls._fields[1:]))

    def applied(self, request: Request) -> Request:
        """The request to attempt as ordered."""
        if self.model:
            request = request.replace(model=self.model)
        if not self.prompt:
            return request
        if request.messages:
            said = {"role": "user", "content": self.prompt}
            return request.replace(messages=(*request.messages, said), recovery=self.prompt)
        return request.replace(prompt=self.prompt, recovery=self.prompt)
