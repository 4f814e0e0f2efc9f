"""Cells of the suite: a client, its wire, its mode, its own tries, a fault, with or without the gateway."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.clients.provider.script import FAULTS, STALLS, STREAM_ONLY

PLAIN: Final = "plain"
DIRECT, GATEWAY, LITELLM = "direct", "gateway", "litellm"
ROUTES: Final = (DIRECT, GATEWAY)  # those of `make clients`; `make survival` has LiteLLM's proxy, too
TRIES: Final = ("default", "zero")
DONE, WRONG, FAILED, HUNG, UNMET = "done", "wrong", "failed", "hung", "unmet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of one client."""

    client: str
    wire: str
    mode: str  # stream or whole
    tries: str  # the client's own: default or zero
    fault: str
    route: str

    @property
    def is_stall(self) -> bool:
        return self.fault in STALLS

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a cell ended."""

    verdict: str
    exit_code: int | None  # None: killed at the time limit
    text: str  # whole, half, other, none
    rows: int
    requests: int
    seconds: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def faults_of(mode: str, *, has_call: bool) -> list[str]:
    """Return the faults that can strike in a mode; calls that are not streamed have no parts to cut."""
    found = [PLAIN]
    for name, place in FAULTS.items():
        if (mode == "whole" and name in STREAM_ONLY) or (place == "call" and not has_call):
            continue
        found.append(name)
    return found


def judge(
    said: str, exit_code: int | None, rows: int, *, answer: str, struck: bool, is_exact: bool, is_echoed: bool = False
) -> tuple[str, str]:
    """Return verdict and text of a run. `is_echoed`: the client also shows a command that has the answer in it."""
    words, expected = said.split(), answer.split()
    seen = [word for word in words if word in set(expected)]
    shown = seen[: len(expected)] == expected == seen[-len(expected) :] if is_echoed else seen == expected
    if (words == expected) if is_exact else (shown and answer in " ".join(words)):
        text = "whole"
    elif not seen:
        text = "none"
    else:
        text = "half" if len(set(seen)) < len(expected) else "other"
    if exit_code is None:
        return HUNG, text
    if not struck:
        return UNMET, text
    if exit_code:
        return FAILED, text
    return (DONE if text == "whole" and rows == 1 else WRONG), text
