"""Alerts of a process that reads its settings file again when it changes: the rules and channels follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.alerts.rules import AlertSettings
from rung.core.domain.errors import ConfigError
from rung.wiring.alerts import alerts_beside
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rung.store.journal.journal import Journal
    from rung.wiring.settings_file import SettingsFile


class FollowedAlerts:
    """The alerts of one file, which run inside a `with` block. A file without rules has none until it gets some."""

    def __init__(
        self, journal: Journal | None, read_file: Callable[[], SettingsFile | None], warn: Callable[[str], object]
    ) -> None:
        self._journal, self._warn = journal, warn
        self._read_file = read_file  # None: the `rung.toml` here
        self._alerts = alerts_beside(journal, file=read_file(), warn=warn)

    def __enter__(self) -> FollowedAlerts:
        if self._alerts is not None:
            self._alerts.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._alerts is not None:
            self._alerts.stop()

    @property
    def rule_names(self) -> Collection[str]:
        """Names of the rules that are evaluated now."""
        return () if self._alerts is None else self._alerts.settings.rules.keys()

    def reload(self) -> None:
        """Apply the alerts of the changed file. Raise ConfigError, and keep the former, if they are wrong or not trusted.

        The former ones stay in their thread, so that nothing waits for it and what fires goes on to be observed.
        """
        file = self._read_file() or find(quiet=True)
        if file is not None and file.withholds_alerts and file.is_undecided:
            raise ConfigError("alerts", str(file.place), f"trusted: review its content and run `{file.trust_command}`")
        changed = alerts_beside(self._journal, file=file, warn=self._warn)
        if self._alerts is not None:
            self._alerts.use(AlertSettings() if changed is None else changed.settings)
        elif changed is not None:
            self._alerts = changed.start()
