"""Session table: maps requests to sessions, which hold the current model and the tries spent."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import short_hash
from rung.engine.session import Session
from rung.gateway.inbound_request import NotJson

if TYPE_CHECKING:
    from rung.gateway.inbound_request import InboundRequest

    _Key = tuple[str, str, str]  # caller, session id, model

MAX_SESSIONS: Final = 10_000  # least recently created sessions are evicted
_FINGERPRINT_CHARACTERS: Final = 4_000  # of the first message


class SessionTable:
    """Sessions by caller, id and model; without an id, the first message identifies the conversation."""

    def __init__(self, seconds: float) -> None:
        self.ttl_seconds = seconds
        self._sessions: OrderedDict[_Key, tuple[Session, float]] = OrderedDict()
        self._overrides: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, inbound: InboundRequest, now: float) -> Session | None:
        """Return the session of a request, or None if nothing is stored for it."""
        override = self._overrides.get(inbound.session) if self._overrides else None
        if override and inbound.may_use(override):
            return Session(model=override, id=inbound.session)
        if not self._sessions:
            return None
        return self._usable(inbound, _key(inbound), now)

    def set_overrides(self, models: dict[str, str]) -> None:
        """Pin sessions to the models that operators chose; an empty model removes the pin."""
        self._overrides = {session: model for session, model in models.items() if model}

    def get_or_create(self, inbound: InboundRequest, now: float) -> Session:
        """Return the session of a request; create it if there is none."""
        key = _key(inbound)
        session = self._usable(inbound, key, now)
        if session is None:
            session = Session(model=inbound.model, id=key[1])
            self._sessions[key] = (session, now)
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def _usable(self, inbound: InboundRequest, key: _Key, now: float) -> Session | None:
        """Return a session that has not expired and is on a model that the key of the request may use."""
        entry = self._sessions.get(key)
        if entry is None:
            return None
        if now - entry[1] > self.ttl_seconds or not inbound.may_use(entry[0].model):
            del self._sessions[key]
            return None
        return entry[0]


def session_id(inbound: InboundRequest) -> str:
    """Return the session id of a request: the one it names, else a fingerprint of caller and conversation."""
    if inbound.session:
        return inbound.session
    try:
        return _fingerprint(inbound.caller, inbound.parsed())
    except NotJson:  # left to the upstream to reject
        return ""


def _key(inbound: InboundRequest) -> _Key:
    return (inbound.caller, session_id(inbound), inbound.model)


def _fingerprint(caller: str, body: dict[str, Any]) -> str:
    """Return a digest of the first message, which all requests of a conversation share."""
    messages = body.get("messages", body.get("input"))
    first = messages[0] if isinstance(messages, list) and messages else messages
    return "began-" + short_hash(caller + str(first)[:_FINGERPRINT_CHARACTERS], 8)
