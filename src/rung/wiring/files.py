"""Policy files: read and validated as a whole; each error is one line that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.classify.classifier import use_rules
from rung.core.domain.errors import ConfigError, FileError
from rung.core.domain.settings_schema import read_rows
from rung.core.policy.parser import parse_policy_file
from rung.core.policy.stop_settings import read_stop_settings

if TYPE_CHECKING:
    from rung.adapters.system.user_hooks import CommandHook
    from rung.core.policy.parser import PolicyBook
    from rung.detectors.loop_settings import LoopSettings


def load_policy(path: str | Path) -> PolicyBook:
    """Return the policies of a file, after validating all of its tables."""
    table = read_table(path)
    try:
        if "loops" in table:
            _loop_settings(table)
        if "stop" in table:
            read_stop_settings(table["stop"])
        _hooks(table)
        return parse_policy_file(table)
    except ConfigError as error:
        raise FileError(path, str(error), error.key, error.value, error.allowed) from None


def load_loop_settings(path: str | Path) -> LoopSettings:
    """Return the loop settings of a file's `[loops]` table, or the defaults."""
    load_policy(path)
    return _loop_settings(read_table(path))


def load_stop_and_hooks(path: str | Path) -> tuple[dict[str, Any], tuple[CommandHook, ...]]:
    """Return the `[stop]` settings and the `[[hooks]]` of a file."""
    load_policy(path)
    table = read_table(path)
    return read_stop_settings(table.get("stop", {})), _hooks(table)


def _loop_settings(table: dict[str, Any]) -> LoopSettings:
    from rung.detectors.loop_settings import loop_settings_from

    return loop_settings_from(table.get("loops", {}))


def _hooks(table: dict[str, Any]) -> tuple[CommandHook, ...]:
    if "hooks" not in table:
        return ()
    from rung.adapters.system.user_hooks import CommandHook

    return read_rows(CommandHook, table["hooks"], "hooks")


def load_rules(path: str | Path) -> None:
    """Install the `[[rules]]` of a file for the whole process."""
    use_rules(*load_policy(path).rules)


def read_table(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; raise FileError if it cannot be read or parsed."""
    from rung.core.text.toml_document import MAX_TOML_BYTES, TomlError, parse_toml

    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_TOML_BYTES + 1)
        if len(content) > MAX_TOML_BYTES:
            raise FileError(path, f"is too large; the limit is {MAX_TOML_BYTES:,} bytes")
        return parse_toml(content.decode("utf-8-sig"))
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}") from None
    except TomlError as error:
        raise FileError(path, f"is not TOML: {error}") from None
