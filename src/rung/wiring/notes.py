"""The notes of a project: the folder that an option or the key `notes` of a settings file names. Without either, none."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.project_notes import ProjectNotes
from rung.core.domain.errors import ConfigError, FileError
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from rung.wiring.settings_file import SettingsFile

NOTES_KEY: Final = "notes"


def notes_folder(file: SettingsFile | None) -> str:
    """Return the folder that a settings file names; empty if it names none, or may not because it is not trusted."""
    value = "" if file is None else file.table.get(NOTES_KEY, "")
    if not isinstance(value, str):
        path = "" if file is None else file.path
        raise FileError(path, f"{NOTES_KEY}: {value!r} is invalid; must be a folder", NOTES_KEY, value, "a folder")
    return value


def project_notes(
    option: str | None = None, file: SettingsFile | None = None, *, off: bool = False
) -> ProjectNotes | None:
    """Return the notes that the option names, else those of the file (default: the working directory's rung.toml)."""
    if off:
        return None
    folder = option or notes_folder(find(quiet=True) if file is None else file)
    if not folder:
        return None
    problem = _why_no_folder(folder)
    if problem:
        raise ConfigError("--notes" if option else NOTES_KEY, folder, f"a folder, or a name that is free ({problem})")
    return ProjectNotes(Path(folder))


def _why_no_folder(name: str) -> str:
    """Return why notes cannot be kept under this name; empty if it is a folder, or can become one."""
    try:
        return "" if stat.S_ISDIR(os.stat(name).st_mode) else "not a directory"  # noqa: PTH116  # one call says all
    except FileNotFoundError:
        return "a link that leads nowhere" if os.path.lexists(name) else ""
    except OSError as error:
        return error.strerror or str(error)
