"""Test tools for agents: a fake clock, scripted attempts, and a local provider with fault injection."""

from typing import TYPE_CHECKING, Any

from rung.testing.clock import FakeClock
from rung.testing.process_state import reset_process_state
from rung.testing.script import HttpError, Script

if TYPE_CHECKING:
    from rung.testing.provider import FAULTS as FAULTS
    from rung.testing.provider import Fault as Fault
    from rung.testing.provider import Lab as Lab
    from rung.testing.provider import lab as lab
    from rung.testing.provider import words as words

_LAB = ("FAULTS", "Fault", "Lab", "lab", "words")

__all__ = ["FAULTS", "FakeClock", "Fault", "HttpError", "Lab", "Script", "lab", "reset_process_state", "words"]


def __getattr__(name: str) -> Any:
    if name not in _LAB:
        raise AttributeError(f"module 'rung.testing' has no attribute {name!r}")
    try:
        from rung.testing import provider  # loaded on first use, because it imports asyncio
    except ModuleNotFoundError as error:
        if error.name != "orjson":
            raise
        raise ModuleNotFoundError(f"rung.testing.{name} needs orjson: pip install 'rung[cli]'", name="orjson") from None
    value = getattr(provider, name)
    globals()[name] = value
    return value
