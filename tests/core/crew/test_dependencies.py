"""Dependencies and write paths: cycles, groups, overlaps and conflicts."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.dependencies import (
    DependencyConflict,
    find_cycle,
    parallel_groups,
    paths_overlap,
    unknown_dependencies,
    write_conflicts,
)

NAMES = [f"t{number}" for number in range(7)]
PATHS = ["a.py", "src/b.py", "src/", "src/*.py", "docs/**", "docs/x.md", "./a.py", "src/sub/c.py"]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Generate dependencies without a cycle: each name depends on earlier ones only."""
    return {
        name: draw(st.lists(st.sampled_from(NAMES[:number]), unique=True, max_size=3)) if number else []
        for number, name in enumerate(NAMES)
    }


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a.py", "a.py", True),
        ("a.py", "./a.py", True),
        ("a.py", "b.py", False),
        ("src", "src/a.py", True),
        ("src/", "source/a.py", False),
        ("src/x/../a.py", "src/a.py", True),
        ("../a.py", "a.py", False),
        ("src\\a.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a.toml", False),
        ("src/*.py", "src/*.toml", True),
        ("src/**", "src/deep/down.py", True),
        ("**/a.py", "src/a.py", True),
        ("src/?.py", "src/ab.py", False),
        ("src/[ab].py", "src/b.py", True),
        ("src/[.py", "src/[.py", True),
        ("src/a.b", "src/a*b", True),
        (".", "anything", True),
    ],
)
def test_what_overlaps(one: str, other: str, expected: bool) -> None:
    """Equal files, folders with their content, and patterns overlap, in both directions."""
    assert paths_overlap(one, other) is expected
    assert paths_overlap(other, one) is expected


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_two_paths_can_be_compared(one: str, other: str) -> None:
    """Any two paths can be compared, and the result is symmetric."""
    assert paths_overlap(one, other) == paths_overlap(other, one)
    assert paths_overlap(one, one)


@given(graphs(), st.lists(st.lists(st.sampled_from(PATHS), max_size=2), min_size=7, max_size=7))
def test_clashes_are_all_pairs_that_may_run_at_once(after: dict[str, list[str]], paths: list[list[str]]) -> None:
    """The conflicts are those of a pairwise comparison, each reported once."""
    writes = dict(zip(NAMES, paths, strict=True))

    def reaches(one: str, other: str) -> bool:
        return other in after[one] or any(reaches(step, other) for step in after[one])

    expected = {
        (one, other)
        for one, other in combinations(NAMES, 2)
        if not reaches(one, other)
        and not reaches(other, one)
        and any(paths_overlap(left, right) for left in writes[one] for right in writes[other])
    }
    found = write_conflicts(writes, after)
    assert {(clash.first, clash.second) for clash in found} == expected
    assert len(found) == len(expected)
    assert all(clash.path in writes[clash.first] + writes[clash.second] for clash in found)


@given(graphs())
def test_waves_respect_who_waits(after: dict[str, list[str]]) -> None:
    """Every name is in exactly one group: the first one after all its dependencies."""
    turns = {name: number for number, wave in enumerate(parallel_groups(after)) for name in wave}
    assert set(turns) == set(after)
    for name, others in after.items():
        assert turns[name] == max((turns[other] + 1 for other in others), default=0)
    assert find_cycle(after) == ()


def test_cycles_and_strangers() -> None:
    """A cycle is returned as a path along it, an unknown name with the name that depends on it."""
    circle = find_cycle({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})
    assert circle[0] == circle[-1]
    assert set(circle) == {"a", "b", "c"}
    after = {"a": ["b"], "b": ["c"], "c": ["a"]}
    assert all(later in after[one] for one, later in pairwise(circle))
    assert unknown_dependencies({"a": ["x", "b"], "b": ["y"]}) == [("a", "x"), ("b", "y")]
    assert write_conflicts({"a": ["f"], "b": ["f"]}, {"a": [], "b": []}) == [DependencyConflict("a", "b", "f")]
