"""Policies of others: tenacity, LangChain's fallbacks, and rules that people write by hand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import tenacity
from langchain_core.runnables import RunnableLambda

from bench.worlds.play import Attempts, Play, Policy, dash
from bench.worlds.world import NONE, Unrecorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.worlds.world import Tape, Trial, World

TENACITY_ATTEMPTS: Final = 3


class Rejected(Exception):  # what a verifier raises about a result
    """The verifier rejected the result of an attempt."""


def peers(world: World) -> Iterator[Policy]:
    """Yield the policies of others; those that the world cannot play have no player."""
    first, last = world.systems[0], world.systems[-1]
    rows: list[tuple[str, Any, bool]] = [
        ("one attempt", partial(_chain, (first,)), False),
        (f"tenacity x {TENACITY_ATTEMPTS}", partial(_tenacity, first), dash(world, repeats=True)),
        ("retry for ever", partial(_for_ever, first), dash(world, repeats=True)),
        ("always the expensive one", partial(_chain, (last,)), dash(world, systems=2, ranked=True)),
        (
            "promotion: first, then the expensive one",
            partial(_chain, (first, last)),
            dash(world, systems=2, ranked=True),
        ),
    ]
    for count in range(2, max(2, len(world.systems)) + 1):
        name = f"LangChain, {count - 1} fallback{'s' * (count > 2)}"
        rows.append((name, partial(_langchain, world.systems[:count]), dash(world, systems=count)))
    for name, player, lacking in rows:
        yield Policy(name=name, owner=name.partition(",")[0], player=None if lacking else player)


def _chain(systems: Sequence[str], tape: Tape) -> Play:
    """Ask one system after the other until one succeeds."""
    attempts = Attempts(tape)
    for system in systems:
        if attempts.make(system).success:
            break
    return attempts.play()


def _for_ever(system: str, tape: Tape) -> Play:
    """Ask the same system until it succeeds or its recorded trials are used up."""
    attempts = Attempts(tape)
    while not attempts.solved and tape.has(system, NONE):
        attempts.make(system)
    return attempts.play()


def _tenacity(system: str, tape: Tape) -> Play:
    """Call the system with tenacity's retries, which repeat whatever was rejected."""
    attempts = Attempts(tape)
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(TENACITY_ATTEMPTS),
        retry=tenacity.retry_if_exception_type(Rejected),
        sleep=attempts.wait,
        reraise=True,
    )
    try:
        retrying(_verified, attempts, system)
    except Rejected:
        return attempts.play()
    except Unrecorded:
        return attempts.play(unknown=1)
    return attempts.play()


def _langchain(systems: Sequence[str], tape: Tape) -> Play:
    """Call the systems as a LangChain runnable with fallbacks."""
    attempts = Attempts(tape)
    first, *others = (RunnableLambda(partial(_ask, attempts, system)) for system in systems)
    try:
        first.with_fallbacks(others).invoke("task")
    except Rejected:
        return attempts.play()
    return attempts.play()


def _ask(attempts: Attempts, system: str, _question: str) -> str:
    _verified(attempts, system)
    return system


def _verified(attempts: Attempts, system: str) -> Trial:
    trial = attempts.make(system)
    if not trial.success:
        raise Rejected(system)
    return trial
