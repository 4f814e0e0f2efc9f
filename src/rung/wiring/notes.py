"""The notes of a project: the folder that an option or the key `notes` of a settings file names. Without either, none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.project_notes import ProjectNotes
from rung.core.domain.errors import FileError
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
    return ProjectNotes(Path(folder)) if folder else None
