"""The scenarios and their judge: what a caller gets, and what the provider sees meanwhile.

A verdict is `pass` (rescued, every check holds), `partial` (rescued, an advisory check fails), `safe` (a clean error
within the time) or `fail` (a hang, an incomplete answer that looks complete, or a required check fails).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import openai

from tests.gateway.failover.provider import ANSWER, NO_PREFILL, OK, Provider, Timing
from tests.security.upstream.raw_upstream import Front

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PASS, PARTIAL, SAFE, FAIL = "pass", "partial", "safe", "fail"
PROMPT: Final = "Say the sixty words."
FULL: Final = Timing(retry_after=2.0, silence=120.0, first_token=20.0, stall=30.0, outage=60.0, gap=0.015)
QUICK: Final = Timing(retry_after=1.0, silence=60.0, first_token=60.0, stall=60.0, outage=1.5, gap=0.0)
# Settings that let the faults of QUICK end soon. The number of tries and everything else stay at their defaults.
_QUICK_TIMEOUTS: Final = {"connect": 30.0, "headers": 2.0, "total": 30.0, "first_token": 2.0, "idle": 2.0}
_HANG_SECONDS: Final = 300.0  # of QUICK, which judges no times: a busy machine fails none


class Reply(NamedTuple):
    """What one call gave its caller."""

    text: str
    error: str
    seconds: float
    model: str
    usage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that is judged."""

    replies: tuple[Reply, ...]
    sent_at: tuple[float, ...]
    primary: tuple[float, ...]  # times of the requests for the first model
    back_at: float | None  # when the first model answered first
    fallback: int
    alive: bool  # a healthy call works afterwards
    outage: float

    @property
    def last(self) -> Reply:
        return self.replies[-1]

    def within(self, seconds: float) -> int:
        """Return the requests for the first model in the first seconds."""
        return sum(at - self.primary[0] < seconds for at in self.primary)


