"""Who waits for whom, and who writes where: found before anything runs, where it is declared."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_WILD: Final = re.compile(r"[*?\[]")
Place = tuple[str, ...]


class DependencyConflict(NamedTuple):
    """Two that may run at once, and what both write."""

    first: str
    second: str
    path: str


def unknown(after: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    """Everybody who waits for somebody that is not there, and for whom."""
    return [(name, other) for name, others in after.items() for other in others if other not in after]


def cycle(after: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Some that wait for one another in a circle, the first of them again at the end; empty where there is none."""
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))  # so that each waits for the one after it
    return ()


def waves(after: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Who may run together, in turns; each in the order given. There must be no cycle."""
    sorter = TopologicalSorter(after)
    sorter.prepare()
    found: list[list[str]] = []
    order = {name: number for number, name in enumerate(after)}
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=order.__getitem__)
        found.append(ready)
        sorter.done(*ready)
    return found


def clashes(writes: Mapping[str, Sequence[str]], after: Mapping[str, Collection[str]]) -> list[DependencyConflict]:
    """Every two that may run at once and write one file; `after` has no cycle and names only those that are there."""
    before = _all_before(after)
    number = {name: place for place, name in enumerate(after)}
    found: list[DependencyConflict] = []
    told: set[tuple[str, str]] = set()
    for first, second, path in _sharing(writes):
        pair = (first, second) if number[first] < number[second] else (second, first)
        ordered = before[first] >> number[second] & 1 or before[second] >> number[first] & 1
        if pair not in told and not ordered:
            told.add(pair)
            found.append(DependencyConflict(*pair, path))
    return found


def overlap(one: str, other: str) -> bool:
    """May these two name one file? A folder holds all that is in it; `*`, `?` and `**` are understood."""
    return _meet(_place(one), _place(other))


def _place(path: str) -> Place:
    parts: list[str] = []
    for part in path.strip().replace("\\", "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _meet(one: Place, other: Place) -> bool:
    for left, right in zip(one, other, strict=False):
        if "**" in (left, right):
            return True
        if not _alike(left, right):
            return False
    return True


def _alike(left: str, right: str) -> bool:
    """May two parts of a path be the same? Of two patterns nobody can be sure, so they may."""
    wild = [bool(_WILD.search(part)) for part in (left, right)]
    if not any(wild):
        return left == right
    if all(wild):
        return True
    pattern, name = (left, right) if wild[0] else (right, left)
    return re.fullmatch(_translated(pattern), name) is not None


def _translated(pattern: str) -> str:
    parts = re.split(r"([*?]|\[[^\]]+\])", re.sub(r"\*+", "*", pattern))
    known = {"*": ".*", "?": "."}
    return "".join("." if len(part) > 1 and part[0] == "[" else known.get(part) or re.escape(part) for part in parts)


def _sharing(writes: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Every two writers of one place. Plain paths are looked up; only patterns are compared with all."""
    plain: dict[Place, list[str]] = {}
    wild: list[tuple[str, str, Place]] = []
    everything = [(name, path, _place(path)) for name, paths in writes.items() for path in paths]
    for name, path, place in everything:
        if _WILD.search(path):
            wild.append((name, path, place))
        else:
            plain.setdefault(place, []).append(name)
    for name, path, place in everything:
        if _WILD.search(path):
            continue
        for length in range(len(place) + 1):
            yield from ((name, other, path) for other in plain.get(place[:length], ()) if other != name)
        yield from ((name, other, path) for other, _, there in wild if other != name and _meet(place, there))
    for at, (name, path, place) in enumerate(wild):
        yield from ((name, other, path) for other, _, there in wild[:at] if other != name and _meet(place, there))


def _all_before(after: Mapping[str, Collection[str]]) -> dict[str, int]:
    """For each, all that are finished before it starts, as a set of bits: thousands of tasks take no time."""
    number = {name: place for place, name in enumerate(after)}
    before: dict[str, int] = {}
    for name in TopologicalSorter(after).static_order():
        bits = 0
        for other in after[name]:
            bits |= before[other] | 1 << number[other]
        before[name] = bits
    return before
