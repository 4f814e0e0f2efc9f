"""Checks on declared dependencies and write paths: unknown names, cycles, and concurrent writes to one file.

A dependency mapping maps the name of each task to the names of the tasks that must be complete before it starts.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_WILDCARD: Final = re.compile(r"[*?\[]")
PathParts = tuple[str, ...]


class DependencyConflict(NamedTuple):
    """Two tasks that may run concurrently, and a path that both write."""

    first: str
    second: str
    path: str


def unknown_dependencies(dependencies: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    """Return each name together with a dependency of it that does not exist."""
    return [(name, other) for name, others in dependencies.items() for other in others if other not in dependencies]


def find_cycle(dependencies: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the names of a dependency cycle, the first one repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))  # so that each depends on the next
    return ()


def parallel_groups(dependencies: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the names in groups: each group depends only on the groups before it. There must be no cycle."""
    sorter = TopologicalSorter(dependencies)
    sorter.prepare()
    groups: list[list[str]] = []
    order = {name: number for number, name in enumerate(dependencies)}
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=order.__getitem__)
        groups.append(ready)
        sorter.done(*ready)
    return groups


def write_conflicts(
    writes: Mapping[str, Sequence[str]], dependencies: Mapping[str, Collection[str]]
) -> list[DependencyConflict]:
    """Return every pair that may run concurrently and write one file.

    `dependencies` must have no cycle and no unknown names.
    """
    ancestors = _ancestors(dependencies)
    number = {name: position for position, name in enumerate(dependencies)}
    conflicts: list[DependencyConflict] = []
    reported: set[tuple[str, str]] = set()
    for first, second, path in _shared_paths(writes):
        pair = (first, second) if number[first] < number[second] else (second, first)
        is_ordered = ancestors[first] >> number[second] & 1 or ancestors[second] >> number[first] & 1
        if pair not in reported and not is_ordered:
            reported.add(pair)
            conflicts.append(DependencyConflict(*pair, path))
    return conflicts


def paths_overlap(one: str, other: str) -> bool:
    """Return whether two paths may name one file. A folder contains everything below it; `*`, `?` and `**` match."""
    return _parts_overlap(_split(one), _split(other))


def _split(path: str) -> PathParts:
    parts: list[str] = []
    for part in path.strip().replace("\\", "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _parts_overlap(one: PathParts, other: PathParts) -> bool:
    for left, right in zip(one, other, strict=False):
        if "**" in (left, right):
            return True
        if not _may_match(left, right):
            return False
    return True


def _may_match(left: str, right: str) -> bool:
    """Return whether two parts of a path may be equal. Two patterns always may: comparing them is not worth it."""
    are_patterns = [bool(_WILDCARD.search(part)) for part in (left, right)]
    if not any(are_patterns):
        return left == right
    if all(are_patterns):
        return True
    pattern, name = (left, right) if are_patterns[0] else (right, left)
    return re.fullmatch(_glob_to_regex(pattern), name) is not None


def _glob_to_regex(pattern: str) -> str:
    parts = re.split(r"([*?]|\[[^\]]+\])", re.sub(r"\*+", "*", pattern))
    wildcards = {"*": ".*", "?": "."}
    return "".join(
        "." if len(part) > 1 and part[0] == "[" else wildcards.get(part) or re.escape(part) for part in parts
    )


def _shared_paths(writes: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield every two writers of one path. Plain paths are looked up; only patterns are compared with all others."""
    plain: dict[PathParts, list[str]] = {}
    patterns: list[tuple[str, str, PathParts]] = []
    everything = [(name, path, _split(path)) for name, paths in writes.items() for path in paths]
    for name, path, parts in everything:
        if _WILDCARD.search(path):
            patterns.append((name, path, parts))
        else:
            plain.setdefault(parts, []).append(name)
    for name, path, parts in everything:
        if _WILDCARD.search(path):
            continue
        for length in range(len(parts) + 1):
            yield from ((name, other, path) for other in plain.get(parts[:length], ()) if other != name)
        yield from (
            (name, other, path) for other, _, pattern in patterns if other != name and _parts_overlap(parts, pattern)
        )
    for index, (name, path, parts) in enumerate(patterns):
        yield from (
            (name, other, path)
            for other, _, pattern in patterns[:index]
            if other != name and _parts_overlap(parts, pattern)
        )


def _ancestors(dependencies: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return all direct and indirect dependencies of each name, as a bit set: fast for thousands of tasks."""
    number = {name: position for position, name in enumerate(dependencies)}
    ancestors: dict[str, int] = {}
    for name in TopologicalSorter(dependencies).static_order():
        bits = 0
        for other in dependencies[name]:
            bits |= ancestors[other] | 1 << number[other]
        ancestors[name] = bits
    return ancestors
