"""The settings file of a way in: the one place that decides what a file may set.

A file that the user names is used whole. A `rung.toml` that is found in a directory may come with a cloned repository:
until the user trusts it, it is policy data alone. It runs no command, names no upstream, key or journal, and its policy
is bounded by the user's own (`core/policy/bounds`).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, FileError
from rung.core.domain.settings_schema import read_rows
from rung.core.domain.settings_schema import read_table as read_settings_table
from rung.core.policy.parser import PolicyBook, parse_policy_file
from rung.core.policy.policy import Policy
from rung.core.policy.stop_settings import read_stop_settings
from rung.detectors.loop_settings import LoopSettings, loop_settings_from
from rung.wiring import trust
from rung.wiring.recording import RecordingSettings, recording_settings
from rung.wiring.toml_reader import parse_table, read_table
from rung.wiring.trust import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.adapters.system.user_hooks import CommandHook
    from rung.core.agents.own_agents import OwnAgent
    from rung.core.alerts.rules import AlertSettings

CONFIG_FILE: Final = "rung.toml"
MAX_FOUND_BYTES: Final = 1024 * 1024
_MAX_SHOWN_NAMES: Final = 12
_MAX_NAME_CHARS: Final = 60
_PLAIN_NAME: Final = re.compile(rf"[\w.-]{{1,{_MAX_NAME_CHARS}}}", re.ASCII)
# What a file that is not trusted may set. A table or key that is not here needs trust.
_DATA_TABLES: Final = ("policy", "ladder", "projects", "tools")
_DATA_STOP_KEYS: Final = ("gate", "max_blocks", "sections", "json")
_warned_files: Final[set[tuple[Path, tuple[str, ...]]]] = set()
_LOOP_STAGES: Final = ("replan", "explore", "force_done")  # may be lowered


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """Settings of one file. What it may not set is not in `table`; `withheld` names it."""

    path: Path
    table: dict[str, Any]
    decision: Decision = Decision.TRUSTED
    withheld: tuple[str, ...] = ()
    content: bytes = b""  # what a decision is about

    def book(self, **own: Any) -> PolicyBook:
        """Return the policies, overridden by the user's own settings, after validating all tables.

        If the file is not trusted, they are bounded by those settings and the defaults.
        """
        with self.errors():
            self._read_hooks()
            self._read_agents()
            read_stop_settings(self.table.get("stop", {}))
            loop_settings_from(self.table.get("loops", {}))
            recording_settings(self.table.get("recording"))
            self._read_alerts()
            policy = read_settings_table(self.table.get("policy", {}), "policy")
            table = {**self.table, "policy": {**policy, **own}}
            return parse_policy_file(table, None if self.decision is Decision.TRUSTED else own)

    def loops(self) -> LoopSettings:
        """Return the settings of the `[loops]` table, or the defaults."""
        with self.errors():
            return loop_settings_from(self.table.get("loops", {}))

    def recording(self) -> RecordingSettings:
        """Return the settings of the `[recording]` table, or the defaults."""
        with self.errors():
            return recording_settings(self.table.get("recording"))

    def stop(self) -> dict[str, Any]:
        """Return the checked keys of the `[stop]` table."""
        with self.errors():
            return read_stop_settings(self.table.get("stop", {}))

    def hooks(self) -> tuple[CommandHook, ...]:
        """Return the rows of `[[hooks]]`."""
        with self.errors():
            return self._read_hooks()

    def agents(self) -> tuple[OwnAgent, ...]:
        """Return the rows of `[[agents]]`."""
        with self.errors():
            return self._read_agents()

    def alerts(self) -> AlertSettings | None:
        """Return the settings of the `[alerts]` table; None if there is none."""
        with self.errors():
            return self._read_alerts()

    def _read_alerts(self) -> AlertSettings | None:
        if "alerts" not in self.table:
            return None
        from rung.core.alerts.rules import read_alerts

        return read_alerts(self.table["alerts"])

    def _read_agents(self) -> tuple[OwnAgent, ...]:
        if "agents" not in self.table:
            return ()
        from rung.core.agents.own_agents import OwnAgent

        return read_rows(OwnAgent, self.table["agents"], "agents")

    def _read_hooks(self) -> tuple[CommandHook, ...]:
        if "hooks" not in self.table:
            return ()
        from rung.adapters.system.user_hooks import CommandHook

        return read_rows(CommandHook, self.table["hooks"], "hooks")

    @property
    def place(self) -> str:
        """Return where the file lies, as text that can be shown: no control characters, no invalid Unicode."""
        return _printable(trust.located(self.path))

    @property
    def is_undecided(self) -> bool:
        """Return whether something is withheld that the user has not decided about."""
        return bool(self.withheld) and self.decision is Decision.UNDECIDED

    @property
    def withholds_alerts(self) -> bool:
        """Return whether the file has an `[alerts]` table that is not used because the file is not trusted."""
        return "alerts" in self.withheld and self.decision is not Decision.TRUSTED

    @property
    def trust_command(self) -> str:
        """Return the command that trusts the file as it is now."""
        return f"rung trust {shlex.quote(self.place)}"

    def sets(self) -> str:
        """Return the names of what is withheld, as text that can be shown: a hostile file can have many long ones."""
        more = len(self.withheld) - _MAX_SHOWN_NAMES
        return ", ".join(self.withheld[:_MAX_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")

    def notice(self) -> str:
        """Return one line that says what is withheld, and how to trust the file."""
        return f"{_printable(self.path)} is not trusted, so it cannot set {self.sets()}; {how_to_trust(self.path)}"

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Name the file in every error about its settings."""
        try:
            yield
        except ConfigError as error:
            raise FileError(self.path, str(error), error.key, error.value, error.allowed) from None


