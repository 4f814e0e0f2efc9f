"""What stands around the attempts of `rung run`: hooks of the user's own, and checks of what came out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.user_hooks import CommandHook
from rung.core.domain.errors import ConfigError
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Callable

LOG: Final = "user-hooks.jsonl"


def around(options: dict[str, Any]) -> tuple[dict[str, Any], list[CommandHook]]:
    """The `[stop]` table and the hooks of the file that holds the policy, with what the flags say over them."""
    from rung.wiring.files import load_stop_and_hooks
    from rung.wiring.journals import CONFIG_FILE

    name = options["policy_name"]
    path = CONFIG_FILE if name is None and Path(CONFIG_FILE).is_file() else name
    stop, hooks = load_stop_and_hooks(path) if path is not None and path not in LADDERS else ({}, ())
    if options["judge"]:
        stop = {**stop, "judge": options["judge"]}
    return stop, [*hooks, *(_named(words) for words in options["hooks"])]


def _named(words: str) -> CommandHook:
    when, found, run = words.partition("=")
    if not found:
        raise ConfigError("--hook", words, "WHEN=COMMAND, such as attempt.pre='notify --json'")
    return CommandHook(when=when.strip(), run=run)


def log_path() -> Path:
    """Where hooks that break leave a line: beside this machine's journal."""
    from rung.wiring.journals import default_path

    return default_path().with_name(LOG)


def all_of(*checks: Callable[[str], Any] | None) -> Callable[[str], Any] | None:
    """The first that finds something."""
    asked = [check for check in checks if check is not None]

    def check(value: str) -> Any:
        return next((found for found in (one(value) for one in asked) if found is not None), None)

    return check if asked else None
