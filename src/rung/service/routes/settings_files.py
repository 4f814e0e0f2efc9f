"""Settings files of directories, and whether the user of this machine trusts them."""

from __future__ import annotations

from fastapi import APIRouter

from rung.service.app_context import Reader
from rung.service.problems import PROBLEM_RESPONSES
from rung.service.schemas.settings_files import SettingsFileOut
from rung.wiring.settings_file import known_files

router = APIRouter(prefix="/api", tags=["policies"], responses=PROBLEM_RESPONSES)


@router.get("/settings-files")
def list_settings_files(_: Reader) -> list[SettingsFileOut]:
    """Every rung.toml that was met or decided about on this machine. Trust is given there, by `rung trust`, not here."""
    return [
        SettingsFileOut(path=file.place, decision=file.decision.value, needs_trust=list(file.withheld))
        for file in known_files()
    ]
