"""JSON without the `json` package, whose regular expressions take longer to load than a hook's whole work.

It uses the same C code that `json` uses; where an interpreter has none, or another, `json` itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Context:
    """What the scanner asks of a decoder."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf").replace("NaN", "nan"))


def loads(content: bytes) -> Any:
    """The value of a JSON text."""
    text = content.decode("utf-8").strip(" \t\r\n")
    try:
        from _json import make_scanner

        value, end = make_scanner(_Context())(text, 0)  # type: ignore[arg-type]  # all it asks for is these attributes
    except (ImportError, TypeError, AttributeError):
        import json

        return json.loads(text)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError(f"not JSON: more follows after {end} characters")
    return value


def dumps(value: Any) -> str:
    """A value as JSON, without spaces."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode = make_encoder({}, _refuse, encode_basestring_ascii, None, ":", ",", False, False, True)
        return "".join(encode(value, 0))
    except (ImportError, AttributeError):
        import json

        return json.dumps(value, separators=(",", ":"))


def _refuse(value: object) -> None:
    raise ValueError(f"{type(value).__name__}: no JSON has this")
