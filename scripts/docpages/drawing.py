"""Shapes of the generated pictures: boxes, arrows and text as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

INK, PALE, LINE = "#1f2933", "#616e7c", "#9aa5b1"
GREEN, ORANGE, BLUE = "#1b8a5a", "#c2571a", "#2563a8"
STYLE: Final = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2933}.name{font-weight:600}"
    ".pale{fill:#616e7c;font-size:12px}.title{font-weight:600;font-size:15px}"
)
COLOURS: Final = {LINE: "line", GREEN: "green", ORANGE: "orange", BLUE: "blue"}


class Box(NamedTuple):
    """A rectangle with a name and, below it, lines of smaller text."""

    x: float
    y: float
    width: float
    height: float
    name: str
    lines: tuple[str, ...] = ()
    colour: str = LINE
    fill: str = "#f5f7fa"

    def draw(self) -> str:
        """Return the SVG of the box."""
        middle = self.x + self.width / 2
        top = self.y + self.height / 2 + 5 - 8 * len(self.lines)
        rows = [f'<text class="name" x="{middle:g}" y="{top:g}" text-anchor="middle">{escape(self.name)}</text>']
        rows += [
            text(line, middle, top + 17 * number, anchor="middle", style="pale")
            for number, line in enumerate(self.lines, 1)
        ]
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return f'<rect {place} rx="8" fill="{self.fill}" stroke="{self.colour}"/>' + "".join(rows)


def text(content: str, x: float, y: float, *, anchor: str = "start", style: str = "") -> str:
    """Return one line of text."""
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(content)}</text>'


def arrow(points: Iterable[tuple[float, float]], *, colour: str = LINE, dashed: bool = False) -> str:
    """Return a line through the points with a head at its end."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}'
        f' marker-end="url(#{COLOURS[colour]})"/>'
    )


def picture(title: str, width: float, height: float, parts: Iterable[str]) -> str:
    """Return a whole SVG on a white ground, readable in dark themes too."""
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
        for colour, name in COLOURS.items()
    )
    size = f'width="{width:g}" height="{height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style><defs>{heads}</defs>",
            f'<rect width="{width:g}" height="{height:g}" rx="10" fill="#ffffff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )
