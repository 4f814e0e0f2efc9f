"""Agents that a settings file describes: a row of `[[agents]]` says how a command is recognised and continued."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.agents.agent_call import SESSION, AgentCall, json_field
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import ANY_TEXT, COMMAND, TEXT, TEXTS, setting, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACEHOLDER: Final = "{session}"


@settings
class OwnAgent:
    """One agent; a row of `[[agents]]`."""

    match: tuple[str, ...] = setting(TEXTS, "First words of its command; the first one is the program, without a path.")
    resume: tuple[str, ...] = setting(
        COMMAND, "Command that continues {session}; its prompt is on standard input, or {recovery}."
    )
    session_field: str = setting(TEXT, "Text field of its JSON output that holds the session id.", default="")
    session_pattern: str = setting(
        ANY_TEXT, "Regular expression for a line of its output; its one group is the session id.", default=""
    )
    start: tuple[str, ...] = setting(
        COMMAND, "Words added after `match` that give it the id of a new session, {session}.", default=()
    )
    lost: str = setting(ANY_TEXT, "Regular expression for its error about a session that it does not know.", default="")

    def __post_init__(self) -> None:
        if not self.match:
            raise ConfigError("match", self.match, "one word or more")
        if not _has_placeholder(self.resume):
            raise ConfigError("resume", self.resume, 'a command with {session}: ["my-agent", "--resume", "{session}"]')
        given = [bool(self.session_field), bool(self.session_pattern), bool(self.start)]
        if given.count(True) != 1:
            raise ConfigError("session_field", self.session_field, "one of session_field, session_pattern and start")
        if self.start and not _has_placeholder(self.start):
            raise ConfigError("start", self.start, 'words with {session}: ["--session", "{session}"]')
        for key in ("session_pattern", "lost"):
            _check_pattern(key, getattr(self, key), groups=1 if key == "session_pattern" else None)

    def read(self, words: Sequence[str]) -> AgentCall | None:
        """Return the call in a command line whose first word is the program; None if it is not this agent's."""
        size = len(self.match)
        named = (words[0].rsplit("/", 1)[-1], *words[1:size])
        if named != self.match:
            return None
        patterns = [json_field(self.session_field)] if self.session_field else []
        patterns += [re.compile(self.session_pattern)] if self.session_pattern else []
        return AgentCall(
            program=self.match[0],
            start=(*words[:size], *_with_session(self.start), *words[size:]),
            resume=_with_session(self.resume),
            id_patterns=tuple(patterns),
            lost=re.compile(self.lost) if self.lost else None,
        )


def _has_placeholder(words: Sequence[str]) -> bool:
    return any(_PLACEHOLDER in word for word in words)


def _with_session(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.replace(_PLACEHOLDER, SESSION) for word in words)


def _check_pattern(key: str, text: str, *, groups: int | None) -> None:
    allowed = "a regular expression" + ("" if groups is None else " with one group")
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(key, text, f"{allowed} ({error})") from None
    if text and groups is not None and pattern.groups != groups:
        raise ConfigError(key, text, allowed)
