"""JSON without the `json` package, whose import takes longer than all the work of a hook.

Uses the C scanner and encoder behind `json`; falls back to `json` on interpreters without them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _DecoderSettings:
    """Decoder attributes that the C scanner reads."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf").replace("NaN", "nan"))


def loads(content: bytes) -> Any:
    """Parse a JSON document."""
    text = content.decode("utf-8").strip(" \t\r\n")
    try:
        from _json import make_scanner

        value, end = make_scanner(_DecoderSettings())(text, 0)  # type: ignore[arg-type]  # the scanner reads only these attributes
    except (ImportError, TypeError, AttributeError):
        import json

        return json.loads(text)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError(f"not JSON: extra data after {end} characters")
    return value


def dumps(value: Any) -> str:
    """Return a value as compact JSON."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode = make_encoder({}, _reject, encode_basestring_ascii, None, ":", ",", False, False, True)
        return "".join(encode(value, 0))
    except (ImportError, AttributeError):
        import json

        return json.dumps(value, separators=(",", ":"))


def _reject(value: object) -> None:
    raise ValueError(f"{type(value).__name__} is not JSON serializable")