def how_to_trust(path: Path) -> str:
    """Return the command by which the user decides about a file."""
    return f"review it, then run: rung trust {shlex.quote(_printable(trust.located(path)))} (--deny to use its policy alone)"


def _printable(path: Path) -> str:
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else ascii(text)


def named(path: str | Path) -> SettingsFile:
    """Return the settings of a file that the user named, which is trusted."""
    return SettingsFile(path=Path(path), table=read_table(path))


def find(directory: str | Path = "", *, needs: tuple[str, ...] = (), quiet: bool = False) -> SettingsFile | None:
    """Return the settings of the `rung.toml` in a directory, without what it may not set; None if there is none.

    `needs` are keys that the caller cannot do without, such as a gateway its keys: if they are withheld, FileError is
    raised. `quiet` asks and tells nobody.
    """
    path = Path(directory) / CONFIG_FILE
    content = _read_found(path)
    if content is None:
        return None
    whole = SettingsFile(path=path, table=parse_table(path, content), content=content)
    decision = trust.decision_about(path, content)
    if decision is Decision.TRUSTED:
        return whole
    data, withheld = split(whole.table)
    file = replace(whole, table=data, decision=decision, withheld=withheld)
    if not withheld or decision is Decision.DENIED:
        return file
    answer = None if quiet else trust.ask(file)
    try:
        trust.note_met(path, content) if answer is None else trust.decide(path, content, answer)
    except FileError as error:  # a state directory that cannot be written: the answer holds for this call
        trust.notify(str(error))
    if answer is not None:
        return whole if answer is Decision.TRUSTED else replace(file, decision=answer)
    if needs and any(name.startswith(needs) for name in withheld):
        raise FileError(path, f"sets {file.sets()} and is not trusted; {how_to_trust(path)}")
    if not quiet and (trust.located(path), withheld) not in _warned_files:
        _warned_files.add((trust.located(path), withheld))
        trust.notify(file.notice())
    return file


def inspect_file(path: str | Path) -> SettingsFile:
    """Return a file whole, with the decision about it and the names of what needs trust; asks nobody."""
    path = Path(path)
    path = trust.located(path / CONFIG_FILE if os.path.isdir(path) else path)  # noqa: PTH112  # is_dir may raise
    content = _read_found(path)
    if content is None:
        raise FileError(path, "does not exist")
    table = parse_table(path, content)
    return SettingsFile(
        path=path, table=table, decision=trust.decision_about(path, content), withheld=split(table)[1], content=content
    )


def known_files() -> list[SettingsFile]:
    """Return every file that a decision was made about or that was met, and that still exists."""
    files = []
    for path in trust.known_paths():
        with suppress(FileError):
            files.append(inspect_file(path))
    return files


def split(table: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the part of a file's table that needs no trust, and the names of everything else."""
    data = {name: value for name, value in table.items() if name in _DATA_TABLES}
    withheld = [name for name in table if name not in (*_DATA_TABLES, "stop", "loops")]
    stop = table.get("stop", {})
    if isinstance(stop, dict):
        data["stop"] = {key: value for key, value in stop.items() if key in _DATA_STOP_KEYS}
        withheld += [f"stop.{key}" for key in stop if key not in _DATA_STOP_KEYS]
    if _only_lowers(table.get("loops", {})):
        data["loops"] = table.get("loops", {})
    else:
        withheld.append("loops")
    return data, tuple(map(_shown_name, (*withheld, *_raised(data))))


def _shown_name(name: str) -> str:
    """Return the name of a key as it is; one that is long or odd is quoted and cut."""
    return name if _PLAIN_NAME.fullmatch(name) else ascii(name[:_MAX_NAME_CHARS])


def _only_lowers(loops: object) -> bool:
    """Return whether a `[loops]` table only makes loop detection stricter."""
    default = LoopSettings()
    return isinstance(loops, dict) and all(
        key in _LOOP_STAGES and isinstance(value, int) and value <= getattr(default, key)
        for key, value in loops.items()
    )


def _raised(data: Mapping[str, Any]) -> Iterator[str]:
    """Name the policy settings that the bounds change: models, prompts, and caps above the defaults."""
    try:
        free, limited = parse_policy_file(dict(data)), parse_policy_file(dict(data), {})
    except ConfigError:
        return  # reported where the policy is used
    pairs = {"policy": (free.default, limited.default)}
    pairs |= {f"projects.{name}": (free.policy_for(name), limited.policy_for(name)) for name in free.projects}
    pairs |= {f"tools.{name}": (free.policy_for(tool=name), limited.policy_for(tool=name)) for name in free.tools}
    for where, (one, other) in pairs.items():
        for each in fields(Policy):
            if each.name != "tools" and getattr(one, each.name) != getattr(other, each.name):
                yield f"{where}.{each.name}"


def _read_found(path: Path) -> bytes | None:
    """Return the content of a regular file of bounded size; None if there is none. A device would never end."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileError(path, "is not a regular file")
        try:
            content = file.read(MAX_FOUND_BYTES + 1)
        except OSError as error:
            raise FileError(path, f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_FOUND_BYTES:
        raise FileError(path, f"is larger than {MAX_FOUND_BYTES} bytes")
    return content
