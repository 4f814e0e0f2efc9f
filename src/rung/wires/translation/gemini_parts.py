"""Parts of Gemini's contents: part to neutral part, and back to the same part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.translation.gemini_fields import INVENTED_ID, merged, snake_case, spelled, with_prefix
from rung.wires.wire_json import json_object, load_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Fields = Mapping[str, Any]

_OWN: Final = Family.GEMINI
_DATA: Final = frozenset(
    {
        "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
        "toolCall", "toolResponse",
    }
)  # fmt: skip
_CALL: Final = frozenset({"id", "name", "args"})
_RESULT: Final = frozenset({"id", "name", "response"})
_KINDS: Final = {"image": MediaKind.IMAGE, "audio": MediaKind.AUDIO, "video": MediaKind.VIDEO}
_SUFFIXES: Final = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "heic": "image/heic", "pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "html": "text/html",
    "csv": "text/csv", "json": "application/json", "mp3": "audio/mp3", "wav": "audio/wav", "mp4": "video/mp4",
    "webm": "video/webm", "mov": "video/quicktime",
}  # fmt: skip
# Only Google can read these files; other providers can fetch any other https address.
_GOOGLE_FILES: Final = ("gs://", "files/", "https://generativelanguage.googleapis.com/", "https://storage.cloud.google")


# -- reading -------------------------------------------------------------------------------------------------------------


def read_part(raw: Fields, call_id: Callable[[Fields], str], result_id: Callable[[Fields], str]) -> Part:
    """Read one part. What has no neutral form stays as it is. The functions give the ids of calls and of results."""
    part = spelled(raw)
    if len(part) == 1:  # the usual form
        key, value = next(iter(part.items()))
        found = _read_data(key, value, NOTHING, call_id, result_id)
        return found if found is not None else _foreign(part, key)
    data = [key for key in part if key in _DATA]
    if part.get("thought") is True or ("thoughtSignature" in part and not (data and part[data[0]])):
        return _reasoning(part)
    if len(data) != 1:
        return _foreign(part, "part")
    rest = {name: item for name, item in part.items() if name != data[0]}
    found = _read_data(data[0], part[data[0]], rest, call_id, result_id)
    return found if found is not None else _foreign(part, data[0])


def _foreign(part: Fields, name: str) -> Part:
    return (
        _reasoning(part) if name == "thoughtSignature" else ForeignPart(family=_OWN, block=part, kind=snake_case(name))
    )


def _reasoning(part: Fields) -> ReasoningPart:
    text = part.get("text")
    return ReasoningPart(family=_OWN, block=part, text=text if isinstance(text, str) else "")


def _read_data(
    key: str, value: Any, rest: Fields, call_id: Callable[[Fields], str], result_id: Callable[[Fields], str]
) -> Part | None:
    if key == "text":
        family = _OWN if rest else None
        return TextPart(text=value, extras=rest, family=family) if isinstance(value, str) else None
    if not isinstance(value, dict):
        return None
    fields = spelled(value)
    if key == "functionCall":
        return _read_call(fields, rest, call_id)
    if key == "functionResponse":
        return _read_result(fields, rest, result_id)
    return _read_media(key, fields, rest)


def _read_call(call: Fields, rest: Fields, call_id: Callable[[Fields], str]) -> ToolCallPart | None:
    name, arguments = call.get("name"), call.get("args")
    if (
        not isinstance(name, str)
        or not isinstance(arguments, dict | None)
        or not isinstance(call.get("id"), str | None)
    ):
        return None
    extras = rest if call.keys() <= _CALL else {**rest, **with_prefix("functionCall", call, _CALL)}
    return ToolCallPart(id=call_id(call), name=name, arguments=json_text(arguments or {}), extras=extras, family=_OWN)


def _read_result(result: Fields, rest: Fields, result_id: Callable[[Fields], str]) -> ToolResultPart | None:
    name, response, media = result.get("name"), result.get("response"), result.get("parts")
    if not isinstance(name, str) or not isinstance(response, dict) or not isinstance(result.get("id"), str | None):
        return None
    text, is_error = _result_text(response)
    parts: tuple[TextPart | MediaPart, ...] = (TextPart(text=text),) if text else ()
    extras = rest
    if not result.keys() <= _RESULT:
        found = [_read_item(item) for item in media] if isinstance(media, list) else []
        parts += tuple([part for part in found if isinstance(part, MediaPart)])
        known = _RESULT | {"parts"} if all(isinstance(part, MediaPart) for part in found) else _RESULT
        extras = {**rest, **with_prefix("functionResponse", result, known)}
    return ToolResultPart(
        call_id=result_id(result), name=name, parts=parts, is_error=is_error, extras=extras or NOTHING, family=_OWN
    )


def _read_item(item: object) -> Part | None:
    """Read a part of a function response, which contains media only."""
    return read_part(item, lambda _: "", lambda _: "") if isinstance(item, dict) else None


def _result_text(response: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of a response, and whether it is an error."""
    if len(response) == 1:
        key, value = next(iter(response.items()))
        if key in ("output", "error", "result"):
            return value if isinstance(value, str) else json_text(value), key == "error"
    return json_text(response), False


