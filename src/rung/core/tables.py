"""Ladders and policies as plain tables: exactly what a policy file may hold, so that it can be read again."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from rung.core.policy import worst_case

if TYPE_CHECKING:
    from rung.core.ladder import Ladder, Rung
    from rung.core.policy import Policy


def ladder_table(ladder: Ladder) -> dict[str, Any]:
    """What `ladder_from` makes this ladder of."""
    return {
        "name": ladder.name,
        "about": ladder.about,
        "first": ladder.first,
        "rungs": [_rung_table(rung) for rung in ladder.rungs],
        "entry": {kind.value: name for kind, name in ladder.entry.items()},
        "default_entry": ladder.default_entry,
        "loops": {str(repeats): name for repeats, name in ladder.loops},
    }


def _rung_table(rung: Rung) -> dict[str, Any]:
    table = {field.name: _plain(getattr(rung, field.name)) for field in fields(rung) if field.init}
    return {key: value for key, value in table.items() if value is not None}


def policy_table(policy: Policy) -> dict[str, Any]:
    """What `policy_from` makes this policy of."""
    table = {field.name: getattr(policy, field.name) for field in fields(policy) if field.init}
    table["ladder"] = ladder_table(policy.ladder)
    table["models"] = [asdict(model) for model in policy.models]
    table["backoff"] = asdict(policy.backoff)
    table["budget"] = asdict(policy.budget)
    return {key: _plain(value) for key, value in table.items()}


def worst_table(policy: Policy) -> dict[str, Any]:
    """The most an incident can take: attempts, seconds, dollars; null where nothing bounds it."""
    return asdict(worst_case(policy))


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if hasattr(value, "items") else value
