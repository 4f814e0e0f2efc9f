"""The policy in force: a preset, what the project's file says over it, and what was set in the service over that."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.parser import PolicyBook, book_from, merged, policy_from
from rung.core.policy.serializer import policy_table
from rung.store.settings import setting, settings
from rung.wiring.files import load_policy
from rung.wiring.journals import CONFIG_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal
    from rung.store.settings import StoredSetting

POLICY_SETTING: Final = "policy"
CACHE_SECONDS: Final = 2.0  # seconds for which what was set is known without looking again


class PolicyLayer(NamedTuple):
    """One who has a say, and what they say."""

    origin: str
    table: dict[str, Any]


def project_key(project: str) -> str:
    """The name of the setting in which a project's own policy is."""
    return f"{POLICY_SETTING}/{project}"


def file_book() -> PolicyBook:
    """The policies of the project's file; presets where there is none."""
    return load_policy(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else book_from({})


class PolicyStore:
    """The policies of one journal and one file (`rung.toml`, unless given), for whoever makes recoveries.

    >>> policies = rung.policies.Policies(journal)
    >>> rung.recover_sync(attempt, request, policy=policies.pick("checkout"), journal=journal)
    """

    def __init__(
        self, journal: Journal, book: PolicyBook | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._journal = journal
        self.book = book if book is not None else file_book()
        self._now = now
        self._known: dict[str, tuple[float, Policy]] = {}

    def pick(self, project: str = "") -> Policy:
        """The policy in force for a project."""
        known = self._known.get(project)
        if known is not None and self._now() - known[0] < CACHE_SECONDS:
            return known[1]
        policy = self.effective(project)
        self._known[project] = (self._now(), policy)
        return policy

    def effective(self, project: str = "", tool: str = "") -> Policy:
        """The same, looked up now; a tool's own word in the file weighs most."""
        tables = [layer.table for layer in self.layers(project)]
        return policy_from(merged(*tables, dict(self.book.tools.get(tool, {}))))

    def layers(self, project: str = "") -> list[PolicyLayer]:
        """Who has a say, the weightiest last."""
        layers = [PolicyLayer("file", self.book.settings), PolicyLayer("service", self.stored().body or {})]
        if project:
            layers.append(PolicyLayer("project file", dict(self.book.projects.get(project, {}))))
            layers.append(PolicyLayer("project", self.stored(project).body or {}))
        return layers

    def stored(self, project: str = "") -> StoredSetting:
        """What was set in the service."""
        return setting(self._journal, project_key(project) if project else POLICY_SETTING)

    def projects(self) -> list[StoredSetting]:
        """What was set for projects."""
        return settings(self._journal, POLICY_SETTING + "/")

    def with_stored(self, table: dict[str, Any], project: str = "") -> Policy:
        """The policy that would be in force if this was what is set."""
        tables = [layer.table for layer in self.layers(project)]
        tables[-1 if project else 1] = table
        return policy_from(merged(*tables))

    def origins(self, project: str = "") -> dict[str, tuple[Any, str]]:
        """Every value in force by its key, and where it comes from."""
        flat = _flat(policy_table(self.effective(project)))
        said: list[tuple[str, dict[str, Any]]] = [(one.origin, _flat(one.table)) for one in self.layers(project)]
        return {key: (value, _origin(key, said)) for key, value in flat.items()}


def _origin(key: str, said: list[tuple[str, dict[str, Any]]]) -> str:
    short: str = key.removeprefix("budget.")
    for origin, flat in reversed(said):
        if key in flat or short in flat or (key == "ladder" and any(one in flat for one in ("ladder", "retries"))):
            return str(origin)
    return "preset"


def _flat(table: dict[str, Any]) -> dict[str, Any]:
    """One level of tables taken apart: `backoff.base`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("backoff", "budget") and hasattr(value, "items"):
            flat.update({f"{key}.{inner}": item for inner, item in value.items()})
        else:
            flat[key] = value
    return flat
