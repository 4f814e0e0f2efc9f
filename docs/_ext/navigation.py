"""Navigation of the site. The pages stay plain Markdown, which code hosts show too.

New pages appear without a change here: each section lists the pages of its folder. Pages of the repository's root, such
as the changelog, are shown below `project/`.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parents[2]
# Page: its lists of pages, each with a caption. "*" stands for the other pages of the folder.
SECTIONS: Final = {
    "index": (
        ("Start", ("tutorial", "tutorials/index", "coming-from/index")),
        ("Do it", ("howto/index",)),
        ("Look it up", ("reference/index", "reference/cli/README", "reference/api/index", "reference/settings")),
        ("Understand it", ("explanation/index", "results", "survival")),
        ("Project", ("project/*",)),
    ),
    "tutorials/index": (("", ("*",)),),
    "coming-from/index": (("", ("*",)),),
    "howto/index": (("", ("*",)),),
    "explanation/index": (("", ("architecture", "*")),),
    "reference/index": (("", ("glossary", "kinds/README", "ladders/README", "policy", "events", "prompts", "*")),),
    "reference/kinds/README": (("", ("*",)),),
    "reference/ladders/README": (("", ("*",)),),
    "reference/cli/README": (("", ("*",)),),
    "reference/api/index": (("", ("rung", "*")),),
}
LISTED_ELSEWHERE: Final = {"reference/index": ("settings", "glossary", "policy", "events", "prompts")}
ROOT_PAGES: Final = {
    "project/changelog": "CHANGELOG.md",
    "project/code-of-conduct": "CODE_OF_CONDUCT.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/examples": "examples/README.md",
    "project/security-policy": "SECURITY.md",
}
LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def add_sections(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the lists of pages to a section's page."""
    for caption, pages in SECTIONS.get(page, ()):
        visible = ":hidden:" if page == "index" or page.endswith("README") else ":maxdepth: 1"
        options = [":glob:", visible, *([f":caption: {caption}"] if caption else [])]
        known = LISTED_ELSEWHERE.get(page, ())
        names = [*pages] if not known else [name for one in pages for name in _expanded(page, one, known)]
        source[0] += "\n\n" + "\n".join(["```{toctree}", *options, "", *names, "```"]) + "\n"


def _expanded(page: str, name: str, without: tuple[str, ...]) -> list[str]:
    """Return the pages that "*" stands for, but those that are listed by name or by another page."""
    if name != "*":
        return [name]
    folder = (ROOT / "docs" / page).parent
    return sorted(path.stem for path in folder.glob("*.md") if path.stem not in (*without, "index"))


def show_root_pages(_app: Sphinx, page: str, source: list[str]) -> None:
    """Replace a page of `project/` by the page of the repository's root, with its links."""
    if page in ROOT_PAGES:
        text = (ROOT / ROOT_PAGES[page]).read_text(encoding="utf-8")
        folder = PurePosixPath(ROOT_PAGES[page]).parent
        source[0] = LINK.sub(lambda match: _link(match[1], match[2], folder), text)
    else:
        folder = PurePosixPath("docs", page).parent
        source[0] = LINK.sub(
            lambda match: _link(match[1], match[2], folder) if "../" in match[2] else match[0], source[0]
        )


def _link(text: str, target: str, folder: PurePosixPath) -> str:
    """Return a link of a page in `folder` as a link of the site; what is not on the site becomes plain text."""
    if re.match(r"[a-z]+:|#", target):
        return f"[{text}]({target})"
    name, hash_, anchor = target.partition("#")
    path = _normal(folder / name)
    shown = {source: page for page, source in ROOT_PAGES.items()}.get(path)
    if shown is not None:
        return f"[{text}](/{shown}.md{hash_}{anchor})"
    if path.startswith("docs/"):
        return f"[{text}](/{path.removeprefix('docs/')}{hash_}{anchor})"
    return text if "`" in text else f"`{text}`" if text == target else text


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", show_root_pages)
    app.connect("source-read", add_sections)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
