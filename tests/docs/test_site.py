"""The check of the built site finds what a reader would stumble over. `make site` runs it on the real one."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rung

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def check() -> Callable[[Path], list[str]]:
    """The function of the script."""
    function: Callable[[Path], list[str]] = runpy.run_path(str(ROOT / "scripts" / "check_site.py"))["check"]
    return function


def build(folder: Path, body: str) -> Path:
    """Write a site of one page, with a style sheet and a search index."""
    (folder / "index.html").write_text(f'<h1 id="top">Rung</h1>{body}', encoding="utf-8")
    (folder / "site.css").write_text("body { color: black }", encoding="utf-8")
    (folder / "searchindex.js").write_text('Search.setIndex({"docnames": ["index"]})', encoding="utf-8")
    return folder


def test_a_good_site_passes(tmp_path: Path, check: Callable[[Path], list[str]]) -> None:
    """Links to pages, places and other sites, and files of the site, are good."""
    body = '<a href="#top">up</a><a href="index.html#top">up</a><a href="https://example.org">out</a><link href="site.css">'
    assert check(build(tmp_path, body)) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">', "index.html: gone.html does not exist"),
        ('<a href="#gone">', "index.html: #gone has no such place"),
        ('<img src="gone.svg">', "index.html: gone.svg does not exist"),
        ('<script src="https://cdn.example.org/x.js">', "index.html: loads https://cdn.example.org/x.js"),
    ],
)
def test_a_bad_link_is_found(tmp_path: Path, check: Callable[[Path], list[str]], body: str, problem: str) -> None:
    """A missing page, place or picture is named, and so is a file from another host."""
    assert check(build(tmp_path, body)) == [problem]


def test_a_font_from_elsewhere_and_an_unsearchable_page_are_found(
    tmp_path: Path, check: Callable[[Path], list[str]]
) -> None:
    """A style sheet that loads from another host is named, and so is a page that the search does not know."""
    site = build(tmp_path, "")
    (site / "site.css").write_text('@font-face { src: url("https://fonts.example.org/a.woff2") }', encoding="utf-8")
    (site / "other.html").write_text("<h1>Other</h1>", encoding="utf-8")
    assert check(site) == ["site.css: loads from another host", "other: not in the search"]


def test_every_namespace_has_a_page_of_the_api() -> None:
    """The API reference has a page for `rung` and for each public namespace, and no other."""
    pages = {path.stem for path in (ROOT / "docs/reference/api").glob("*.md")}
    assert pages == {"index", "rung", *rung._NAMESPACES}
