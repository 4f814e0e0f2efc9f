"""The page of events: read off their classes, so that the contract is written once."""

from __future__ import annotations

from typing import Any, get_args

from docpages.markdown import code, codes, doc, page, table
from rung.core import events


def pages() -> dict[str, str]:
    """Path and text of the page."""
    parts: list[str] = []
    for event in get_args(events.Event):
        parts += [f"## {code(event.__name__)}", *_described(event)]
    parts += ["## Decisions", "What a `Decided` event holds: one of these."]
    for decision in get_args(events.Decision):
        parts += [f"### {code(decision.__name__)}", *_described(decision)]
    parts += ["## Parts", "What some of the fields above hold."]
    for part in _parts():
        parts += [f"### {code(part.__name__)}", *_described(part)]
    parts += ["## Statuses", f"{doc(events.Status)} One of {codes(events.Status)}."]
    about = doc(events).split("\n\n", maxsplit=1)[0]
    return {"events.md": page("Events", about, f"Version of the contract: {events.VERSION}.", *parts)}


def _parts() -> list[Any]:
    """The module's other records, in the order they are written."""
    known = {*get_args(events.Event), *get_args(events.Decision)}
    mine = [thing for thing in vars(events).values() if getattr(thing, "__module__", "") == events.__name__]
    return [thing for thing in mine if hasattr(thing, "_field_defaults") and thing not in known]


def _described(record: Any) -> tuple[str, str]:
    defaults = record._field_defaults
    rows = [
        (code(name), code(_type(hint)), code(_plain(defaults[name])) if name in defaults else "")
        for name, hint in record.__annotations__.items()
    ]
    return doc(record), table(("field", "type", "default"), rows)


def _plain(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _type(hint: Any) -> str:
    """An annotation as it stands in the source: some are kept as text, some as a forward reference."""
    if isinstance(hint, str):
        return hint
    return str(getattr(hint, "__forward_arg__", getattr(hint, "__name__", hint)))
