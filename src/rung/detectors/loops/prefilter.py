"""Cheap checksums of steps: they tell whether a similar step may have occurred before.

Most steps differ from all previous ones. Hooks, which have only milliseconds, analyse a step in full only when its
checksum has occurred often enough.
"""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False  # importing typing takes longer than this module's work
if TYPE_CHECKING:
    from typing import Any, Final

# Arguments that explain or identify a call but do not change its effect.
COSMETIC: Final = frozenset(
    {
        "description", "explanation", "reason", "reasoning", "rationale", "thought", "thoughts", "justification",
        "comment", "intent", "purpose", "summary", "title", "note", "security_risk", "task_progress", "timestamp",
        "request_id", "call_id", "tool_use_id", "tool_call_id", "trace_id", "span_id", "correlation_id", "session_id",
        "idempotency_key", "nonce",
    }
)  # fmt: skip

# Dropped before the checksum: the characters of ids, times and numbers.
DROPPED_BYTES: Final = b"0123456789abcdefABCDEF \t\r\n.:-"
SHORT_BYTES: Final = 24  # for a shorter outcome, the checksum includes the arguments


def arguments_shape(args: Any) -> bytes:
    """Return the arguments without cosmetic fields, ids, times and numbers."""
    if type(args) is dict:
        values = [value if type(value) is str else repr(value) for name, value in args.items() if name not in COSMETIC]
        args = "".join(sorted(values))
    return str(args).encode("utf-8", "replace").translate(None, DROPPED_BYTES)


def outcome_checksum(result: str, args: Any) -> int:
    """Return a checksum that is equal for outcomes that differ only in ids, times and numbers."""
    shape = result.encode("utf-8", "surrogatepass").translate(None, DROPPED_BYTES)
    return crc32(shape) if len(shape) > SHORT_BYTES else crc32(arguments_shape(args), crc32(shape))


def arguments_checksum(args: Any) -> int:
    """Return a checksum of arguments that is stable across processes and machines."""
    if isinstance(args, ArgumentsDigest):
        return args.checksum
    return crc32(repr(sorted(args.items()) if type(args) is dict else args).encode("utf-8", "replace"))


class ArgumentsDigest:
    """Stands for arguments of which only the checksum was stored; equal to arguments with that checksum."""

    __slots__ = ("checksum",)

    def __init__(self, number: int) -> None:
        self.checksum = number

    def __eq__(self, other: object) -> bool:
        return self.checksum == arguments_checksum(other)

    __hash__ = None  # type: ignore[assignment]  # compared, never hashed
