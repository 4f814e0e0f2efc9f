"""Names that are near another: at most two letters wrong, missing, added or swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORT_NAME: Final = 8  # characters up to which only one error is near


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the letters to change, add, remove or swap with their neighbour; `limit + 1` if there are more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, its_letter in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != its_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == its_letter:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before, last = last, row
    return min(last[-1], limit + 1)


def near_name(name: str, names: Iterable[str]) -> str:
    """Return the one name that this one is a typo of; empty if none is near, or more than one is.

    Names that differ in a digit are different names: `parser2` is no typo of `parser`.
    """
    limit = 1 if len(name) <= _SHORT_NAME else 2
    digits = [letter for letter in name if letter.isdigit()]
    near = {
        other
        for other in names
        if abs(len(other) - len(name)) <= limit
        and 0 < edit_distance(name.lower(), other.lower(), limit) <= limit
        and [letter for letter in other if letter.isdigit()] == digits
    }
    return near.pop() if len(near) == 1 else ""
