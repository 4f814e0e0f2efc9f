"""Which calls belong together, and what is remembered of them: the model they are on, the tries they have spent."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import short_hash
from rung.engine.session import Session
from rung.gateway.inbound_request import NotJson

if TYPE_CHECKING:
    from rung.gateway.inbound_request import InboundRequest

LIMIT: Final = 10_000  # sessions that are remembered
_FIRST: Final = 4_000  # characters of a conversation's beginning by which it is known


class SessionTable:
    """Sessions by what the agent calls them, else by how their conversation began; each model has its own."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._by_name: OrderedDict[tuple[str, str], tuple[Session, float]] = OrderedDict()
        self._ordered: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def known(self, call: InboundRequest, now: float) -> Session | None:
        """The session of a call, if there is anything to remember of it."""
        if self._ordered and (told := self._ordered.get(call.session)):
            return Session(model=told, id=call.session)
        if not self._by_name:
            return None
        return self._fresh((self.name(call), call.model), now)

    def told(self, models: dict[str, str]) -> None:
        """People have put these sessions on these models; an empty one lets a session go."""
        self._ordered = {session: model for session, model in models.items() if model}

    def get(self, call: InboundRequest, now: float) -> Session:
        """The session of a call, begun now if it was not known."""
        name = self.name(call)
        session = self._fresh((name, call.model), now)
        if session is None:
            session = Session(model=call.model, id=name)
            self._by_name[name, call.model] = (session, now)
            while len(self._by_name) > LIMIT:
                self._by_name.popitem(last=False)
        return session

    def _fresh(self, key: tuple[str, str], now: float) -> Session | None:
        found = self._by_name.get(key)
        if found is None:
            return None
        if now - found[1] > self.seconds:
            del self._by_name[key]
            return None
        return found[0]

    @staticmethod
    def name(call: InboundRequest) -> str:
        """What its session is called."""
        if call.session:
            return call.session
        try:
            return _beginning(call.parsed())
        except NotJson:  # the upstream's to refuse
            return ""


def _beginning(body: dict[str, Any]) -> str:
    """A digest of how a conversation began: later calls of it begin alike."""
    messages = body.get("messages", body.get("input"))
    first = messages[0] if isinstance(messages, list) and messages else messages
    return "began-" + short_hash(str(first)[:_FIRST], 8)
