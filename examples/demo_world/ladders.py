"""Run five failing agents on the five ladders, with progress: `python -m examples.demo_world.ladders`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from rung.cli.output import pluralize

if TYPE_CHECKING:
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One example: an agent's scripted failures, and the ladder that recovers it."""

    ladder: str
    story: str
    request: Request
    script: tuple[Any, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    ports: dict[str, Any] = field(default_factory=dict)


@click.command()
@click.option("--fast", is_flag=True, help="Do not pause for reading.")
def command(*, fast: bool) -> None:
    """Run failing agents on all five ladders. No provider is called, no file is written."""
    from rich.console import Console
    from rich.rule import Rule

    from rung.cli.event_printer import listener
    from rung.core.policy.parser import policy
    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.recover import recover_sync
    from rung.testing import Script

    console = Console(highlight=False)
    console.print("[bold]Rung[/] recovers agents from failures. Five agents fail; here is what happens.\n")
    for number, scene in enumerate(scenes(), 1):
        backoff = {"base": 0.05, "cap": 0.2} if fast else {"base": 0.6, "cap": 2.0}
        chosen = policy(scene.ladder, backoff=backoff, report="", **scene.settings)
        console.print(Rule(f"{number}. {scene.ladder}: {chosen.ladder.about}", align="left", style="dim"))
        console.print(f"[italic]{scene.story}[/]\n")
        show = _line(console, pause=0.0 if fast else 0.45)
        outcome = recover_sync(
            Script(*scene.script),
            scene.request,
            policy=chosen,
            listeners=[listener(chosen, as_json=False, show=show)],
            breakers=BreakerRegistry(),
            **scene.ports,
        )
        colour = "green" if outcome.ok else "magenta"
        console.print(f"\n[bold {colour}]{outcome.status}[/] after {pluralize(outcome.attempts, 'attempt')}.", end=" ")
        console.print(_ending(outcome, chosen), markup=False)
        console.print()
    console.print("Use it: [bold]rung run -- your-agent[/], or [bold]@rung.guarded[/] in Python. See README.md.")


def _ending(outcome: Any, policy: Policy) -> str:
    if outcome.ok:
        return f"Result: {outcome.value}"
    names = [policy.ladder.rungs[level - policy.ladder.base_level].name for level in outcome.path]
    return f"Rungs used: {' → '.join(names)}. Recommendation: {outcome.recommendation}"


def _line(console: Any, pause: float) -> Any:
    from rung.cli.event_printer import MARKS

    def show(mark: str, subject: str, rest: str) -> None:
        from rich.text import Text

        sign, style = MARKS[mark]
        console.print(Text.assemble((f"  {sign} ", style), (f"{subject:<19} ", "bold"), rest), soft_wrap=True)
        time.sleep(pause)

    return show


def scenes() -> list[Scene]:
    """Return the five examples."""
    from rung.core.domain.errors import AttemptError
    from rung.core.domain.request import Request
    from rung.testing import HttpError

    return [
        Scene(
            ladder="task",
            story="An agent gets an overloaded API, then a wrong path, then a plan that fails.",
            request=Request(prompt="Fix the failing test", model="small"),
            script=(
                HttpError(529, "Overloaded"),
                FileNotFoundError(2, "No such file or directory: 'test/app.py'"),
                AttemptError("the same edit three times", finding="loop_detected", repeats=3),
                "2 files changed, 41 tests pass",
            ),
            settings={"models": ["small", "large"]},
        ),
        Scene(
            ladder="call",
            story="A model call is rate-limited, then truncated twice. The caller gets one complete answer.",
            request=Request(prompt="Write the report", model="small", max_tokens=8_000),
            script=(
                HttpError(429, "slow down", {"retry-after": "0.4"}),
                AttemptError("stopped at max_tokens", finding="output_limit", output="The first half"),
                AttemptError("stopped at max_tokens", finding="output_limit", output="The first half, "),
                "and the second half.",
            ),
        ),
        Scene(
            ladder="pipeline",
            story="A stage omits a section, then three new agents run out of turns. No operator is available.",
            request=Request(prompt="Review the design", model="small", max_turns=10),
            script=(
                AttemptError("a section is missing", finding="partial_output", missing=("risks",), output="…"),
                AttemptError("25 turns used", finding="turns_exhausted"),
            ),
        ),
        Scene(
            ladder="model",
            story="A small model answers badly. The next model takes over, and its price is announced.",
            request=Request(prompt="Prove it", model="small"),
            script=(AttemptError("step 3 does not follow", finding="low_quality"),) * 2 + ("QED, checked",),
            settings={"models": [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.12}]},
        ),
        Scene(
            ladder="crew",
            story="A worker's fixes fail. The conductor has the cause investigated, which helps.",
            request=Request(prompt="Port the parser", agent="worker-3"),
            script=(AttemptError("TypeError in parse()", finding="tool_error"),) * 6 + ("cause found: stale cache",),
        ),
    ]


if __name__ == "__main__":
    command()
