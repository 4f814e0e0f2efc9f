"""Draw a recorded terminal session as an animated SVG. Without animation, it shows the first screen."""

from __future__ import annotations

import re
from html import escape, unescape
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rich.style import Style
from rich.text import Text

from pictures.recording import COLUMNS, ROWS, Line

if TYPE_CHECKING:
    from collections.abc import Sequence

CHAR_WIDTH: Final = 8.4
LINE_HEIGHT: Final = 20
MARGIN: Final = 16
TITLE_HEIGHT: Final = 34
TYPING_SECONDS: Final = 1.0  # before the first line
HOLD_SECONDS: Final = 6.0  # after the last line, then it starts again
# By the number of the ANSI colour.
COLOURS: Final = {1: "#ff7b72", 2: "#56d364", 3: "#e3b341", 5: "#d2a8ff", 6: "#76e3ea"}
TEXT_LINE: Final = re.compile(r"<text class=\"l\d*\"[^>]*>(.*?)</text>")


def draw(title: str, command: str, lines: Sequence[Line]) -> str:
    """Return the SVG of a session: the typed command, then its lines as they came."""
    shown = [Line(0.0, f"\x1b[1m$ {command}\x1b[0m"), *(Line(at + TYPING_SECONDS, text) for at, text in lines)]
    total = shown[-1].seconds + HOLD_SECONDS
    width = round(COLUMNS * CHAR_WIDTH + 2 * MARGIN)
    height = TITLE_HEIGHT + ROWS * LINE_HEIGHT + MARGIN
    rows = [_row(number, line) for number, line in enumerate(shown)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">',
            f"<style>{_style(shown, total)}</style>",
            f'<rect width="{width}" height="{height}" rx="10" fill="#0d1117"/>',
            *(
                f'<circle cx="{20 + 20 * n}" cy="18" r="6" fill="{colour}"/>'
                for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
            ),
            f'<text class="title" x="{width / 2:g}" y="22">{escape(title)}</text>',
            f'<svg y="{TITLE_HEIGHT}" width="{width}" height="{ROWS * LINE_HEIGHT + 6}"><g class="screen">',
            *(row for row in rows if row),
            "</g></svg>",
            "</svg>",
            "",
        ]
    )


def text_of(svg: str) -> list[str]:
    """Return the lines of text in a drawn session, without the empty ones."""
    return [unescape(re.sub(r"<[^>]+>", "", line)).rstrip() for line in TEXT_LINE.findall(svg)]


def _row(number: int, line: Line) -> str:
    text = Text.from_ansi(line.ansi)
    text.rstrip()
    if not text.plain:
        return ""
    # A fallback font has other widths: the length keeps the columns.
    place = f'x="{MARGIN}" y="{(number + 1) * LINE_HEIGHT - 4}" textLength="{text.cell_len * CHAR_WIDTH:.4g}"'
    return f'<text class="l{number}" {place}>{_spans(text)}</text>'


def _spans(text: Text) -> str:
    """Return the text with a tspan for each styled part."""
    edges = sorted({0, len(text.plain), *(edge for span in text.spans for edge in (span.start, span.end))})
    parts = []
    for start, end in pairwise(edges):
        styles = [Style.parse(str(span.style)) for span in text.spans if span.start <= start < span.end]
        names = " ".join(dict.fromkeys(name for style in styles for name in _classes(style)))
        content = escape(text.plain[start:end], quote=False)
        parts.append(f'<tspan class="{names}">{content}</tspan>' if names else content)
    return "".join(parts)


def _classes(style: Style) -> list[str]:
    """Return the names of the CSS classes for a style."""
    number = style.color.number if style.color else None
    shades = [name for name, is_on in (("bold", style.bold), ("dim", style.dim)) if is_on]
    return [*shades, *([f"c{number}"] if number in COLOURS else [])]


def _style(lines: Sequence[Line], total: float) -> str:
    """Return the CSS: colours, when each line appears, and when the screen scrolls."""
    rules = [
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}",
        ".title{fill:#8b949e;text-anchor:middle}.bold{font-weight:700}.dim{fill:#8b949e}",
        *(f".c{number}{{fill:{colour}}}" for number, colour in COLOURS.items()),
    ]
    # The animation starts where the first scene is over, so that a glance shows something.
    first = next((line.seconds for line in lines if not line.ansi), 0.0)
    runs = f"{total:.1f}s step-end {-first:.1f}s infinite"
    scrolls = ["0%{transform:translateY(0)}"]
    for number, line in enumerate(lines):
        share = 100 * line.seconds / total
        if line.ansi and number:
            rules.append(
                f"@keyframes k{number}{{0%{{opacity:0}}{share:.2f}%,to{{opacity:1}}}}"
                f".l{number}{{animation:k{number} {runs}}}"
            )
        if number >= ROWS:
            scrolls.append(f"{share:.2f}%{{transform:translateY({(ROWS - 1 - number) * LINE_HEIGHT}px)}}")
    rules += [
        f"@keyframes scroll{{{''.join(scrolls)}to{{transform:translateY({min(0, ROWS - len(lines)) * LINE_HEIGHT}px)}}}}",
        f".screen{{animation:scroll {runs}}}",
        "@media(prefers-reduced-motion:reduce){*{animation:none!important}}",
    ]
    return "".join(rules)
