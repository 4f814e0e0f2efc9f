"""Session table: maps requests to sessions, which hold the current model and the tries spent."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import short_hash
from rung.engine.session import Session
from rung.gateway.inbound_request import NotJson

if TYPE_CHECKING:
    from rung.gateway.inbound_request import InboundRequest

MAX_SESSIONS: Final = 10_000  # least recently created sessions are evicted
_FINGERPRINT_CHARACTERS: Final = 4_000  # of the first message


class SessionTable:
    """Sessions by id and model; without an id, the first message identifies the conversation."""

    def __init__(self, seconds: float) -> None:
        self.ttl_seconds = seconds
        self._sessions: OrderedDict[tuple[str, str], tuple[Session, float]] = OrderedDict()
        self._overrides: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, inbound: InboundRequest, now: float) -> Session | None:
        """Return the session of a request, or None if nothing is stored for it."""
        if self._overrides and (override := self._overrides.get(inbound.session)):
            return Session(model=override, id=inbound.session)
        if not self._sessions:
            return None
        return self._unexpired((self.session_id(inbound), inbound.model), now)

    def set_overrides(self, models: dict[str, str]) -> None:
        """Pin sessions to the models that operators chose; an empty model removes the pin."""
        self._overrides = {session: model for session, model in models.items() if model}

    def get_or_create(self, inbound: InboundRequest, now: float) -> Session:
        """Return the session of a request; create it if there is none."""
        name = self.session_id(inbound)
        session = self._unexpired((name, inbound.model), now)
        if session is None:
            session = Session(model=inbound.model, id=name)
            self._sessions[name, inbound.model] = (session, now)
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def _unexpired(self, key: tuple[str, str], now: float) -> Session | None:
        entry = self._sessions.get(key)
        if entry is None:
            return None
        if now - entry[1] > self.ttl_seconds:
            del self._sessions[key]
            return None
        return entry[0]

    @staticmethod
    def session_id(inbound: InboundRequest) -> str:
        """Return the session id of a request: the one it names, else a fingerprint of the conversation."""
        if inbound.session:
            return inbound.session
        try:
            return _fingerprint(inbound.parsed())
        except NotJson:  # left to the upstream to reject
            return ""


def _fingerprint(body: dict[str, Any]) -> str:
    """Return a digest of the first message, which all requests of a conversation share."""
    messages = body.get("messages", body.get("input"))
    first = messages[0] if isinstance(messages, list) and messages else messages
    return "began-" + short_hash(str(first)[:_FINGERPRINT_CHARACTERS], 8)
