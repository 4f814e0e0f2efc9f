"""Calls and outcomes in the one form in which they are compared.

What an agent means is in a call's arguments, not in their order, spacing or the words it gives as its reason;
what came of it is in a result, not in the time of day printed there. Of a result, however large, the head and
the tail are looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from zlib import crc32

from rung.detectors.loops.prefilter import COSMETIC

HEAD: Final = 1_500
TAIL: Final = 500
LIMIT: Final = HEAD + TAIL
DEPTH: Final = 6
ITEMS: Final = 50

# A word with a digit in it, each looked at once; and what in one has no meaning for whether two things are the
# same: ids, times of day, how long it took.
_NUMBERED: Final = re.compile(
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
_TEMPORARY: Final = "/tmp/"  # noqa: S108  # looked for in a text, never opened
# What a tool says of the process it ran in, and of its own bookkeeping.
_NAMED_IDS: Final = re.compile(
    r"\b(p?pid|pgid|(?:process|chunk|request|trace|run|job) id|process group(?: pgid)?)\b[ :=#]*(?=[0-9a-f-]*\d)[0-9a-f-]+\b",
    re.IGNORECASE,
)
_AGO: Final = re.compile(r"\d (?:seconds?|minutes?|hours?) ago").search
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_LONG: Final = re.compile(r"\d{5,}")


def digest(text: str) -> str:
    """Eight hex digits and the length: equal for equal texts, on every machine; a window of some dozen is all it is for."""
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}{len(text):x}"


def clipped(value: Any, limit: int = LIMIT) -> str:
    """The text of a result, its head and its tail; a large one is never copied whole."""
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
    return json.dumps(small(value), sort_keys=True, ensure_ascii=False, default=_named)


def _named(value: object) -> str:
    return type(value).__name__


def small(value: Any, depth: int = DEPTH) -> Any:
    """A value cut to a size that can be written down: long texts clipped, long lists at both ends, depth bounded."""
    if isinstance(value, str):
        return clipped(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return clipped(value)
    if depth <= 0:
        return "…"
    if isinstance(value, Mapping):
        names = list(value) if len(value) <= ITEMS else [*value][:ITEMS]
        return {str(name)[:LIMIT]: small(value[name], depth - 1) for name in names}
    if isinstance(value, list | tuple):
        kept = value if len(value) <= ITEMS else [*value[: ITEMS // 2], len(value), *value[-ITEMS // 2 :]]
        return [small(item, depth - 1) for item in kept]
    return _named(value)


def bounded(value: Any) -> Any:
    """A value cut down to what is kept of it: small, and where even that is much, the text of it."""
    cut = small(value)
    text = json.dumps(cut, sort_keys=True, ensure_ascii=False, default=_named)
    return cut if len(text) <= 4 * LIMIT else clipped(text)


def arguments(args: Any) -> Any:
    """A call's arguments: a mapping where they are one, also where it is written as JSON; else a text."""
    if isinstance(args, str) and args[:1] == "{" and len(args) <= LIMIT:
        try:
            found = json.loads(args)
        except (ValueError, RecursionError):
            return args
        return found if isinstance(found, dict) else args
    return args


def meaning(args: Any, cosmetic: frozenset[str] = COSMETIC) -> Any:
    """Arguments without what does not matter: cosmetic and empty fields, spacing, times."""
    if isinstance(args, Mapping):
        kept = {
            str(name): value
            for name, value in args.items()
            if not _is_empty(value) and str(name).lower() not in cosmetic
        }
        if not kept:  # the reason is all there is: then it is what was meant
            kept = {str(name): value for name, value in args.items() if not _is_empty(value)}
        return _plain(small(kept))
    if args is None:
        return ""
    return _plain(small(args))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple | Mapping) and not value)


def _plain(value: Any) -> Any:
    if isinstance(value, str):  # an id in a call is what it is about: one record after another is no loop
        return " ".join(_NUMBERED.sub(_without_times, value).split())
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def unvarying(text: str) -> str:
    """An outcome's text without spacing, ids and times."""
    if " ago" in text:  # a line that says when is about nothing else
        text = "\n".join(line for line in text.split("\n") if not _AGO(line))
    text = _NAMED_IDS.sub(r"\1 <>", text)
    return " ".join(_NUMBERED.sub(_without_ids, text).split())


