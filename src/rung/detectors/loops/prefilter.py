"""A step at first sight: a number that says whether any before it was like it, made of very little.

Nearly all steps are like none before them. Whoever has only milliseconds looks closely when the number has come often.
"""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False  # importing typing costs more than all of this
if TYPE_CHECKING:
    from typing import Any, Final

# What a model writes beside the call for whoever reads along.
COSMETIC: Final = frozenset(
    {
        "description", "explanation", "reason", "reasoning", "rationale", "thought", "thoughts", "justification",
        "comment", "intent", "purpose", "summary", "title", "note", "security_risk", "task_progress", "timestamp",
        "request_id", "call_id", "tool_use_id", "tool_call_id", "trace_id", "span_id", "correlation_id", "session_id",
        "idempotency_key", "nonce",
    }
)  # fmt: skip

# Left out at first sight: what ids, times and numbers are made of.
DROPPED: Final = b"0123456789abcdefABCDEF \t\r\n.:-"
SHORT: Final = 24  # bytes of shape: an outcome this short is looked at together with its call


def gist(args: Any) -> bytes:
    """What a call is roughly about: looked at where its outcome says next to nothing."""
    if type(args) is dict:
        kept = [value if type(value) is str else repr(value) for name, value in args.items() if name not in COSMETIC]
        args = "".join(sorted(kept))
    return str(args).encode("utf-8", "replace").translate(None, DROPPED)


def number_of(said: str, args: Any) -> int:
    """The number of an outcome's shape: the same for outcomes that differ in ids, times and numbers alone."""
    shape = said.encode("utf-8", "surrogatepass").translate(None, DROPPED)
    return crc32(shape) if len(shape) > SHORT else crc32(gist(args), crc32(shape))


def given_number(args: Any) -> int:
    """A number for arguments, the same for equal ones on every machine."""
    if isinstance(args, ArgumentsDigest):
        return args.number
    return crc32(repr(sorted(args.items()) if type(args) is dict else args).encode("utf-8", "replace"))


class ArgumentsDigest:
    """Arguments of which only a number outlived a restart."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return self.number == given_number(other)

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up
