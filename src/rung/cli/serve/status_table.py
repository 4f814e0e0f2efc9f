"""The status of a gateway as text: one row for each provider, and what is known about it below."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from rung.core.text.moments import format_span
from rung.core.text.printable import printable
from rung.core.text.units import format_dollars, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_WIDTH: Final = 60
_HEADINGS: Final = ("type", "state", "calls", "failed", "p50", "cost")
_WIDTHS: Final = (9, 7, 6, 6, 6, 9)
_MAX_NAME: Final = 30
_INDENT: Final = "  "


def status_lines(document: Mapping[str, Any], url: str, width: int) -> Iterator[str]:
    """Yield the lines of a status, none longer than the width, which is at least 60."""
    width, now = max(MIN_WIDTH, width), float(document["at"])
    running = document["running"]
    head = f"{url}: up for {format_span(now - document['started_at'])}, {running} call{'s' * (running != 1)} in flight"
    yield from _wrapped(head, width, "")
    for line in _fleet(document.get("fleet") or {}, now):
        yield from _wrapped(line, width, "")
    yield ""
    upstreams = document["upstreams"]
    room = width - sum(_WIDTHS) - 2 * len(_WIDTHS)
    names = min(room, _MAX_NAME, max(8, *(len(each["name"]) for each in upstreams), 0))
    yield _row("provider", _HEADINGS, names)
    for upstream in upstreams:
        yield _row(upstream["name"], _cells(upstream), names)
        for line in _details(upstream, now):
            yield from _wrapped(line, width, _INDENT)


def _fleet(fleet: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yield what the gateway shares with others; nothing for one that is alone."""
    if fleet.get("state") == "shared":
        yield f"limits shared by {fleet['gateways']} gateway{'s' * (fleet['gateways'] != 1)}"
    elif fleet.get("state") == "away":
        yield f"journal out of reach for {format_span(now - fleet['since'])}: breakers, retries and rates are its own"
    if fleet.get("spending") == "away":
        until = fleet["leased_until"]
        left = format_span(until - now) if until is not None and until > now else ""
        yield f"spending: {f'what is leased, for {left}' if left else 'nothing is leased: calls with a limit are refused'}"


def _row(name: str, cells: tuple[str, ...], names: int) -> str:
    left = [f"{_clipped(cell, size):<{size}}" for cell, size in zip(cells[:2], _WIDTHS[:2], strict=True)]
    right = [f"{_clipped(cell, size):>{size}}" for cell, size in zip(cells[2:], _WIDTHS[2:], strict=True)]
    return "  ".join([f"{_clipped(name, names):<{names}}", *left, *right]).rstrip()


def _cells(upstream: Mapping[str, Any]) -> tuple[str, ...]:
    failed = sum(upstream["failures"].values())
    calls = upstream["successes"] + failed
    latency, cost = format_duration(upstream["latency_p50"]), format_dollars(upstream["dollars"])
    return upstream["type"], upstream["state"], str(calls), str(failed), latency, cost


def _details(upstream: Mapping[str, Any], now: float) -> Iterator[str]:
    yield f"{upstream['host']}: {', '.join(upstream['wires']) or 'no known wire'}"
    for key in upstream["keys"]:
        yield f"key {key['name']}: {_key_state(key, now)}"
    if upstream["failures"]:
        yield f"failures: {_counts(upstream['failures'])}"
    if upstream["last_error"]:
        error = upstream["last_error"]
        text = error["message"] or error["kind"]
        yield f"last error {format_span(now - error['at'])} ago: {text}"
    for circuit in upstream["circuits"]:
        probe = f", next probe in {format_span(circuit['probe_in'])}" if circuit["state"] == "open" else ""
        yield f"circuit {circuit['model']}: {circuit['state']}{probe}"
    for probe in upstream["probes"]:
        yield f"left by sessions: {probe['model']}, tried again in {format_span(probe['due_at'] - now)}"
    if upstream["translated"]:
        pairs = {f"{each['client']} to {each['upstream']}": each["calls"] for each in upstream["translated"]}
        yield f"translated: {_counts(pairs)}"
    if upstream["dropped"]:
        yield f"dropped: {_counts(upstream['dropped'])}"


def _key_state(key: Mapping[str, Any], now: float) -> str:
    if key["until"] is None:
        return str(key["state"])
    models = f" ({', '.join(key['models'])})" if key["state"] == "limited" and key["models"] else ""
    return f"{key['state']} for {format_span(key['until'] - now)}{models}"


def _counts(numbers: Mapping[str, int]) -> str:
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {number}" for name, number in ordered)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    deeper = indent + _INDENT
    return wrap(printable(text), width, initial_indent=indent, subsequent_indent=deeper, break_on_hyphens=False)


def _clipped(text: str, size: int) -> str:
    text = printable(text)
    return text if len(text) <= size else text[: size - 1] + "…"
