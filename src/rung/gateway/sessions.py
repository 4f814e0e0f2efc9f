"""Session table: maps requests to sessions, which hold the current model and the tries spent."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import short_hash
from rung.engine.session import Session
from rung.gateway.inbound_request import NotJson
from rung.wires.wire_json import json_object, object_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.gateway.inbound_request import InboundRequest

    _Key = tuple[str, str, str]  # caller, session id, model

MAX_SESSIONS: Final = 10_000  # least recently created sessions are evicted
_FINGERPRINT_CHARACTERS: Final = 4_000  # of the first message
_MAX_ID_CHARACTERS: Final = 200
_KEY_DIGITS: Final = 12  # of a key's hash, in the names of its sessions
_METADATA_NAMES: Final = ("session_id", "sessionId", "conversation_id", "thread_id")


class SessionTable:
    """Sessions by caller, id and model; without an id, the beginning of the conversation identifies it."""

    def __init__(self, seconds: float) -> None:
        self.ttl_seconds = seconds
        self._sessions: OrderedDict[_Key, tuple[Session, float]] = OrderedDict()
        self._left: set[_Key] = set()  # sessions that left their model because of an outage

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, inbound: InboundRequest, now: float) -> Session | None:
        """Return the session of a request, or None if nothing is stored for it."""
        if not self._sessions:
            return None
        return self._usable(inbound, _key(inbound), now)

    def mark_left(self, inbound: InboundRequest) -> None:
        """Note that the session of a request left its model because of an outage, which ends."""
        key = _key(inbound)
        if key in self._sessions:
            self._left.add(key)

    def has_left(self, inbound: InboundRequest) -> bool:
        """Return whether the session of a request left its model because of an outage."""
        return bool(self._left) and _key(inbound) in self._left

    def forget(self, inbound: InboundRequest) -> None:
        """Forget the session of a request: its next request begins on its own model."""
        self._drop(_key(inbound))

    def _drop(self, key: _Key) -> None:
        self._left.discard(key)
        self._sessions.pop(key, None)

    def get_or_create(self, inbound: InboundRequest, now: float) -> Session:
        """Return the session of a request; create it if there is none."""
        key = _key(inbound)
        session = self._usable(inbound, key, now)
        if session is None:
            session = Session(model=inbound.model, id=key[1])
            self._sessions[key] = (session, now)
            while len(self._sessions) > MAX_SESSIONS:
                self._drop(next(iter(self._sessions)))
        return session

    def _usable(self, inbound: InboundRequest, key: _Key, now: float) -> Session | None:
        """Return a session that has not expired and is on a model that the key of the request may use."""
        entry = self._sessions.get(key)
        if entry is None:
            return None
        if now - entry[1] > self.ttl_seconds or not inbound.may_use(entry[0].model):
            self._drop(key)
            return None
        return entry[0]


def session_id(inbound: InboundRequest) -> str:
    """Return the session id of a request: the one it names, else a fingerprint of caller and conversation."""
    if inbound.session:
        return inbound.session
    try:
        body = inbound.parsed()
    except NotJson:  # left to the upstream to reject
        return ""
    named = _named_in_body(body)
    if named:
        return qualified(inbound.key_hash, named[:_MAX_ID_CHARACTERS])
    return "began-" + short_hash(inbound.caller + _beginning(inbound.wire.bodies.history(body)), 8)


def qualified(key_hash: str, session: str) -> str:
    """Return the name of a session, which belongs to the key that it was named with."""
    return f"{key_hash[:_KEY_DIGITS]}/{session}" if key_hash and session else session


def belongs_to(key_hash: str, session: str) -> bool:
    """Return whether a session was named with this key."""
    return session.startswith(f"{key_hash[:_KEY_DIGITS]}/")


def _key(inbound: InboundRequest) -> _Key:
    return (inbound.caller, session_id(inbound), inbound.model)


def _named_in_body(body: dict[str, Any]) -> str:
    """Return the session that a body names: in its metadata (Claude Code, qwen), or as a conversation at the provider."""
    metadata = object_field(body, "metadata")
    user = str(metadata.get("user_id") or "")
    table = metadata | json_object(user) if user.startswith("{") else metadata
    found = next((table[name] for name in _METADATA_NAMES if isinstance(table.get(name), str)), "")
    if found:
        return str(found)
    _, marked, session = user.rpartition("_session_")
    conversation = body.get("conversation")
    at_provider = conversation if isinstance(conversation, str) else object_field(body, "conversation").get("id")
    return session if marked else str(at_provider or "")


def _beginning(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return how a conversation began: its first message that is no system prompt, without what moves between requests.

    The system prompt is that of an application, not of one conversation. Cache marks move from turn to turn.
    """
    first = next((each for each in messages if each.get("role") not in ("system", "developer")), None)
    content = first.get("content") if first is not None else None
    parts = content if isinstance(content, list) else [content]
    return "".join(_part_text(part) for part in parts)[:_FINGERPRINT_CHARACTERS]


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return str(part)
    text = part.get("text")
    return text if isinstance(text, str) else str({key: part[key] for key in sorted(part) if key != "cache_control"})
