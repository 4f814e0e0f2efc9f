"""Hooks of an attempt. They run outside its time limit, and also after it has timed out or was stopped."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from rung.engine.loop.moves import CallPort, call_port

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rung.engine.loop.moves import Move, Reply, Steps
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.recovery import AttemptHooks

MAX_STOP_SECONDS: Final = 10.0  # for the hooks after an attempt that was stopped


def use_hooks(run: RecoveryRun, attempt: Callable[..., Any]) -> None:
    """Let the run call the hooks that the attempt function brings, if it brings any."""
    if hasattr(attempt, "before_attempt"):  # isinstance with a protocol costs more than the rest of a start
        run.attempt_hooks = cast("AttemptHooks", attempt)


def before_attempt(run: RecoveryRun, hooks: AttemptHooks) -> Generator[Move, Reply, Exception | None]:
    """Run the hooks before an attempt. Return the error of a hook that blocks it. The attempt's time starts after them."""
    recorder = run.attempt_recorder
    if recorder is not None and recorder.will_replay():
        return None  # its hooks ran when it was made
    _, error = yield CallPort(hooks.before_attempt, (run.incident.request,))
    if error is None:
        run.is_hooked = True
        run.began = run.clock.now()
    return error


def after_attempt(run: RecoveryRun, hooks: AttemptHooks, error: Exception | None) -> Steps:
    """Run the hooks after an attempt, however it ended."""
    if run.is_hooked:
        run.is_hooked = False
        yield from call_port(run, "attempt hooks", hooks.after_attempt, run.incident.request, error)


def after_stop(run: RecoveryRun, error: BaseException) -> None:
    """Run the hooks after an attempt that was stopped from outside. A second Ctrl-C ends them."""
    if run.attempt_hooks is None or not run.is_hooked:
        return
    run.is_hooked = False
    with suppress(KeyboardInterrupt):
        run.attempt_hooks.after_attempt(run.incident.request, error)


async def aafter_stop(run: RecoveryRun, error: BaseException) -> None:
    """Await the hooks after a stopped attempt, bounded. A second cancellation ends the wait."""
    import asyncio

    if run.attempt_hooks is None or not run.is_hooked:
        return
    run.is_hooked = False
    done = run.attempt_hooks.after_attempt(run.incident.request, error)
    if done is not None:
        await asyncio.wait({asyncio.ensure_future(done)}, timeout=MAX_STOP_SECONDS)
