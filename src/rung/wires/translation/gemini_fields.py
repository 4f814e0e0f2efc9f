"""Field names of Gemini's API: camelCase and snake_case spellings, and the ids and marks that we add."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Gemini 3 rejects a function call without a signature. Google documents this one for calls of other models.
SKIPPED_SIGNATURE: Final = "skip_thought_signature_validator"
# Calls of Gemini often have no id, but those of all other wires have one. Ids with this prefix are ours: they are not
# written back. They have the characters and the length that all wires allow.
INVENTED_ID: Final = "gemini_"
_MAX_SEED: Final = 24
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_UNDERSCORE: Final = re.compile(r"(?<=[A-Za-z0-9])_([a-z0-9])")
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


@lru_cache(maxsize=512)
def camel_case(name: str) -> str:
    """Return a field name in camelCase."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name)


@lru_cache(maxsize=512)
def snake_case(name: str) -> str:
    """Return a field name in snake_case, which `dropped` uses."""
    return _CAPITAL.sub(lambda found: f"_{found[1].lower()}", name)


def spelled(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object with its field names in camelCase. The API accepts both spellings; camelCase wins."""
    for key in data:
        if "_" in key:
            break
    else:
        return data
    return {camel_case(key): value for key, value in data.items()} | {k: v for k, v in data.items() if "_" not in k}


def with_prefix(prefix: str, fields: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a nested object that are not `known`, as extras of the object around it: `prefix.name`."""
    return {f"{prefix}.{key}": value for key, value in fields.items() if key not in known}


def expanded(extras: Mapping[str, Any]) -> dict[str, Any]:
    """Return extras as fields: `prefix.name` becomes a nested object."""
    fields: dict[str, Any] = {}
    for key, value in extras.items():
        outer, dot, inner = key.partition(".")
        if dot:
            fields.setdefault(outer, {})[inner] = value
        else:
            fields[key] = value
    return fields


def merged(one: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with extras added, also in its nested objects."""
    result = dict(one)
    for key, value in expanded(extras).items():
        before = result.get(key)
        result[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def invented_id(seed: str, index: int) -> str:
    """Return the id of a call that has none. The seed makes it unique in the conversation."""
    if len(seed) > _MAX_SEED or _UNSAFE.search(seed):
        seed = sha256(seed.encode("utf-8", "replace")).hexdigest()[:_MAX_SEED]
    return f"{INVENTED_ID}{seed}_{index}"


def is_int(value: object) -> bool:
    """Return whether a JSON value is an integer."""
    return type(value) is int


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return type(value) in (int, float)


def listed(value: object) -> object:
    """Return an object as a list of one: Google accepts it in the place of a list, and its examples write it so."""
    return [value] if isinstance(value, dict) else value


def texts_of(value: object) -> tuple[str, ...] | None:
    """Return the strings of a JSON list; None if it is not a list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(value)
