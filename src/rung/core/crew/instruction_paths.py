"""Paths in instructions: one that does not exist, but has exactly one near match, is a typo of that one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.text.near_names import near_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

# A path has a folder or an extension. Addresses, patterns and placeholders are no paths.
_PATH: Final = re.compile(
    r"(?<![\w/:.@~$*<>{}=\\-])(?:\./)?(?:[\w.+-]+/)*[\w+-][\w.+-]*(?:\.[A-Za-z]\w{0,9}|/[\w+-]+)(?![\w/@*(){}<>-]|\.\w|:[^\s\d])"
)
_SENTENCE_END: Final = re.compile(r"[.!?;]\s|\n\s*\n|\n\s*[-*\d#]|```")
# A sentence with one of these may name a file that the worker is to create.
_CREATES: Final = re.compile(
    r"\b(?:creat|writ|add|generat|produc|output|sav|stor|put|mak|emit|export|build|renam|mov|cop|touch|record|append|introduc"
    r"|split|extract|wrote|new|into|called|named|place|implement|scaffold|dump|log)\w*\b|>",
    re.IGNORECASE,
)
# The same name in another folder says nothing for files that every folder may have.
_COMMON_NAMES: Final = frozenset(
    {"__init__.py", "__main__.py", "conftest.py", "index.html", "index.js", "index.md", "index.ts", "index.tsx", "main.c",
     "main.go", "main.py", "main.rs", "mod.rs", "package.json", "pyproject.toml", "readme.md", "setup.py", "utils.py"}
)  # fmt: skip
_COMMON_FOLDERS: Final = frozenset({"app", "lib", "src", "test", "tests"})
_MAX_PATHS: Final = 500  # of one text that are compared
_SAME_SUFFIXES: Final = ({".yml", ".yaml"}, {".htm", ".html"}, {".jpg", ".jpeg"}, {".md", ".markdown"})


def paths_in(text: str) -> frozenset[str]:
    """Return what looks like a path in a text."""
    return frozenset(match[0] for match in _PATH.finditer(text))


def mend_paths(
    text: str, known: Collection[str], writes: Iterable[str], exists: Callable[[str], bool]
) -> tuple[str, tuple[str, ...]]:
    """Return the text with misspelled paths corrected, and what was corrected.

    `known` are the files and folders near the task, relative to its directory; `writes` are the paths that tasks of the plan
    write, which may not exist yet; `exists` answers for any other path. A path that the worker may have to create stays.
    """
    paths = frozenset(known)
    written = tuple(path.rstrip("/*") for path in writes)
    near: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        name = match[0].removeprefix("./")
        if name in paths or name.rstrip("/") in paths or name.startswith(written or ("\0",)):
            return match[0]
        if _CREATES.search(_sentence_before(text, match)) or exists(match[0]):
            return match[0]
        if name not in near:
            near[name] = _near_path(name, paths) if len(near) < _MAX_PATHS else ""
        return match[0].replace(name, near[name]) if near[name] else match[0]

    result = _PATH.sub(replace, text)
    return result, tuple(f"path {name} → {instead}" for name, instead in near.items() if instead)


def _sentence_before(text: str, match: re.Match[str]) -> str:
    """Return the part of the sentence of a path that comes before it."""
    start = 0
    for end in _SENTENCE_END.finditer(text, max(0, match.start() - 300), match.start()):
        start = end.end()
    return text[max(start, match.start() - 300) : match.start()]


def _near_path(name: str, paths: Collection[str]) -> str:
    """Return the one path that is near: misspelled, with another spelling of its suffix, or in another folder."""
    has_folder = "/" in name
    candidates = [one for one in paths if has_folder or "/" not in one]
    stem, suffix = _split_suffix(name)
    near = near_name(name, [one for one in candidates if _split_suffix(one)[1] == suffix])
    if near:
        return near
    spellings = {stem + other for group in _SAME_SUFFIXES if suffix in group for other in group} & set(candidates)
    if len(spellings) == 1:
        return spellings.pop()
    file = name.rpartition("/")[2]
    if not suffix or not has_folder or file.lower() in _COMMON_NAMES:
        return ""
    same_name = [one for one in paths if one.endswith(f"/{file}") or one == file]
    return same_name[0] if len(same_name) == 1 and _is_related(name, same_name[0], paths) else ""


def _split_suffix(path: str) -> tuple[str, str]:
    """Return a path without its suffix, and the suffix with its dot; empty if it has none."""
    folder, slash, file = path.rpartition("/")
    stem, dot, suffix = file.rpartition(".")
    return (folder + slash + stem, dot + suffix) if stem else (path, "")


def _is_related(name: str, other: str, paths: Collection[str]) -> bool:
    """Return whether the path may mean this one: they share a folder, or its first folder exists here at all."""
    parts = name.split("/")
    folders = set(parts[:-1]) - _COMMON_FOLDERS
    return not folders.isdisjoint(other.split("/")[:-1]) or parts[0] in {one.split("/")[0] for one in paths}
