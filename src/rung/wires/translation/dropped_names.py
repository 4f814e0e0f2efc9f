"""Names of the fields that another wire cannot say, for `dropped`. Only those that ask for something are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_LIST_CHARACTERS: Final = 200  # of a header
_MAX_NAME_CHARACTERS: Final = 60
_ASKED_BY_PRESENCE: Final = frozenset({"web_search_options"})  # which an empty object asks for, too
_NO_VALUES: Final[tuple[Any, ...]] = (None, False, "", [], {})
_NOTE_PREFIX: Final = "rung."  # of extras by which a reader notes how its wire wrote something
# Fields that say nothing to a model, and signatures, which never leave their family.
_BOOKKEEPING: Final = frozenset({"id", "index", "status", "type", "thoughtSignature", "signature"})
# Fields by which an answer tells how it was served.
_SERVING: Final = frozenset({"service_tier", "system_fingerprint", "provider"})


def name_answer_extras(extras: Mapping[str, Any], dropped: set[str]) -> None:
    """Name the fields of another family's answer that are part of what the model said."""
    name_extras({name: value for name, value in extras.items() if name not in _SERVING}, dropped)


def name_extras(extras: Mapping[str, Any], dropped: set[str]) -> None:
    """Name the fields of another family. Null, false and empty values ask for nothing."""
    if extras:
        dropped.update(name for name, value in extras.items() if _says_something(name, value))


def _says_something(name: str, value: Any) -> bool:
    if name in _BOOKKEEPING or name.startswith(_NOTE_PREFIX):
        return False
    return value not in _NO_VALUES or (value == {} and name in _ASKED_BY_PRESENCE)


def list_names(names: Iterable[str]) -> str:
    """Return names as the value of a header; if there is no room for all of them, it ends with how many more there are."""
    short = [name if len(name) <= _MAX_NAME_CHARACTERS else name[: _MAX_NAME_CHARACTERS - 3] + "..." for name in names]
    listed = ", ".join(short)
    kept = len(short)
    while len(listed) > MAX_LIST_CHARACTERS:
        kept -= 1
        listed = ", ".join([*short[:kept], f"and {len(short) - kept} more"])
    return listed