Check = tuple[str, "Callable[[Found], bool]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A fault, its time limit, and what must hold. Timed checks are judged with the times of FULL only."""

    title: str
    seconds: float = 40.0
    required: tuple[Check, ...] = ()
    advisory: tuple[Check, ...] = ()
    timed: tuple[Check, ...] = ()
    timed_advisory: tuple[Check, ...] = ()
    fallback: str = OK
    calls: int = 1
    interval: float = 0.0
    ideal: str = "answer"
    quick: dict[str, Any] = field(default_factory=dict)  # settings of the gateway beside QUICK


def _at_most(number: int) -> Check:
    return f"at most {number} requests to the primary", lambda found: len(found.primary) <= number


def _seconds(limit: float) -> Check:
    return f"within {limit:g} s", lambda found: found.last.seconds <= limit


_ALIVE: Final[Check] = ("alive afterwards", lambda found: found.alive)
_USAGE: Final[Check] = ("usage is reported", lambda found: found.last.usage)
_ONCE: Final[Check] = ("one request to the primary", lambda found: len(found.primary) == 1)
_REPEATED: Final[Check] = ("the primary is asked again", lambda found: len(found.primary) > 1)
SCENARIOS: Final[dict[str, Scenario]] = {
    "S01": Scenario(
        title="429 with Retry-After",
        seconds=20,
        advisory=(_REPEATED,),
        timed=(("no hammering", lambda found: found.within(1.5) <= 2),),
        timed_advisory=(("Retry-After is honoured", lambda found: found.primary[1] - found.primary[0] >= 1.8),),
    ),
    "S02": Scenario(
        title="429 without Retry-After, persistent",
        required=(_at_most(6),),
        timed=(("no hammering", lambda found: found.within(3) <= 4),),
    ),
    "S03": Scenario(title="500 once", seconds=20, advisory=(_REPEATED,)),
    "S04": Scenario(title="503 persistent", required=(_at_most(6),)),
    "S05": Scenario(title="reset before headers", seconds=20),
    "S06": Scenario(title="no response", seconds=130, timed=(_seconds(100),), advisory=(_at_most(1),)),
    "S07": Scenario(title="slow first token", seconds=60, timed_advisory=(_seconds(15),)),
    "S08": Scenario(title="stream cut", advisory=(_at_most(2),)),
    "S09": Scenario(title="stream stalls", seconds=70, required=(_ALIVE,), timed=(_seconds(45),)),
    "S10": Scenario(title="malformed event", seconds=30, required=(_ALIVE,)),
    "S11": Scenario(title="no [DONE]", seconds=30, timed=(_seconds(8),), advisory=(_USAGE,)),
    "S12": Scenario(title="context length exceeded", seconds=20, required=(_ONCE,)),
    "S13": Scenario(title="content filter", seconds=20, required=(_ONCE,), ideal="error"),
    "S14": Scenario(
        title="fallback refuses a prefill",
        fallback=NO_PREFILL,
        required=(("the error is not the prefill's", lambda found: "prefill" not in found.last.error),),
    ),
    "S15": Scenario(
        title="flapping primary",
        seconds=30,
        calls=20,
        interval=4.0,
        required=(
            ("every call is served", lambda found: all(reply.text == ANSWER for reply in found.replies)),
            ("the primary is used again", lambda found: found.back_at is not None),
        ),
        timed=(("back within 30 s", lambda found: (found.back_at or 1e9) - found.outage <= 30),),
        quick={"probe_seconds": 0.5},
    ),
    "S16": Scenario(
        title="accounting",
        required=(
            _at_most(6),
            ("the fallback's model is reported", lambda found: not found.fallback or found.last.model == OK),
        ),
        advisory=(_USAGE,),
    ),
}


@contextmanager
def gateway(name: str, provider: Provider, *, is_quick: bool) -> Iterator[openai.OpenAI]:
    """Run a gateway with default settings and one line that names the fallback; yields a client without retries."""
    scenario = SCENARIOS[name]
    quick = {"timeouts": _QUICK_TIMEOUTS, **scenario.quick} if is_quick else {}
    front = DefaultFront(openai=provider.url, **quick)
    front.policy_table = {
        "models": [name, scenario.fallback],
        **({"backoff": {"base": 0.02, "cap": 0.1}} if is_quick else {}),
    }
    with front:
        yield front.gpt()


class DefaultFront(Front):
    """A gateway whose settings are the defaults, but for those given."""

    def settings(self, **more: Any) -> Any:
        from rung.core.policy.parser import parse_policy_file
        from rung.gateway.settings import settings_from

        table = {"port": 0, **self._settings, **more}
        return settings_from(table, parse_policy_file({"policy": self.policy_table}))


def measure(name: str, *, is_quick: bool) -> Found:
    """Play a scenario."""
    scenario, timing = SCENARIOS[name], QUICK if is_quick else FULL
    limit = _HANG_SECONDS if is_quick else scenario.seconds
    with Provider(timing) as provider, gateway(name, provider, is_quick=is_quick) as client:
        began, replies, sent_at = time.monotonic(), [], []
        for number in range(scenario.calls):
            interval = 0.25 if is_quick else scenario.interval
            time.sleep(max(0.0, began + number * interval - time.monotonic()))
            sent_at.append(time.monotonic() - began)
            replies.append(_ask(client, name, limit))
        fallback, primary = len(provider.of(scenario.fallback)), provider.of(name)
        alive = _ask(client, OK, 10.0 if not is_quick else _HANG_SECONDS)
        return Found(
            replies=tuple(replies),
            sent_at=tuple(sent_at),
            primary=tuple(asked.at for asked in primary),
            back_at=next((asked.at for asked in primary if asked.status == 200), None),
            fallback=fallback,
            alive=alive.text == ANSWER,
            outage=timing.outage,
        )


def _ask(client: openai.OpenAI, model: str, seconds: float) -> Reply:
    """Stream one answer, as a caller who leaves at the time limit."""
    began = time.monotonic()
    text, error, served_by, usage = "", "", "", False
    try:
        stream = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": PROMPT}],
            stream=True,
            stream_options={"include_usage": True},
            timeout=seconds,
        )
        for chunk in stream:
            if time.monotonic() - began > seconds:
                raise TimeoutError("hang")
            served_by, usage = chunk.model or served_by, usage or chunk.usage is not None
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
    except (openai.OpenAIError, TimeoutError, ValueError) as found:  # ValueError: an event that is no JSON
        error = f"{type(found).__name__}: {found}"
    return Reply(text, error, time.monotonic() - began, served_by, usage)


def judge(name: str, found: Found, *, is_quick: bool) -> tuple[str, list[str]]:
    """Return the verdict and the checks that fail."""
    scenario, last = SCENARIOS[name], found.last
    limit = _HANG_SECONDS if is_quick else scenario.seconds
    if any(reply.seconds > limit for reply in found.replies):
        return FAIL, ["hang"]
    if any(not reply.error and reply.text != ANSWER for reply in found.replies):
        return FAIL, ["an incomplete answer looks complete"]
    required = (*scenario.required, *(() if is_quick else scenario.timed))
    advisory = (*scenario.advisory, *(() if is_quick else scenario.timed_advisory))
    if failed := [what for what, holds in required if not holds(found)]:
        return FAIL, failed
    if (scenario.ideal == "error") != bool(last.error):
        return (PARTIAL, ["routed around the refusal"]) if scenario.ideal == "error" else (SAFE, [last.error])
    failed = [what for what, holds in advisory if not holds(found)]
    return (PARTIAL, failed) if failed else (PASS, [])
