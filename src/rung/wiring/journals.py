"""Location of the journal: an option, the environment, rung.toml, or the user's data directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.errors import FileError, StoreError
from rung.engine.default_journal import JOURNAL_VARIABLE
from rung.store.user_data import user_data_dir
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy
    from rung.store.journal.journal import Journal
    from rung.wiring.policies import PolicyStore
    from rung.wiring.settings_file import SettingsFile

JOURNAL_KEY: Final = "journal"


class JournalLocation(NamedTuple):
    """Path or URL of a journal, and the setting that chose it."""

    at: str
    chosen_by: str


def journal_path(option: str | None, file: SettingsFile | None = None) -> str:
    """Return the path or URL of the journal to use; `file` is a settings file that the user named."""
    return locate(option, file).at


def absolute_path(option: str | None) -> str:
    """Return the path or URL of the journal to use, for a process with another working directory."""
    at = journal_path(option)
    return at if is_url(at) else str(Path(at).expanduser().absolute())


def locate(option: str | None, file: SettingsFile | None = None) -> JournalLocation:
    """Return the journal's location and the setting that chose it; empty settings count as unset.

    `file` is a settings file that the user named, instead of the rung.toml here.
    """
    if option:
        return JournalLocation(option, "--journal")
    if os.environ.get(JOURNAL_VARIABLE):
        return JournalLocation(os.environ[JOURNAL_VARIABLE], JOURNAL_VARIABLE)
    file = find() if file is None else file
    if file is not None and (named := _in_file(file)):
        return JournalLocation(named, str(file.path))
    return JournalLocation(str(default_path()), "the default")


def default_path(platform: str = sys.platform) -> Path:
    """Return the default journal path in the platform's user data directory."""
    return user_data_dir(platform) / "journal.db"


def journal(where: str | Path | None = None, *, project: str = "") -> Journal:
    """Open a journal: the record of all recoveries, which reports, the dashboard and durable runs read.

    A journal knows the policy of its project, for recoveries that are given none. Close it, or use it in a `with` block.

    Args:
        where: Path of a SQLite file, which is created, or a `postgresql://` URL. Default: the journal of this machine, which
            the environment variable `RUNG_JOURNAL` or rung.toml may name.
        project: Name of the project, by which reports group. Default: none.

    Returns:
        The journal, for the argument `journal` of `recover`, `guarded` and `gather`.

    Raises:
        StoreError: It cannot be opened.

    Example:
        >>> import pathlib, tempfile, rung
        >>> with rung.journal(pathlib.Path(tempfile.mkdtemp()) / "journal.db", project="shop") as journal:
        ...     outcome = rung.recover_sync(lambda request: "done", "go", journal=journal)
        >>> outcome.ok
        True
    """
    from rung.store import open_journal

    opened = open_journal(locate(None if where is None else str(where)).at, project=project)
    opened.policy_source = _policy_source(opened)
    return opened


def _policy_source(journal: Journal) -> Callable[[str], Policy]:
    store: PolicyStore | None = None

    def pick(default_ladder: str) -> Policy:
        nonlocal store
        if store is None:
            from rung.wiring.policies import PolicyStore

            store = PolicyStore(journal)
        return store.pick(journal.project, default_ladder=default_ladder)

    return pick


def exists(at: str) -> bool:
    """Return whether the journal may exist: a URL always counts, a file must be there."""
    return is_url(at) or os.path.exists(Path(at).expanduser())  # noqa: PTH110  # Path.exists raises for a long name


def is_url(at: str) -> bool:
    """Return whether the location is a PostgreSQL URL."""
    return at.startswith(("postgresql://", "postgres://"))


def shown_location(at: str) -> str:
    """Return the location for display: of a URL, without password and options."""
    if "://" not in at:
        return at
    scheme, _, rest = at.partition("://")
    address, _, name = rest.partition("?")[0].partition("/")
    login, _, host = address.rpartition("@")
    if "@" in login + name:  # an unescaped password: no part of the URL can be told from it
        return f"{scheme}://…"
    user = login.partition(":")[0]
    return f"{scheme}://{user}{'@' * bool(user)}{host}/{name}"


def open_existing(option: str | None) -> Journal:
    """Open the journal for reading commands; raise StoreError instead of creating one."""
    from rung.store import open_journal

    at, chosen_by = locate(option)
    if not exists(at):
        raise StoreError(f"{shown_location(at)}: there is no journal yet (looked there because of {chosen_by})")
    return open_journal(at)


def _in_file(file: SettingsFile) -> str:
    """Return the key `journal` of a settings file, if it is trusted; the rest is not validated here."""
    value = file.table.get(JOURNAL_KEY, "")
    if not isinstance(value, str):
        raise FileError(
            file.path,
            f"{JOURNAL_KEY}: {value!r} is invalid; must be a path or URL",
            JOURNAL_KEY,
            value,
            "a path or URL",
        )
    return value
