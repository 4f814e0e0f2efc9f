"""Change of a request, as a durable run records it: the request of a rung, relative to the one its caller passes.

A text of the caller's request, or a secret in it, is recorded as a reference. A resumed run looks it up in the request
that its caller passes again: so the journal holds no secret of the caller, and the resumed request is never a redacted
or clipped copy. What a rung or a planner added is recorded whole.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rung.core.classify.redaction import secrets_in
from rung.core.domain.event_codec import record_to_json

if TYPE_CHECKING:
    from rung.core.domain.request import Request

Path: TypeAlias = tuple[Any, ...]

MIN_SHARED_CHARS: Final = 16  # shorter texts of the caller are copied: they occur in other texts by chance
MIN_SECRET_CHARS: Final = 6
MAX_SEARCHED_TEXTS: Final = 64  # texts of the caller that are searched for inside longer ones
_COPIED: Final = (int, float, bytes)  # equal ones may be one object, so identity does not tell where they come from


def describe_change(base: Request, changed: Request) -> dict[str, Any]:
    """Return the change from `base` to `changed` as JSON; raise TypeError if a new value has no JSON form."""
    encoder = _Encoder(base)
    fields = {name: encoder.encode(getattr(changed, name), (name,)) for name in base.changed(changed)}
    return {"base": base.digest(), "digest": changed.digest(), "fields": fields}


def apply_change(base: Request, change: Mapping[str, Any]) -> Request:
    """Return `base` with the change applied; raise LookupError if `base` lacks what the change refers to.

    The change may have been made to another request, for example one with an older token.
    """
    decode = _Decoder(base).decode
    fields = {name: decode(value) for name, value in change["fields"].items()}
    changed = base.replace(**fields)
    if change["base"] == base.digest() and change["digest"] != changed.digest():
        raise LookupError("the recorded change does not lead to the recorded request")
    return changed


def _secrets(request: Request) -> list[str]:
    """Return the secrets of a request in a fixed order. A secret with a name is found next to it, so in its JSON."""
    found = secrets_in(json.dumps(record_to_json(request), ensure_ascii=False))
    return [_unescape(secret) for secret in found]


def _unescape(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield every value inside a value, with its path."""
    yield path, value
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _walk(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _walk(item, (*path, index))


class _Encoder:
    """Encodes values of a changed request, with references to the caller's request."""

    def __init__(self, base: Request) -> None:
        self._by_text: dict[str, Path] = {}
        self._by_id: dict[int, Path] = {}
        for name in ("prompt", "messages", "params"):
            for path, value in _walk(getattr(base, name), (name,)):
                if not isinstance(value, str):
                    if value is not None and not isinstance(value, _COPIED) and value != ():
                        self._by_id.setdefault(id(value), path)
                elif len(value) >= MIN_SHARED_CHARS:
                    self._by_text.setdefault(value, path)
        self._searched = sorted(self._by_text, key=len, reverse=True)[:MAX_SEARCHED_TEXTS]
        secrets = {secret: n for n, secret in enumerate(_secrets(base)) if len(secret) >= MIN_SECRET_CHARS}
        self._secrets = sorted(secrets.items(), key=lambda item: len(item[0]), reverse=True)

    def encode(self, value: Any, path: Path) -> Any:
        """Return a value as JSON, with references."""
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if isfinite(value) else {"$float": repr(value)}
        if id(value) in self._by_id:
            return {"$caller": list(self._by_id[id(value)])}
        if isinstance(value, Mapping):
            return self._table(value, path)
        if isinstance(value, list | tuple):
            items = [self.encode(item, (*path, n)) for n, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, bytes):
            return {"$bytes": b2a_base64(value, newline=False).decode()}
        raise TypeError(f"{'.'.join(map(str, path))} is a {type(value).__name__}")

    def _table(self, table: Mapping[Any, Any], path: Path) -> Any:
        if all(isinstance(key, str) and not key.startswith("$") for key in table):
            return {key: self.encode(item, (*path, key)) for key, item in table.items()}
        return {"$items": [[self.encode(key, path), self.encode(item, (*path, key))] for key, item in table.items()]}

    def _text(self, text: str) -> Any:
        if text in self._by_text:
            return {"$caller": list(self._by_text[text])}
        parts: list[Any] = [text]
        for shared in self._searched:
            parts = _split(parts, shared, {"$caller": list(self._by_text[shared])})
        for secret, number in self._secrets:
            parts = _split(parts, secret, {"$secret": number})
        return text if len(parts) == 1 and isinstance(parts[0], str) else {"$text": parts}


def _split(parts: list[Any], text: str, reference: dict[str, Any]) -> list[Any]:
    """Replace each occurrence of a text in the literal parts by a reference."""
    split: list[Any] = []
    for part in parts:
        if not isinstance(part, str) or text not in part:
            split.append(part)
            continue
        for literal in part.split(text):
            split += [literal, reference] if literal else [reference]
        split.pop()  # no reference after the last literal
    return split


class _Decoder:
    """Decodes values of a changed request with the caller's request."""

    def __init__(self, base: Request) -> None:
        self._base = base
        self._secrets: list[str] | None = None

    def decode(self, value: Any) -> Any:
        """Return the value of its JSON."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        match list(value.items()):
            case [("$caller", path)]:
                return self._look_up(path)
            case [("$secret", number)]:
                return self._secret(number)
            case [("$text", parts)]:
                return "".join(str(self.decode(part)) for part in parts)
            case [("$tuple", items)]:
                return tuple(self.decode(items))
            case [("$items", items)]:
                return {self.decode(key): self.decode(item) for key, item in items}
            case [("$bytes", data)]:
                return a2b_base64(data)
            case [("$float", number)]:
                return float(number)
        return {key: self.decode(item) for key, item in value.items()}

    def _look_up(self, path: list[Any]) -> Any:
        value = getattr(self._base, path[0])
        for step in path[1:]:
            try:
                value = value[step]
            except (LookupError, TypeError):
                raise LookupError(f"the request has no {'.'.join(map(str, path))}") from None
        return value

    def _secret(self, number: int) -> str:
        self._secrets = _secrets(self._base) if self._secrets is None else self._secrets
        if number >= len(self._secrets):
            raise LookupError(f"the request has {len(self._secrets)} secrets, and one more is needed")
        return self._secrets[number]
