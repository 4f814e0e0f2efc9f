"""Section markers and code fences in instructions that follow the protocol's form (`<section id="…">`)."""

from __future__ import annotations

import re
from typing import Final

_OPEN: Final = re.compile(r"\s*<section(?:\s+id=[\"']?(?P<id>[\w.-]+)[\"']?)?\s*>\s*$", re.IGNORECASE)
_CLOSE: Final = re.compile(r"\s*</section>\s*$", re.IGNORECASE)
_INNER_OPEN: Final = re.compile(r"\s*<(?P<tag>core|mandatory|guidance|template)(?:\s[^<>]*)?>\s*$", re.IGNORECASE)
_INNER_CLOSE: Final = re.compile(r"\s*</(?P<tag>core|mandatory|guidance|template)>\s*$", re.IGNORECASE)
_FENCE: Final = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<language>[\w+-]*)[^`]*$")
_HEADING: Final = re.compile(r"#{1,3}\s+(?P<title>\S.*)$")
_LIST: Final = re.compile(r"<sections>(?P<names>.*?)</sections>", re.IGNORECASE | re.DOTALL)


def is_in_sections(text: str) -> bool:
    """Return whether the text follows the protocol's form: it has a section marker on a line of its own."""
    fence = ""
    for line in text.splitlines():
        fence = _fence_after(line, fence)
        if not fence and (_OPEN.match(line) or _CLOSE.match(line)):
            return True
    return False


def mend_fences(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with a code fence that is never closed closed: before the next marker or opening, or at the end."""
    lines = text.split("\n")
    if not _is_unclosed(lines):
        return text, ()
    result: list[str] = []
    fence = ""
    mended: list[str] = []
    for line in lines:
        match = _FENCE.match(line)
        ends = _CLOSE.match(line) or _OPEN.match(line) or _INNER_CLOSE.match(line)
        opens_another = match is not None and bool(match["language"])
        if fence and (ends or opens_another):
            result.append(fence)
            mended.append(f"code fence closed before line {len(result)}")
            fence = ""
        result.append(line)
        fence = _fence_after(line, fence)
    if fence:
        while result and not result[-1].strip():
            result.pop()
        result += [fence, ""]
        mended.append("code fence closed at the end")
    return "\n".join(result), tuple(mended)


def mend_sections(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with missing section markers added: openings, ends, and those of a heading outside all sections."""
    if not is_in_sections(text):
        return text, ()
    walk = _Walk()
    for line in text.split("\n"):
        walk.read(line)
    walk.finish()
    return "\n".join(walk.lines), tuple(walk.mended)


def missing_sections(text: str) -> tuple[str, ...]:
    """Return what is missing in a text in the protocol's form: sections that its list names, and text in a section."""
    if not is_in_sections(text):
        return ()
    bodies: dict[str, str] = {}
    name: str | None = None
    for line in text.splitlines():
        opened = _OPEN.match(line)
        if opened:
            name = opened["id"] or ""
            bodies.setdefault(name, "")
        elif _CLOSE.match(line):
            name = None
        elif name is not None and not (_INNER_OPEN.match(line) or _INNER_CLOSE.match(line) or _HEADING.match(line)):
            bodies[name] += line.strip()
    listed = _LIST.search(text)
    names = re.findall(r"^\s*[-*]\s+([\w.-]+)\s*$", listed["names"], re.MULTILINE) if listed else []
    missing = [f"the section {one} is missing" for one in names if one not in bodies]
    return (*missing, *(f"the section {one or 'without an id'} is empty" for one, body in bodies.items() if not body))


def _fence_after(line: str, fence: str) -> str:
    """Return the open fence after a line; empty outside code."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match["marks"]
    closes = match["marks"].startswith(fence) and not match["language"]
    return "" if closes else fence


def _is_unclosed(lines: list[str]) -> bool:
    fence = ""
    for line in lines:
        fence = _fence_after(line, fence)
    return bool(fence)


class _Walk:
    """Reads a text line by line and adds the markers that are missing."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.mended: list[str] = []
        self._section: str | None = None
        self._inner: list[str] = []
        self._has_section = False
        self._loose_start: int | None = None  # line after the last section where text without one begins
        self._fence = ""

    def read(self, line: str) -> None:
        """Add a line, after the markers that must come before it."""
        was_code, self._fence = bool(self._fence), _fence_after(line, self._fence)
        if was_code or self._fence:
            self.lines.append(line)
            return
        opened, heading = _OPEN.match(line), _HEADING.match(line)
        if opened:
            self._close("before the next section")
            self._begin(opened["id"] or "")
        elif _CLOSE.match(line):
            self._open_loose()
            self._close_inner()
            self._section = None
            self._loose_start = None
        elif self._section is None and self._has_section and heading:
            self._loose_start = len(self.lines) if self._loose_start is None else self._loose_start
        self._read_inner(line)
        self.lines.append(line)

    def _begin(self, name: str) -> None:
        self._section, self._has_section, self._loose_start = name, True, None

    def finish(self) -> None:
        """Close what is open at the end of the text."""
        trailing: list[str] = []
        while self.lines and not self.lines[-1].strip():
            trailing.append(self.lines.pop())
        if self._section is None and self._loose_start is not None:
            self._open_loose()
        self._close("at the end")
        self.lines += trailing

    def _read_inner(self, line: str) -> None:
        opened, closed = _INNER_OPEN.match(line), _INNER_CLOSE.match(line)
        if opened:
            self._inner.append(opened["tag"].lower())
        elif closed and closed["tag"].lower() in self._inner:
            while self._inner.pop() != closed["tag"].lower():
                pass

    def _open_loose(self) -> None:
        """Open a section for a heading that stands outside all sections."""
        if self._section is not None or self._loose_start is None:
            return
        heading = _HEADING.match(self.lines[self._loose_start])
        title = heading["title"] if heading else "section"
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        self.lines.insert(self._loose_start, f'<section id="{name}">')
        self.mended.append(f"<section> added before the heading {title}")
        self._section, self._loose_start = name, None

    def _close(self, where: str) -> None:
        self._open_loose()
        if self._section is None:
            return
        self._close_inner()
        blank = 0
        while blank < len(self.lines) and not self.lines[-1 - blank].strip():
            blank += 1
        self.lines.insert(len(self.lines) - blank, "</section>")
        self.mended.append(f"</section> of {self._section or 'a section'} added {where}")
        self._section = None

    def _close_inner(self) -> None:
        while self._inner:
            tag = self._inner.pop()
            self.lines.append(f"</{tag}>")
            self.mended.append(f"</{tag}> added")
