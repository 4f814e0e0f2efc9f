"""User hooks around attempts and rungs: a command with JSON on stdin, or a function.

A pre hook is a guard: it is asked before every attempt, and its veto ends the recovery. A hook that fails, times out or
returns invalid output is logged and ignored; with `fail_closed` it counts as a veto. During recovery `attempt.post` does not
run, only the hooks of rungs, so that observers cannot make a failure worse.
"""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung import schemas
from rung.adapters.system.process import run_command
from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.errors import AttemptError, ConfigError
from rung.core.domain.settings_schema import FLAG, POSITIVE_SECONDS, Type, one_of, setting, settings
from rung.engine.loop.run import CURRENT
from rung.engine.timeouts.sync_timeout import call_with_timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from rung.core.domain.request import Request

HOOK_POINTS: Final = ("attempt.pre", "attempt.post", "rung.pre", "rung.post")
_BLOCK_EXIT_CODE: Final = 2  # exit code by which a command blocks the attempt
_MAX_PROMPT_CHARACTERS: Final = 4_000
_MAX_LOG_BYTES: Final = 256 * 1024


def _is_runnable(value: object) -> bool:
    return callable(value) or (isinstance(value, str) and bool(value.strip()))


@settings
class CommandHook:
    """One hook around attempts or rungs; a row of `[[hooks]]`.

    A pre hook blocks the attempt by exit code 2 with its reason on stderr, or by returning `{"block": reason}`. That ends
    the recovery: no other rung tries again.
    """

    when: str = setting(one_of(HOOK_POINTS), "When the hook runs.")
    run: str | Callable[[dict[str, Any]], Any] = setting(
        Type("a command, or a function", _is_runnable), "Command (no shell), or in Python a function."
    )
    seconds: float = setting(
        POSITIVE_SECONDS,
        "Time limit. A child that leaves the process group of a command (`setsid`) is not ended with it.",
        default=5.0,
    )
    fail_closed: bool = setting(FLAG, "Whether a hook that fails blocks the attempt.", default=False)


class HookBlocked(Exception):  # named for the event
    """Raised if a hook blocks an attempt."""


def hooked(attempt: Callable[[Request], Any], hooks: Sequence[CommandHook], *, log: str | Path | None = None) -> Any:
    """Wrap an attempt in hooks, for `recover` and `recover_sync`. Hook errors are logged to `log` as JSON lines.

    The hooks run outside the attempt's time limit; those after it run however it ended, also on a timeout or a stop.
    """
    return HookedAttempt(attempt, tuple(hooks), None if log is None else Path(log))


