"""Findings of the checks of `rung doctor`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    INFO = "info"  # optional, and not there
    WARNING = "warning"  # it works, but not as it probably should
    BROKEN = "broken"  # a command that needs it fails


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One line of the diagnosis. `fix` is the exact command that mends it, `facts` are the values for machines."""

    name: str
    state: State
    detail: str
    fix: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
