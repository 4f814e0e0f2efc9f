"""Paths of Gemini's API: the model and the method are in the path, not in the body."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

GENERATE: Final = "generateContent"
STREAM: Final = "streamGenerateContent"
_PATH: Final = re.compile(r"(/v1[a-z0-9]*)/(models|tunedModels)/([^/:]+):(\w+)")
_MODELS: Final = "models"
_VERSION: Final = "/v1beta"
_EVENTS: Final = "alt=sse"


class GeminiPath(NamedTuple):
    """A path such as `/v1beta/models/gemini-2.5-pro:generateContent`."""

    version: str  # with its slash
    model: str  # with its collection, if that is not `models`
    method: str

    @property
    def is_generation(self) -> bool:
        """Return whether it is a model call."""
        return self.method in (GENERATE, STREAM)

    def __str__(self) -> str:
        name = quote(self.model, safe="/-._~!$&'()*+,=@")
        return f"{self.version}/{name if '/' in name else f'{_MODELS}/{name}'}:{self.method}"


@lru_cache(maxsize=512)  # clients use few models
def parse_path(path: str) -> GeminiPath | None:
    """Return the parts of a path without its query; None if it is no method of a model."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    version, collection, name, method = found.groups()
    model = unquote(name)
    return GeminiPath(version, model if collection == _MODELS else f"{collection}/{model}", method)


def generation_path(model: str) -> str:
    """Return the path of a call of a model whose answer comes whole."""
    return str(GeminiPath(_VERSION, model, GENERATE))


def with_events(target: str) -> str:
    """Return the target of a streamed call that asks for server-sent events; without `alt=sse` it asks for an array."""
    path, _, query = target.partition("?")
    if not path.endswith(f":{STREAM}"):
        return target
    kept = [pair for pair in query.split("&") if pair and not pair.startswith(("alt=", "$alt=", "%24alt="))]
    return f"{path}?{'&'.join([*kept, _EVENTS])}"


def asks_for_array(target: str) -> bool:
    """Return whether a streamed call asks for a JSON array."""
    path, _, query = target.partition("?")
    return path.endswith(f":{STREAM}") and _EVENTS not in query.split("&")


def for_model(target: str, model: str) -> str:
    """Return the target of the same call of another model."""
    path, question, query = target.partition("?")
    parsed = parse_path(path)
    return target if parsed is None else f"{parsed._replace(model=model)}{question}{query}"


def for_whole_answer(target: str, model: str) -> str:
    """Return the target of a call whose answer comes whole."""
    parsed = parse_path(target.partition("?")[0])
    return target if parsed is None else str(parsed._replace(model=model, method=GENERATE))
