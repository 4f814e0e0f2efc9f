"""`rung demo`: run one failing agent on each built-in ladder, in virtual time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.extras import install_command, missing_modules
from rung.cli.help_text import epilogue
from rung.cli.output import pluralize
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.cli.demo.scenes import Scene
    from rung.core.domain.request import Request

READING_SECONDS: Final = 0.45  # after each line
JITTER: Final = 0.8  # the same waits in every run
NEXT_STEPS: Final = (
    ("rung run -- your-agent", "recover any command"),
    ("rung gateway run -- your-agent", "recover the model calls of any agent"),
    ("rung serve", "watch all of it in a dashboard"),
)


@click.command(epilog=epilogue(examples=("rung demo", "rung demo call --fast")))
@click.argument("ladder", required=False, type=click.Choice(list(LADDERS)))
@click.option("--fast", is_flag=True, help="Do not pause for reading.")
def command(*, ladder: str | None, fast: bool) -> None:
    """Watch five agents fail, one on each ladder; four recover, one ends with a report. Or one, on LADDER.

    The agents are scripted and the recovery is real. Waits pass in virtual time. No provider is called and no file is
    written.
    """
    from rung.cli.demo.scenes import scenes
    from rung.cli.terminal import console

    screen = console()
    pause = 0.0 if fast else READING_SECONDS
    for scene in scenes():
        if ladder in (None, scene.ladder):
            _play(scene, screen, pause)
    width = max(len(text) for text, _ in NEXT_STEPS)
    _write(screen, ("What next?", "bold"))
    for text, purpose in NEXT_STEPS:
        _write(screen, "  ", (text.ljust(width), "bold cyan"), f"  {purpose}")
    missing = [extra for extra in ("gateway", "service") if missing_modules(extra)]
    if missing:
        _write(screen, (f"`rung gateway` and `rung serve` need: {install_command(*missing)}", "dim"))


def _play(scene: Scene, screen: Any, pause: float) -> None:
    """Recover the scene's agent and print each step."""
    from rung.cli.event_printer import listener
    from rung.core.policy.parser import policy
    from rung.engine.recover import recover_sync
    from rung.testing import FakeClock, Script

    chosen = policy(scene.ladder, report="", **scene.settings)
    clock, script = FakeClock(), Script(*scene.script)

    def attempt(request: Request) -> Any:
        clock.advance(scene.attempt_seconds)
        return script(request)

    _write(screen, (f"{scene.ladder}", "bold"), (f"  {scene.story}", "dim"))
    outcome = recover_sync(
        attempt,
        scene.request,
        journal=None,  # not in the journal that the environment names
        policy=chosen,
        listeners=[listener(chosen, as_json=False, show=_line(screen, pause))],
        breakers=None,
        retry_budget=None,
        investigate=(lambda _request, _incident: scene.cause) if scene.cause else None,
        clock=clock,
        jitter=lambda: JITTER,
    )
    ending = f"Result: {outcome.value}" if outcome.ok else f"Recommendation: {outcome.recommendation}"
    style = "bold green" if outcome.ok else "bold magenta"
    summary = f" after {pluralize(outcome.attempts, 'attempt')}. {ending}"
    _write(screen, (f"  {outcome.status}", style), summary)
    screen.print()
    time.sleep(3 * pause)


def _line(screen: Any, pause: float) -> Callable[[str, str, str], None]:
    from rung.core.text.progress_line import MARKS

    def show(mark: str, subject: str, rest: str) -> None:
        sign, style = MARKS[mark]
        _write(screen, (f"  {sign} ", style), (f"{subject:<12} ", "bold"), rest)
        time.sleep(pause)

    return show


def _write(screen: Any, *parts: str | tuple[str, str]) -> None:
    from rich.text import Text

    screen.print(Text.assemble(*parts), soft_wrap=True)
