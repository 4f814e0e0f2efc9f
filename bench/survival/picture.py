"""The survival table as a picture (SVG), made from its document alone: a bar for each column in every cell."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING, Any, Final

from bench.clients.cells import DONE, FAILED, HUNG, PLAIN, UNMET, WRONG
from bench.survival.document import FAULT, REPEATED, WALL
from bench.survival.scores import Row, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Verdict → colour and height of its bar: what is not survived is lower, so that the picture does not need its colours.
BARS: Final = {
    DONE: ("#1b8a5a", 1.0), WRONG: ("#8e1c4f", 0.6), FAILED: ("#e07b39", 0.45), HUNG: ("#5b7083", 0.45),
    UNMET: ("#e3e6ea", 0.15), None: ("#ffffff", 0.3),
}  # fmt: skip
WORDS: Final = {DONE: "survived", WRONG: "silently wrong", FAILED: "failed with an error", HUNG: "hung", UNMET: "did not strike", None: "not run"}  # fmt: skip
CELL, BAR, HEIGHT, MARGIN, LABELS = 25, 7, 13, 12, 225
HEAD, STEP = 150, 17


class Canvas:
    """Shapes of a picture; the bars of one verdict are one path, which keeps the file small."""

    def __init__(self) -> None:
        self._bars: dict[str | None, list[str]] = defaultdict(list)
        self._shapes: list[str] = []

    def text(self, x: float, y: float, words: str, extra: str = "") -> None:
        self._shapes.append(f'<text x="{x:g}" y="{y:g}"{extra}>{escape(words)}</text>')

    def bar(self, x: float, y: float, verdict: str | None) -> None:
        height = round(HEIGHT * BARS[verdict][1], 1)
        self._bars[verdict].append(f"M{x:g} {y + HEIGHT - height:g}h{BAR - 1}v{height:g}h-{BAR - 1}z")

    def frame(self, x: float, y: float) -> None:
        """Draw a frame around a cell in which Rung loses."""
        self._shapes.append(
            f'<rect x="{x - 2:g}" y="{y - 2:g}" width="{3 * BAR + 3}" height="{HEIGHT + 4}" fill="none" stroke="#d00000" stroke-width="2"/>'
        )

    def svg(self, width: float, height: float) -> str:
        """Return the picture."""
        paths = [
            f'<path fill="{colour}" stroke="{"#9aa5b1" if verdict is None else "none"}" d="{"".join(self._bars[verdict])}"/>'
            for verdict, (colour, _) in BARS.items()
            if verdict in self._bars
        ]
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" font-family="system-ui, sans-serif" font-size="11" fill="#1f2933" role="img" aria-label="Which client survives which fault, with no gateway, behind Rung and behind LiteLLM">'
        return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *paths, *self._shapes, "</svg>\n"])


def picture(document: dict[str, Any]) -> str:
    """Return the picture: a line for each client with its own retries, streamed where it streams."""
    canvas, columns = Canvas(), document["columns"]
    rows = [row for row in rows_of(document) if row.tries == "default"]
    streamed = {(row.client, row.wire) for row in rows if row.mode == "stream"}
    shown = [row for row in rows if row.mode == "stream" or (row.client, row.wire) not in streamed]
    y = _legend(canvas, document)
    faults = [row for row in shown if row.part == FAULT]
    beside = {(row.client, row.wire): row for row in shown if row.part == WALL}
    y = _panel(canvas, y, "one fault, and seconds of overload", faults, columns, beside)
    widest = len(_names(faults)) + len(_names(beside.values()))
    twice = [row for row in shown if row.part == REPEATED]
    y = _panel(canvas, y + MARGIN, "every second request fails", twice, columns, {})
    return canvas.svg(LABELS + CELL * max(widest, len(_names(twice))) + 2 * MARGIN + 60, y + MARGIN)


def _legend(canvas: Canvas, document: dict[str, Any]) -> float:
    when = " to ".join(dict.fromkeys(document["measured"]))
    versions = ", ".join(f"{name} {version}" for name, version in document["gateways"].items())
    canvas.text(MARGIN, 24, "Which client survives which fault", ' font-size="17" font-weight="600"')
    order = ", ".join(document["columns"])
    canvas.text(MARGIN, 42, f"Bars of a cell, from the left: {order}. {versions}. Measured {when or 'not yet'}.")
    x = float(MARGIN)
    for verdict, words in WORDS.items():
        canvas.bar(x, 52, verdict)
        canvas.text(x + BAR + 4, 63, words)
        x += 30 + 6.2 * len(words)
    canvas.frame(x + 2, 52)
    canvas.text(x + 3 * BAR + 8, 63, "Rung loses")
    return 74.0


def _names(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.cells if name != PLAIN))


def _panel(
    canvas: Canvas, top: float, title: str, rows: Sequence[Row], columns: list[str], beside: dict[tuple[str, str], Row]
) -> float:
    """Draw rows below the names of their faults, with their walls beside them; return where the panel ends."""
    names, walls = _names(rows), _names(beside.values())
    canvas.text(MARGIN, top + HEAD - 8, title, ' font-weight="600"')
    for place, name in enumerate([*names, *walls]):
        x = LABELS + CELL * place + 14
        canvas.text(x, top + HEAD - 6, name, f' transform="rotate(-60 {x:g} {top + HEAD - 6:g})"')
    y = top + HEAD
    for row in rows:
        canvas.text(MARGIN, y + 11, f"{row.client} · {row.wire}" + (" · whole" if row.mode == "whole" else ""))
        _cells(canvas, row, names, columns, LABELS, y)
        if wall := beside.get((row.client, row.wire)):
            _cells(canvas, wall, walls, columns, LABELS + CELL * len(names), y)
        y += STEP
    return y


def _cells(canvas: Canvas, row: Row, names: list[str], columns: list[str], left: float, y: float) -> None:
    lost = {loss.name for loss in row.losses()}
    for place, name in enumerate(names):
        x = left + CELL * place
        for number, column in enumerate(columns):
            if name in row.cells:
                canvas.bar(x + BAR * number, y, row.cells[name][column])
        if name in lost:
            canvas.frame(x, y)
