"""The status of a fleet as text: tables of executors, runs, leases, queues and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.text.moments import format_span
from rung.core.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NO_FLEET: Final = "no executors; start one: rung fleet worker --import MODULE"
SHORT_ID: Final = 8
_RIGHT: Final = frozenset(
    {"pid", "beat", "runs", "requests", "open", "waiting", "lag", "oldest", "expires", "used", "in slices", "holders"}
)


def fleet_lines(document: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the lines of a status, clipped at the width."""
    if not document["executors"]:
        yield NO_FLEET
    else:
        yield from _executors(document, width)
    yield from _section(_runs(document), "open runs", width)
    yield from _section(_leases(document), "leases that were not renewed", width)
    yield from _section(_queues(document), "queues", width)
    yield from _section(_limits(document), "shared limits", width)
    if len(document["versions"]) > 1:
        found = ", ".join(f"{each['version']} ({each['executors']})" for each in document["versions"])
        yield ""
        yield f"versions side by side: {found}"


def _executors(document: Mapping[str, Any], width: int) -> Iterator[str]:
    head = ("executor", "role", "host", "pid", "version", "engine", "state", "beat", "runs", "requests")
    rows = [
        (
            each["id"][:SHORT_ID],
            each["role"],
            each["host"],
            str(each["pid"]),
            each["version"],
            each["engine"],
            _state(each),
            format_span(each["age"]),
            str(each["runs"]),
            str(each["requests"]),
        )
        for each in document["executors"]
    ]
    yield from _table(head, rows, width)


def _state(executor: Mapping[str, Any]) -> str:
    """Return the health of an executor; of a live one, whether it drains."""
    health = str(executor["health"])
    return health if health == "dead" or executor["state"] == "live" else f"draining{', late' * (health == 'late')}"


def _runs(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (
            each["task"] or "(recovery)",
            each["executor"][:SHORT_ID] or (f"pid {each['pid']}" if each["host"] else "nobody"),
            each["host"],
            str(each["open"]),
            format_span(max(0.0, document["at"] - each["oldest_at"])),
        )
        for each in document["runs"]
    ]
    return [("task", "owner", "host", "open", "oldest"), *rows] if rows else []


def _leases(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (each["run"], each["task"] or "(recovery)", each["host"], str(each["pid"]), _expiry(each["expires_in"]))
        for each in document["leases"]
    ]
    return [("run", "task", "host", "pid", "expires"), *rows] if rows else []


def _expiry(seconds: float) -> str:
    return f"in {format_span(seconds)}" if seconds >= 0 else f"{format_span(-seconds)} ago"


def _queues(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (each["name"], each["engine"], str(each["waiting"]), format_span(each["lag"])) for each in document["queues"]
    ]
    return [("queue", "engine", "waiting", "lag"), *rows] if rows else []


def _limits(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (each["name"], each["fleet"], f"{each['used']:,.2f}", f"{each['out']:,.2f}", str(each["holders"]))
        for each in document["limits"]
    ]
    return [("limit", "fleet", "used", "in slices", "holders"), *rows] if rows else []


def _section(rows: list[tuple[str, ...]], title: str, width: int) -> Iterator[str]:
    if rows:
        yield ""
        yield f"{title}:"
        yield from _table(rows[0], rows[1:], width)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    shown = [tuple(printable(cell) for cell in row) for row in (head, *rows)]
    sizes = [max(len(row[n]) for row in shown) for n in range(len(head))]
    for row in shown:
        cells = [
            f"{cell:>{size}}" if name in _RIGHT else f"{cell:<{size}}"
            for name, cell, size in zip(head, row, sizes, strict=True)
        ]
        line = "  ".join(cells).rstrip()
        yield line if len(line) <= width else line[: width - 1] + "…"
