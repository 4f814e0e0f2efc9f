"""Names of the fields that another wire cannot say, for `dropped`. Only those that ask for something are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return name not in _BOOKKEEPING and not name.startswith(_NOTE_PREFIX) and value not in _NO_VALUES