def _without_ids(found: re.Match[str]) -> str:
    return "<>" if _varies(found, _IS_VOLATILE) else found[0]


def _without_times(found: re.Match[str]) -> str:
    return "<>" if _varies(found, _IS_TIME) else found[0]


def _varies(found: re.Match[str], volatile: Callable[[str], object]) -> bool:
    word = found[0]
    if len(word) < _SHORTEST or (word.isdigit() and len(word) < _EPOCH):
        return False
    start = found.start()
    return bool(volatile(word)) or found.string[max(0, start - len(_TEMPORARY)) : start] == _TEMPORARY


_SHORTEST: Final = 2
_EPOCH: Final = 10  # digits of a time in seconds


def call_form(tool: str, meant: Any) -> str:
    """The one form of a call."""
    return tool + "\x1f" + json.dumps(meant, sort_keys=True, ensure_ascii=False, default=_named)


def fault_form(text: str, call: str = "") -> str:
    """The one form of an error: its words, long numbers masked, and what it only gives back of the call left out.

    Of a traceback the last line, which says what it was. A short number is part of what is said: where it
    changes with the arguments, something was got on with.
    """
    if "Traceback (most recent call last)" in text:
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("<")]
        text = lines[-1] if lines else text
    given = set(_WORD.findall(call.lower()))
    said = _WORD.findall(_LONG.sub("0", unvarying(text)).lower())[:120]
    return " ".join(word for word in said if word not in given)


def says_only(text: str, call: str) -> bool:
    """Does an outcome only give back its call, or say that it was done?"""
    if len(text) > _ACKNOWLEDGED:
        return False
    given = {word[:_STEM] for word in _WORD.findall(call.lower())}
    said = {word[:_STEM] for word in _WORD.findall(text.lower())}
    return len(said - given - _DONE) <= _NEW_WORDS


_ACKNOWLEDGED: Final = 200  # characters: who says more says something
_STEM: Final = 5  # letters: clicked and click
_NEW_WORDS: Final = 2
_DONE: Final = frozenset(
    word[:_STEM]
    for word in _WORD.findall(
        "ok okay done success successful successfully true null none no output result completed complete executed returncode 0 "
        "the a an to of in into at by on is was has have been with and for from you your it this command action "
        "file element index clicked navigated scrolled pixels sent typed opened saved updated written created applied"
    )
)


def words(text: str) -> frozenset[int]:
    """The words of a text as numbers: what is said stays with whoever said it."""
    return frozenset(crc32(word.encode()) for word in set(_WORD.findall(text.lower())))


_FILLERS: Final = frozenset(
    _WORD.findall(
        "a an the to of in on for and or with by at from as is are be this that it its into using use please following "
        "provided again re try any all if then now you your i we let us can could would should so do also more which "
        "what how many much who tell me"
    )
)


def content(text: str) -> frozenset[int]:
    """The words of a request that say what is asked for."""
    return frozenset(crc32(word.encode()) for word in set(_WORD.findall(text.lower())) - _FILLERS)


def alike(one: frozenset[int], other: frozenset[int]) -> float:
    """How much of the smaller set of words is in the other: 0 to 1."""
    least = min(len(one), len(other))
    return len(one & other) / least if least else 0.0


_RULE: Final = re.compile(r"\n\s*\n|\n[=\-*_#]{3,}")
_BLOCK: Final = 400


def opening(text: str) -> str:
    """The first block of an outcome: there a tool says where it is (address, title, position, status)."""
    start = text.lstrip()[: 2 * _BLOCK]
    cut = _RULE.search(start)
    return unvarying((start[: cut.start()] if cut else start)[:_BLOCK])


def held(args: Any) -> Any:
    """Arguments as they are kept: a mapping of small values as a copy, anything larger cut down."""
    if type(args) is dict:
        for value in args.values():
            if type(value) is str:
                if len(value) > LIMIT:
                    break
            elif value is not None and type(value) not in _SCALARS:
                break
        else:
            return dict(args) if len(args) <= ITEMS else bounded(args)
    elif args is None or type(args) in _SCALARS:
        return args
    return bounded(args)


_SCALARS: Final = frozenset({bool, int, float})
