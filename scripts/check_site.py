"""Check the built site: every link leads somewhere, nothing is loaded from elsewhere, and every page can be searched.

Sphinx checks the links that it resolves; this checks the pages as a browser gets them.
"""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

LOADED: Final = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}


class Link(NamedTuple):
    """The target of a link or of a loaded file."""

    target: str
    is_loaded: bool


class PageReader(HTMLParser):
    """Collects the anchors, links and loaded files of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one tag names."""
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        if tag == "a" and values.get("href"):
            self.links.append(Link(str(values["href"]), is_loaded=False))
        elif tag in LOADED and values.get(LOADED[tag]):
            self.links.append(Link(str(values[LOADED[tag]]), is_loaded=True))


def check(site: Path) -> list[str]:
    """Return what is wrong with the site."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = PageReader()
        pages[path].feed(path.read_text(encoding="utf-8"))
    problems = [
        problem for path, page in pages.items() for link in page.links for problem in _broken(path, link, pages)
    ]
    problems += [
        f"{path.relative_to(site)}: loads from another host"
        for path in sorted(site.rglob("*.css"))
        if "url(http" in path.read_text(encoding="utf-8").replace('"', "").replace("'", "")
    ]
    return [problem.replace(f"{site}/", "") for problem in problems] + _unsearchable(site)


def _broken(path: Path, link: Link, pages: dict[Path, PageReader]) -> list[str]:
    parts = urlsplit(link.target)
    if parts.scheme or parts.netloc:
        is_foreign = link.is_loaded and parts.scheme != "data"
        return [f"{path}: loads {link.target}"] if is_foreign else []
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return [f"{path}: {link.target} does not exist"]
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return [f"{path}: {link.target} has no such place"]
    return []


def _unsearchable(site: Path) -> list[str]:
    """Return the pages that the search does not know."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    known = set(json.loads(text[text.index("{") : text.rindex("}") + 1])["docnames"])
    written = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    return [f"{page}: not in the search" for page in sorted(written - known - {"search", "genindex", "py-modindex"})]


def main() -> int:
    """Return the exit code: 1 if something is wrong with the site."""
    site = Path(sys.argv[1]).resolve()
    problems = check(site)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
