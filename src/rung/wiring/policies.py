"""Effective policies: a preset, overridden by rung.toml, overridden by the service's stored settings."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.parser import PolicyBook, merge_tables, parse_policy, parse_policy_file
from rung.core.policy.serializer import policy_table
from rung.engine.default_journal import JOURNAL_VARIABLE
from rung.store import open_journal
from rung.store.settings import setting, settings
from rung.wiring.journals import JOURNAL_KEY, default_path, exists, is_url
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal
    from rung.store.settings import StoredSetting
    from rung.wiring.settings_file import SettingsFile

POLICY_SETTING: Final = "policy"
_STORED: Final = ("service", "project")  # layers that operators set
CACHE_SECONDS: Final = 1.0  # a changed policy takes effect within this time


class PolicyLayer(NamedTuple):
    """One layer of policy settings and its origin."""

    origin: str
    table: dict[str, Any]


def project_key(project: str) -> str:
    """Return the name of the setting that stores a project's policy."""
    return f"{POLICY_SETTING}/{project}"


def is_policy_key(name: str) -> bool:
    """Return whether a setting stores the default policy or that of a project."""
    return name == POLICY_SETTING or name.startswith(project_key(""))


def file_book(file: SettingsFile | None = None) -> PolicyBook:
    """Return the policies of a file, or of the working directory's rung.toml, or the presets if there is no such file."""
    file = find() if file is None else file
    return parse_policy_file({}) if file is None else file.book()


def directory_policy(directory: str, journal_at: str, tool: str = "") -> Policy:
    """Return the effective policy of the project in a directory, for a process that has no journal open."""
    file = find(directory, quiet=True)
    book = parse_policy_file({}) if file is None else file.book()
    at = journal_at or os.environ.get(JOURNAL_VARIABLE, "") or ("" if file is None else file.table.get(JOURNAL_KEY, ""))
    at = at or str(default_path())
    at = at if is_url(at) else str(Path(directory) / Path(at).expanduser())
    project = Path(directory).name
    if not exists(at):
        return book.policy_for(project, tool)
    with open_journal(at) as journal:
        return PolicyStore(journal, book).effective(project, tool)


class PolicyStore:
    """The effective policies from one journal and one policy file.

    Args:
        journal: Journal with the settings that the service stored.
        book: Policies of a file. Default: rung.toml of the working directory.
        now: Clock in seconds, for the cache. Default: `time.monotonic`.
        keep_ladder: Whether the policies have the ladder of the file, whatever is stored. Default: False.

    Example:
        >>> import pathlib, tempfile, rung
        >>> journal = rung.journal(pathlib.Path(tempfile.mkdtemp()) / "journal.db")
        >>> rung.policies.PolicyStore(journal).pick("checkout").ladder.name
        'task'
        >>> journal.close()
    """

    def __init__(
        self,
        journal: Journal,
        book: PolicyBook | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        keep_ladder: bool = False,
    ) -> None:
        self._journal = journal
        self._keep_ladder = keep_ladder
        self.book = book if book is not None else file_book()
        self._now = now
        self._cache: dict[tuple[str, str, str], tuple[float, Policy]] = {}

    def pick(self, project: str = "", tool: str = "", *, default_ladder: str = "") -> Policy:
        """Return the effective policy of a project, and of a tool if it is known before it fails; cached for CACHE_SECONDS.

        Args:
            project: Name of the project. Default: the default policy.
            tool: Name of the tool. Default: none.
            default_ladder: Ladder that holds where the settings name none. Default: `task`.
        """
        cached = self._cache.get((project, tool, default_ladder))
        if cached is not None and self._now() - cached[0] < CACHE_SECONDS:
            return cached[1]
        now = self._now()
        policy = self.effective(project, tool, default_ladder=default_ladder)
        self._cache[project, tool, default_ladder] = (now, policy)
        return policy

    def effective(self, project: str = "", tool: str = "", *, default_ladder: str = "") -> Policy:
        """Return the effective policy, read now; a tool's settings in the file take precedence.

        Args:
            project: Name of the project. Default: the default policy.
            tool: Name of the tool. Default: none.
            default_ladder: Ladder that holds where the settings name none. Default: `task`.
        """
        default = [PolicyLayer("preset", {"ladder": default_ladder})] if default_ladder else []
        return self._merge([*default, *self.layers(project)], dict(self.book.tools.get(tool, {})))

    def _merge(self, layers: list[PolicyLayer], tool: dict[str, Any] | None = None) -> Policy:
        """Return the policy of these layers; those of operators bound those of a file that is not trusted."""
        policy = parse_policy(merge_tables(*(layer.table for layer in layers), tool or {}))
        return self.book.limit(policy, *(layer.table for layer in layers if layer.origin in _STORED))

    def layers(self, project: str = "") -> list[PolicyLayer]:
        """Return the layers of settings, highest precedence last.

        Args:
            project: Name of the project. Default: the default policy.
        """
        layers = [PolicyLayer("file", self.book.settings), PolicyLayer("service", self._stored_table())]
        if project:
            layers.append(PolicyLayer("project file", dict(self.book.projects.get(project, {}))))
            layers.append(PolicyLayer("project", self._stored_table(project)))
        return layers

    def _stored_table(self, project: str = "") -> dict[str, Any]:
        table = self.stored(project).body or {}
        return {key: value for key, value in table.items() if key != "ladder"} if self._keep_ladder else table

    def stored(self, project: str = "") -> StoredSetting:
        """Return the settings stored by the service.

        Args:
            project: Name of the project. Default: the default policy.
        """
        return setting(self._journal, project_key(project) if project else POLICY_SETTING)

    def all_stored(self) -> list[StoredSetting]:
        """Return the stored settings of the default policy and of all projects, in one query."""
        return [one for one in settings(self._journal, POLICY_SETTING) if is_policy_key(one.name)]

    def projects(self) -> list[StoredSetting]:
        """Return the stored settings of all projects."""
        return settings(self._journal, POLICY_SETTING + "/")

    def with_stored(self, table: dict[str, Any], project: str = "") -> Policy:
        """Return the policy that would result from storing this table.

        Args:
            table: Settings to store.
            project: Name of the project. Default: the default policy.
        """
        layers = self.layers(project)
        layers[-1] = layers[-1]._replace(table=table)
        return self._merge(layers)

    def origins(self, project: str = "") -> dict[str, tuple[Any, str]]:
        """Return every effective value and its origin, by key.

        Args:
            project: Name of the project. Default: the default policy.
        """
        layers = [layer._replace(table=_flatten(layer.table)) for layer in self.layers(project)]
        stored = [layer for layer in layers if layer.origin in _STORED]
        wanted = parse_policy(merge_tables(*(layer.table for layer in self.layers(project))))
        flat, unbounded = _flatten(policy_table(self.effective(project))), _flatten(policy_table(wanted))
        return {
            key: (value, _origin(key, layers if value == unbounded.get(key) else stored)) for key, value in flat.items()
        }


_LADDER_KEYS: Final = ("ladder", "retries", "entry", "tries")


def _origin(key: str, layers: list[PolicyLayer]) -> str:
    short: str = key.removeprefix("budget.")
    for origin, flat in reversed(layers):
        if key in flat or short in flat or (key == "ladder" and any(one in flat for one in _LADDER_KEYS)):
            return str(origin)
    return "preset"


def _flatten(table: dict[str, Any]) -> dict[str, Any]:
    """Flatten the nested tables to dotted keys such as `backoff.base`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("backoff", "budget") and hasattr(value, "items"):
            flat.update({f"{key}.{inner}": item for inner, item in value.items()})
        else:
            flat[key] = value
    return flat
