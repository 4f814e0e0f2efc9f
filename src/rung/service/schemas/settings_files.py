"""Schemas of the settings files of directories."""

from __future__ import annotations

from typing import Literal

from rung.service.schemas.base import ApiModel


class SettingsFileOut(ApiModel):
    """A rung.toml, the decision about its present content, and what of it is used only if it is trusted."""

    path: str
    decision: Literal["trusted", "denied", "undecided"]
    needs_trust: list[str]
