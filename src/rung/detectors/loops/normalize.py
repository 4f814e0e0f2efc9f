"""Normalize calls and outcomes for comparison.

Order, spacing and explanatory arguments do not distinguish two calls; ids and times do not distinguish two outcomes.
Of a large result only the head and the tail are compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from zlib import crc32

from rung.detectors.loops.prefilter import COSMETIC

HEAD: Final = 1_500  # characters
TAIL: Final = 500
LIMIT: Final = HEAD + TAIL
MAX_DEPTH: Final = 6
MAX_ITEMS: Final = 50

# A word that contains a digit, matched in one pass; below, the parts of it that do not distinguish two outcomes: ids,
# times of day, durations.
_WORD_WITH_DIGIT: Final = re.compile(
    r"(?<!\w)[^\W\d]*+\d[\w:.,+-]*+(?: ?(?:s|ms|us|sec|secs|seconds?|minutes?|hours?|milliseconds?)\b)?"
)
_TIME: Final = (
    r"\d{4}-\d\d-\d\dT?\d\d:\d\d[\d:.,+Z-]*"
    r"|\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[.,:]?"
    r"|[\d.,]+ ?(?:s|ms|us|sec|secs|seconds?|minutes?|hours?|milliseconds?)"
    r"|1[5-9]\d{8}(?:\d{3})?[.,:]?"
)
_ID: Final = (
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[.,:]?|0x[0-9a-f]{4,}[.,:]?|(?=[0-9a-f]*[a-f])[0-9a-f]{12,}[.,:]?"
)
_IS_TIME: Final = re.compile(_TIME, re.IGNORECASE).fullmatch
_IS_VOLATILE: Final = re.compile(f"{_TIME}|{_ID}", re.IGNORECASE).fullmatch
_TEMPORARY: Final = "/tmp/"  # noqa: S108  # searched for in a text, never opened
# Process ids and similar bookkeeping in a tool's output.
_NAMED_IDS: Final = re.compile(
    r"\b(p?pid|pgid|(?:process|chunk|request|trace|run|job) id|process group(?: pgid)?)\b[ :=#]*(?=[0-9a-f-]*\d)[0-9a-f-]+\b",
    re.IGNORECASE,
)
_has_relative_time: Final = re.compile(r"\d (?:seconds?|minutes?|hours?) ago").search
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_LONG_NUMBER: Final = re.compile(r"\d{5,}")


def digest(text: str) -> str:
    """Return a CRC-32 and the length as text: stable across machines, and sufficient for a window of a few dozen steps."""
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}{len(text):x}"


def clipped(value: Any, limit: int = LIMIT) -> str:
    """Return the head and tail of a result as text; a large result is never copied as a whole."""
    if type(value) is str:
        if len(value) <= limit:
            return value
        return value[: limit - TAIL] + "\n" + value[-TAIL:]
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        cut = value if len(value) <= limit else value[: limit - TAIL] + b"\n" + value[-TAIL:]
        return cut.decode("utf-8", "replace")
    if isinstance(value, str):
        return clipped(str(value), limit)
    return json.dumps(truncated(value), sort_keys=True, ensure_ascii=False, default=_type_name)


def _type_name(value: object) -> str:
    return type(value).__name__


def truncated(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a value with long texts clipped, long collections shortened and its depth bounded."""
    if isinstance(value, str):
        return clipped(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return clipped(value)
    if depth <= 0:
        return "…"
    if isinstance(value, Mapping):
        names = list(value) if len(value) <= MAX_ITEMS else [*value][:MAX_ITEMS]
        return {str(name)[:LIMIT]: truncated(value[name], depth - 1) for name in names}
    if isinstance(value, list | tuple):
        items = value if len(value) <= MAX_ITEMS else [*value[: MAX_ITEMS // 2], len(value), *value[-MAX_ITEMS // 2 :]]
        return [truncated(item, depth - 1) for item in items]
    return _type_name(value)


def bounded(value: Any) -> Any:
    """Return a truncated value; if that is still large, its clipped text."""
    cut = truncated(value)
    text = json.dumps(cut, sort_keys=True, ensure_ascii=False, default=_type_name)
    return cut if len(text) <= 4 * LIMIT else clipped(text)


def parsed_arguments(args: Any) -> Any:
    """Return a call's arguments; a JSON object in a text is parsed."""
    if isinstance(args, str) and args[:1] == "{" and len(args) <= LIMIT:
        try:
            parsed = json.loads(args)
        except (ValueError, RecursionError):
            return args
        return parsed if isinstance(parsed, dict) else args
    return args


def significant_arguments(args: Any, cosmetic: frozenset[str] = COSMETIC) -> Any:
    """Return the arguments without cosmetic and empty fields, spacing and times."""
    if isinstance(args, Mapping):
        kept = {
            str(name): value
            for name, value in args.items()
            if not _is_empty(value) and str(name).lower() not in cosmetic
        }
        if not kept:  # only cosmetic fields: then they are significant
            kept = {str(name): value for name, value in args.items() if not _is_empty(value)}
        return _strip_times(truncated(kept))
    if args is None:
        return ""
    return _strip_times(truncated(args))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple | Mapping) and not value)


def _strip_times(value: Any) -> Any:
    if isinstance(value, str):  # ids stay: calls for different records are not a loop
        return " ".join(_WORD_WITH_DIGIT.sub(_without_times, value).split())
    if isinstance(value, dict):
        return {name: _strip_times(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_strip_times(item) for item in value]
    return value


def without_volatile_parts(text: str) -> str:
    """Return the text of an outcome without spacing, ids and times."""
    if " ago" in text:  # such a line changes with every call
        text = "\n".join(line for line in text.split("\n") if not _has_relative_time(line))
    text = _NAMED_IDS.sub(r"\1 <>", text)
    return " ".join(_WORD_WITH_DIGIT.sub(_without_ids, text).split())


def _without_ids(match: re.Match[str]) -> str:
    return "<>" if _is_volatile(match, _IS_VOLATILE) else match[0]


def _without_times(match: re.Match[str]) -> str:
    return "<>" if _is_volatile(match, _IS_TIME) else match[0]


def _is_volatile(match: re.Match[str], volatile: Callable[[str], object]) -> bool:
    word = match[0]
    if len(word) < _MIN_VOLATILE_CHARS or (word.isdigit() and len(word) < _EPOCH_DIGITS):
        return False
    start = match.start()
    return bool(volatile(word)) or match.string[max(0, start - len(_TEMPORARY)) : start] == _TEMPORARY


_MIN_VOLATILE_CHARS: Final = 2
_EPOCH_DIGITS: Final = 10  # digits of a time in seconds


def normalized_call(tool: str, significant: Any) -> str:
    """Return a call in normalized form."""
    return tool + "\x1f" + json.dumps(significant, sort_keys=True, ensure_ascii=False, default=_type_name)


def normalized_error(text: str, call: str = "") -> str:
    """Return an error in normalized form: its words, without long numbers and without words that echo the call.

    Of a traceback only the last line counts. Short numbers stay: a number that changes with the arguments may show
    progress.
    """
    if "Traceback (most recent call last)" in text:
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("<")]
        text = lines[-1] if lines else text
    call_words = set(_WORD.findall(call.lower()))
    error_words = _WORD.findall(_LONG_NUMBER.sub("0", without_volatile_parts(text)).lower())[:120]
    return " ".join(word for word in error_words if word not in call_words)


def is_acknowledgement(text: str, call: str) -> bool:
    """Return whether an outcome only echoes its call or reports success."""
    if len(text) > _MAX_ACKNOWLEDGEMENT_CHARS:
        return False
    call_stems = {word[:_STEM_CHARS] for word in _WORD.findall(call.lower())}
    text_stems = {word[:_STEM_CHARS] for word in _WORD.findall(text.lower())}
    return len(text_stems - call_stems - _ACKNOWLEDGEMENT_STEMS) <= _MAX_NEW_WORDS


_MAX_ACKNOWLEDGEMENT_CHARS: Final = 200  # a longer outcome carries information
_STEM_CHARS: Final = 5  # so that “clicked” equals “click”
_MAX_NEW_WORDS: Final = 2
_ACKNOWLEDGEMENT_STEMS: Final = frozenset(
    word[:_STEM_CHARS]
    for word in _WORD.findall(
        "ok okay done success successful successfully true null none no output result completed complete executed returncode 0 "
        "the a an to of in into at by on is was has have been with and for from you your it this command action "
        "file element index clicked navigated scrolled pixels sent typed opened saved updated written created applied"
    )
)


def word_hashes(text: str) -> frozenset[int]:
    """Return the hashes of a text's words, so that no text is stored."""
    return frozenset(crc32(word.encode()) for word in set(_WORD.findall(text.lower())))


_FILLERS: Final = frozenset(
    _WORD.findall(
        "a an the to of in on for and or with by at from as is are be this that it its into using use please following "
        "provided again re try any all if then now you your i we let us can could would should so do also more which "
        "what how many much who tell me"
    )
)


def content_words(text: str) -> frozenset[int]:
    """Return the hashes of a request's words, without filler words."""
    return frozenset(crc32(word.encode()) for word in set(_WORD.findall(text.lower())) - _FILLERS)


def overlap(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the share of the smaller set that is in the other one, 0 to 1."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


_BLOCK_END: Final = re.compile(r"\n\s*\n|\n[=\-*_#]{3,}")
_MAX_BLOCK_CHARS: Final = 400


def first_block(text: str) -> str:
    """Return the first block of an outcome, where tools report the location (address, title, position, status)."""
    start = text.lstrip()[: 2 * _MAX_BLOCK_CHARS]
    end = _BLOCK_END.search(start)
    return without_volatile_parts((start[: end.start()] if end else start)[:_MAX_BLOCK_CHARS])


def bounded_arguments(args: Any) -> Any:
    """Return the arguments to store: a copy of a mapping with small values, otherwise a truncated form."""
    if type(args) is dict:
        for value in args.values():
            if type(value) is str:
                if len(value) > LIMIT:
                    break
            elif value is not None and type(value) not in _SCALARS:
                break
        else:
            return dict(args) if len(args) <= MAX_ITEMS else bounded(args)
    elif args is None or type(args) in _SCALARS:
        return args
    return bounded(args)


_SCALARS: Final = frozenset({bool, int, float})
