"""Generate the reference page of events from the event classes."""

from __future__ import annotations

from typing import Any, get_args

from docpages.markdown import code, codes, doc, page, table
from rung.core.domain import events


def pages() -> dict[str, str]:
    """Return the path and text of the page."""
    parts: list[str] = []
    for event in get_args(events.Event):
        parts += [f"## {code(event.__name__)}", *_section(event)]
    parts += ["## Decisions", "The `decision` field of a `Decided` event holds one of these records."]
    for decision in get_args(events.Decision):
        parts += [f"### {code(decision.__name__)}", *_section(decision)]
    parts += ["## Nested records", "Records that the fields above refer to."]
    for record in _nested_records():
        parts += [f"### {code(record.__name__)}", *_section(record)]
    parts += ["## Statuses", f"{doc(events.Status)} Values: {codes(events.Status)}."]
    intro = doc(events).split("\n\n", maxsplit=1)[0]
    return {"events.md": page("Events", intro, f"Contract version: {events.VERSION}.", *parts)}


def _nested_records() -> list[Any]:
    """Return the module's records that are neither events nor decisions, in source order."""
    documented = {*get_args(events.Event), *get_args(events.Decision)}
    defined = [value for value in vars(events).values() if getattr(value, "__module__", "") == events.__name__]
    return [value for value in defined if hasattr(value, "_field_defaults") and value not in documented]


def _section(record: Any) -> tuple[str, str]:
    defaults = record._field_defaults
    rows = [
        (code(name), code(_type_text(hint)), code(_literal(defaults[name])) if name in defaults else "")
        for name, hint in record.__annotations__.items()
    ]
    return doc(record), table(("field", "type", "default"), rows)


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _type_text(hint: Any) -> str:
    """Return an annotation as written in the source; it may be a string or a forward reference."""
    if isinstance(hint, str):
        return hint
    return str(getattr(hint, "__forward_arg__", getattr(hint, "__name__", hint)))
