"""Policy files: read once, checked as a whole, every error one line that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.classify.classifier import use_rules
from rung.core.domain.errors import ConfigError, FileError
from rung.core.domain.settings_schema import read_rows
from rung.core.policy.parser import book_from
from rung.core.policy.stop_settings import stop_from

if TYPE_CHECKING:
    from rung.adapters.system.user_hooks import CommandHook
    from rung.core.policy.parser import PolicyBook
    from rung.detectors.loop_settings import LoopSettings


def load_policy(path: str | Path) -> PolicyBook:
    """The policies a file holds; all of it is checked now."""
    table = read_table(path)
    try:
        if "loops" in table:
            _watching(table)
        if "stop" in table:
            stop_from(table["stop"])
        _hooks(table)
        return book_from(table)
    except ConfigError as error:
        raise FileError(path, str(error), error.key, error.value, error.allowed) from None


def load_loop_settings(path: str | Path) -> LoopSettings:
    """The `[loops]` table of a file; without one, what is watched for by default."""
    load_policy(path)
    return _watching(read_table(path))


def load_stop_and_hooks(path: str | Path) -> tuple[dict[str, Any], tuple[CommandHook, ...]]:
    """What a file says stands around an agent's work: its `[stop]` and its `[[hooks]]`."""
    load_policy(path)
    table = read_table(path)
    return stop_from(table.get("stop", {})), _hooks(table)


def _watching(table: dict[str, Any]) -> LoopSettings:
    from rung.detectors.loop_settings import watching_from

    return watching_from(table.get("loops", {}))


def _hooks(table: dict[str, Any]) -> tuple[CommandHook, ...]:
    if "hooks" not in table:
        return ()
    from rung.adapters.system.user_hooks import CommandHook

    return read_rows(CommandHook, table["hooks"], "hooks")


def load_rules(path: str | Path) -> None:
    """Use the `[[rules]]` of a file, for the whole process."""
    use_rules(*load_policy(path).rules)


def read_table(path: str | Path) -> dict[str, Any]:
    """A TOML file as a table."""
    import tomllib

    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"is not TOML: {error}") from None