class HookedAttempt:
    """Attempt function with hooks. The recovery runs them; see `AttemptHooks` in the engine's ports."""

    def __init__(self, attempt: Callable[[Request], Any], hooks: tuple[CommandHook, ...], log: Path | None) -> None:
        self.attempt = attempt
        self._hooks = hooks
        self._log = log

    def __call__(self, request: Request) -> Any:
        """Make the attempt, without its hooks."""
        return self.attempt(request)

    def before_attempt(self, request: Request) -> Awaitable[None] | None:
        """Run the hooks before an attempt; in an async recovery, in a thread."""
        return self._run_beside("pre", request, None)

    def after_attempt(self, request: Request, error: BaseException | None) -> Awaitable[None] | None:
        """Run the hooks after an attempt; in an async recovery, in a thread."""
        return self._run_beside("post", request, error)

    def _run_beside(self, side: str, request: Request, error: BaseException | None) -> Awaitable[None] | None:
        run = CURRENT.get()
        if run is None or not run.is_async:
            self._run_hooks(self._path(), side, request, error)
            return None
        import asyncio

        return asyncio.to_thread(self._run_hooks, self._path(), side, request, error)

    def _path(self) -> tuple[str, int, str]:
        """Return the incident id, the attempt number, and the active rung (empty before the first failure)."""
        run = CURRENT.get()
        if run is None:
            return "", 1, ""
        incident = run.incident
        rung = run.policy.ladder.rungs[incident.decision.rung].name if incident.decision is not None else ""
        return incident.id, incident.attempts + 1, rung

    def _run_hooks(self, path: tuple[str, int, str], side: str, request: Request, error: BaseException | None) -> None:
        """Run the hooks of this point. A repeated attempt has the hooks of its rung, and `attempt.pre` as its guard."""
        incident, number, rung = path
        points = [f"attempt.{side}"] if not rung or side == "pre" else []
        points += [f"rung.{side}"] if rung else []
        given = {
            "v": 1,
            "incident": incident,
            "attempt": number,
            "rung": rung,
            "model": request.model,
            "agent": request.agent,
            "prompt": redacted(clip(request.prompt, _MAX_PROMPT_CHARACTERS)),
            "ok": None if side == "pre" else error is None,
            "error": ""
            if error is None
            else redacted(clip(f"{type(error).__name__}: {error}", _MAX_PROMPT_CHARACTERS)),
        }
        for point in points:
            for hook in self._hooks:
                if hook.when == point:
                    _check_input(given | {"when": point})
                    self._run(hook, given | {"when": point}, may_block=side == "pre")

    def _run(self, hook: CommandHook, given: dict[str, Any], *, may_block: bool) -> None:
        try:
            _call_hook(hook, given)
        except HookBlocked as no:
            if may_block:
                raise AttemptError(f"a hook said no: {no}", finding="permission_denied", final=True) from None
        except Exception as error:  # an error of a hook must not stop the work
            is_fatal = hook.fail_closed and may_block
            self._log_error(hook, error, "so the attempt is not made" if is_fatal else "and was ignored")
            if is_fatal:
                text = f"a hook that must run broke: {error}"
                raise AttemptError(text, finding="hook_crash", final=True) from error

    def _log_error(self, hook: CommandHook, error: Exception, effect: str) -> None:
        run = CURRENT.get()
        if run is not None and run.incident.status is None:
            run.record_crash(f"hook {hook.when}", error, effect)
        if self._log is None:
            return
        name = hook.run if isinstance(hook.run, str) else getattr(hook.run, "__name__", "function")
        text = redacted(f"{type(error).__name__}: {error}")[:500]
        line = {"at": round(time.time(), 3), "when": hook.when, "hook": redacted(name), "error": text}
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            is_full = self._log.exists() and self._log.stat().st_size > _MAX_LOG_BYTES
            with self._log.open("w" if is_full else "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError:
            return  # a log error must not stop the work


def _check_input(given: dict[str, Any]) -> None:
    """Check the hook input against its schema, so that a bug in Rung does not reach the hook."""
    schema = _schema()
    for name in schema["required"]:
        kinds, value = schema["properties"][name], given.get(name)
        if (
            name not in given
            or ("enum" in kinds and value not in kinds["enum"])
            or not _has_type(value, kinds.get("type"))
        ):
            raise ConfigError(f"hook input: {name}", value, f"valid for `rung schema hook`: {kinds}")


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schemas.text("hook"))
    return schema


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def _has_type(value: object, kinds: str | list[str] | None) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds or []
    return not names or any(type(value) in _TYPES[name] for name in names)


def _call_hook(hook: CommandHook, given: dict[str, Any]) -> None:
    if callable(hook.run):
        answer = call_with_timeout(hook.run, (dict(given),), hook.seconds)
        if isinstance(answer, dict) and answer.get("block"):
            raise HookBlocked(str(answer["block"]))
        if answer is not None and not isinstance(answer, dict):
            raise ConfigError("hook's answer", type(answer).__name__, "nothing, or an object")
        return
    done = run_command(hook.run, json.dumps(given), seconds=hook.seconds)
    if done.code == _BLOCK_EXIT_CODE:
        raise HookBlocked(clip(done.errors.strip(), 500) or "no reason was given")
    if done.code:
        raise RuntimeError(f"exit code {done.code}: {clip(done.errors.strip(), 300)}")