def _read_media(key: str, data: Fields, rest: Fields) -> MediaPart | None:
    mime, name = data.get("mimeType", ""), data.get("displayName", "")
    field = {"inlineData": "data", "fileData": "fileUri"}.get(key)
    value = data.get(field) if field is not None else None
    if (
        field is None
        or not isinstance(value, str)
        or not value
        or not isinstance(mime, str)
        or not isinstance(name, str)
    ):
        return None
    place = "data" if field == "data" else "file_id" if value.startswith(_GOOGLE_FILES) else "url"
    known = mime or (guessed_type(value) if field == "fileUri" else "")
    extras = {**rest, **with_prefix(key, data, ("mimeType", "displayName", field))}
    content: dict[str, Any] = {place: value}
    kind = _KINDS.get(known.partition("/")[0], MediaKind.DOCUMENT)
    return MediaPart(kind=kind, mime_type=known, name=name, extras=extras or NOTHING, family=_OWN, **content)


def guessed_type(address: str) -> str:
    """Return the media type that the suffix of an address tells, or an empty string."""
    if "youtube.com/" in address or "youtu.be/" in address:
        return "video/mp4"
    return _SUFFIXES.get(address.partition("?")[0].rpartition(".")[2].lower(), "")


# -- writing -------------------------------------------------------------------------------------------------------------


def own_part(part: Part) -> dict[str, Any]:
    """Write a part of a conversation that was read from Gemini's wire."""
    match part:
        case TextPart(text=text):
            return {"text": text} if part.family is not _OWN else {"text": text, **part.extras}
        case ReasoningPart() | ForeignPart():
            return dict(part.block)
        case ToolCallPart():
            return merged({"functionCall": written_call(part)}, _own_extras(part))
        case ToolResultPart():
            return _own_result(part)
        case MediaPart():
            return _own_media(part)
    return {"text": part.text}


def _own_extras(part: ToolCallPart | ToolResultPart | MediaPart) -> Fields:
    return part.extras if part.family is _OWN else NOTHING


def _own_result(part: ToolResultPart) -> dict[str, Any]:
    written = written_result(part, part.name)
    media = [own_part(item) for item in part.parts if isinstance(item, MediaPart)]
    return merged({"functionResponse": {**written, "parts": media} if media else written}, _own_extras(part))


def written_call(part: ToolCallPart) -> dict[str, Any]:
    """Write a function call. Arguments that are not a JSON object are kept as text."""
    arguments = object_of(part.arguments)
    if arguments is None:
        arguments = {"arguments": part.arguments}
    if part.id.startswith(INVENTED_ID):
        return {"name": part.name, "args": arguments}
    return {"id": part.id, "name": part.name, "args": arguments}


def written_result(part: ToolResultPart, name: str) -> dict[str, Any]:
    """Write a function response without its media."""
    text = "\n".join([item.text for item in part.parts if isinstance(item, TextPart)])
    response = response_of(text, is_error=part.is_error)
    if part.call_id.startswith(INVENTED_ID):
        return {"name": name, "response": response}
    return {"id": part.call_id, "name": name, "response": response}


def response_of(text: str, *, is_error: bool) -> dict[str, Any]:
    """Return the response that a function gives: an object as it is, any other text as `output` or `error`."""
    if is_error:
        return {"error": text}
    found = object_of(text) if _is_object_like(text) else None
    return {"output": text} if found is None else found


def _own_media(part: MediaPart) -> dict[str, Any]:
    key, field = ("inlineData", "data") if part.data else ("fileData", "fileUri")
    data = {"mimeType": part.mime_type, field: part.data or part.file_id or part.url, "displayName": part.name}
    return merged({key: {name: value for name, value in data.items() if value}}, _own_extras(part))


# -- JSON ----------------------------------------------------------------------------------------------------------------


def json_text(value: Any) -> str:
    """Return the JSON text of a value."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer of more than 64 bits, or half of a surrogate pair
        return to_json(value)


def object_of(text: str) -> dict[str, Any] | None:
    """Parse a JSON object; an empty text is an empty object. Return None if it is not one."""
    if not text:
        return {}
    try:
        found = load_json(text)
    except orjson.JSONDecodeError:
        return json_object(text) or None
    return found if isinstance(found, dict) else None


def _is_object_like(text: str) -> bool:
    return text.startswith("{") and text.endswith("}")
