"""Wrong use of every command: one line that says what is wrong, the documented exit code, and never a traceback.

The cases are generated from the commands themselves, so that a new command or option is swept, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from shutil import copytree
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.core.domain.request import Request
from rung.engine.recover import recover_sync
from rung.store import open_journal
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from click.testing import Result

EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 75}  # all that the documentation names, but for those of signals
# With input that they accept, they serve, follow or wait until they are stopped: they get only what they must refuse.
LONG_RUNNING = {
    "serve", "mcp", "lab", "gateway", "hooks serve", "log", "fleet worker", "fleet status", "crew board", "crew conduct",
    "crew watch", "crew run",
    "worker run",
}  # fmt: skip
LONG_NAME = "x" * 5_000
TEXTS = ["", "nope", "'open", "\N{COLLISION SYMBOL}", LONG_NAME]
NUMBERS = ["-1", "0", "999999999999999999999", "nan", "inf", "1e999"]


class Swept(NamedTuple):
    """A command with the words that call it."""

    words: tuple[str, ...]
    command: click.Command

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def options(self) -> list[click.Option]:
        return [one for one in self.command.params if isinstance(one, click.Option) and not one.is_flag]

    @property
    def arguments(self) -> list[click.Argument]:
        return [one for one in self.command.params if isinstance(one, click.Argument)]


def _walk(command: click.Command, words: tuple[str, ...]) -> Iterator[Swept]:
    yield Swept(words, command)
    if isinstance(command, click.Group):
        context = click.Context(command, **root.context_settings)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from _walk(found, (*words, name))


ALL = [one for one in _walk(root, ()) if one.words]
each_command = pytest.mark.parametrize("swept", ALL, ids=[one.name for one in ALL])


@pytest.fixture(scope="module")
def _templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a journal, a crew, and files of every wrong content."""
    base = tmp_path_factory.mktemp("sweep")
    with open_journal(base / "journal.db") as journal:
        recover_sync(Script(HttpError(401)), Request(prompt="x"), journal=journal)
    crew = str(base / "crew.db")
    for words in (["init"], ["add", "task-1", "--body", "work"]):
        assert CliRunner().invoke(root, ["crew", *words, "--db", crew]).exit_code == 0
    (base / "empty").touch()
    (base / "binary").write_bytes(bytes(range(256)) * 8)
    (base / "bad.toml").write_text("[policy\nx")
    (base / "odd.toml").write_text('policy = 5\ntasks = 1\nstages = "x"\ngateway = 7\n')
    (base / "bad.json").write_text('{"a": \n')
    (base / "list.json").write_text("[1, 2]\n")
    (base / "link").symlink_to("nowhere")
    (base / "folder").mkdir()
    return base


@pytest.fixture
def base(_templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the folder; what commands write stays in it, and in a home and a working directory of this test."""
    base, home = tmp_path / "base", tmp_path / "home"
    copytree(_templates, base, symlinks=True)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "RUNG_HOOKS", "RUNG_CREW", "RUNG_TASK", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RUNG_JOURNAL", str(base / "journal.db"))
    monkeypatch.chdir(home)
    return base


def _wrong_files(base: Path) -> list[str]:
    """Return paths of files that cannot be read, or have a wrong content."""
    names = ("missing", "folder", "link", "binary", "bad.toml", "odd.toml", "bad.json", "list.json", "bad.json/x")
    unreadable = ["/proc/self/mem"] if os.path.exists("/proc/self/mem") else []  # noqa: PTH110  # also as root
    return [*(str(base / name) for name in names), *unreadable, LONG_NAME]


def _names_a_file(param: click.Parameter) -> bool:
    text = f"{param.metavar} {param.name} {type(param.type).__name__}".upper()
    return any(word in text for word in ("FILE", "PATH", "DIR", "PLAN"))


def _good_value(param: click.Parameter, base: Path) -> str:
    if param.name == "database":
        return str(base / "crew.db")
    choices = getattr(param.type, "choices", None)
    if choices:
        return str(choices[0])
    if isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
        return "1"
    return "true" if param.nargs == -1 else "nope"


def _arguments(swept: Swept, base: Path, changed: click.Parameter | None = None, value: str = "") -> list[str]:
    """Return a call with everything that is required, and one parameter with this value."""
    words = list(swept.words)
    for option in swept.options:
        if option is changed or option.required:
            name = max(option.opts, key=len)
            words += [name, value if option is changed else _good_value(option, base)]
    if any(argument.nargs == -1 for argument in swept.arguments):
        words.append("--")
    for argument in swept.arguments:
        if argument is changed or argument.required:
            words.append(value if argument is changed else _good_value(argument, base))
    return words


def _call(words: Sequence[str]) -> Result:
    """Call a command; whatever it is given, it ends as documented."""
    done = CliRunner().invoke(root, words, input="", prog_name="rung")
    shown = [word[:40] for word in words]
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"rung {shown}: a traceback") from done.exception
    assert done.exit_code in EXIT_CODES, shown
    assert "Traceback" not in done.output, shown
    return done


def _refused(words: Sequence[str]) -> str:
    """Call a command that must refuse; return the first line of its error."""
    done = _call(words)
    shown = [word[:40] for word in words]
    assert done.exit_code == 2, (shown, done.output)
    assert done.stdout == "", shown
    first, *rest = done.stderr.splitlines()
    assert first.startswith("rung: "), (shown, first)
    assert all(line.startswith(("See: rung help", "Options of COMMAND")) for line in rest), (shown, rest)
    return first


@each_command
def test_unknown_options_and_commands(swept: Swept, base: Path) -> None:
    """An option or a subcommand that does not exist is named, and nothing runs."""
    assert "'--no-such-option'" in _refused([*swept.words, "--no-such-option"])
    if isinstance(swept.command, click.Group):
        assert "'no-such-command'" in _refused([*swept.words, "no-such-command"])


@each_command
def test_missing_values_and_arguments(swept: Swept, base: Path) -> None:
    """An option without its value, and a required argument that is missing, are named."""
    for option in swept.options:
        name = max(option.opts, key=len)
        assert f"{name}: its value is missing" in _refused([*swept.words, name])
    if any(argument.required for argument in swept.arguments):
        assert " is missing" in _refused(list(swept.words))


@each_command
def test_too_many_arguments(swept: Swept, base: Path) -> None:
    """An argument too many is refused, unless the command takes any number."""
    if not isinstance(swept.command, click.Group) and all(one.nargs == 1 for one in swept.arguments):
        optional = ["nope" for one in swept.arguments if not one.required and not hasattr(one.type, "choices")]
        chosen = [
            str(one.type.choices[0]) for one in swept.arguments if not one.required and hasattr(one.type, "choices")
        ]
        assert "one-too-many" in _refused([*_arguments(swept, base), *optional, *chosen, "one-too-many"])


@each_command
def test_values_of_a_wrong_type(swept: Swept, base: Path) -> None:
    """Choices and numbers are checked before anything runs; the message says what is allowed."""
    for param in swept.command.params:
        if isinstance(param.type, click.Choice):
            line = _refused(_arguments(swept, base, param, "no-such-choice"))
            assert all(str(choice) in line for choice in param.type.choices), line
        elif isinstance(param.type, click.types.IntParamType | click.types.FloatParamType):
            assert "a number" in (line := _refused(_arguments(swept, base, param, "many"))) or "a whole number" in line


@each_command
def test_odd_numbers(swept: Swept, base: Path) -> None:
    """Numbers that are negative, huge or none at all never end in a traceback."""
    if swept.name in LONG_RUNNING:
        return
    for option in swept.options:
        if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType):
            for number in NUMBERS:
                _call(_arguments(swept, base, option, number))


@each_command
def test_odd_texts(swept: Swept, base: Path) -> None:
    """Texts that are empty, long, unknown or half quoted never end in a traceback."""
    if swept.name in LONG_RUNNING:
        return
    for param in swept.command.params:
        is_text = isinstance(param.type, click.types.StringParamType) and not getattr(param, "is_flag", False)
        if is_text and param.nargs == 1 and not _names_a_file(param):
            for text in TEXTS:
                _call(_arguments(swept, base, param, text))


@each_command
def test_wrong_files(swept: Swept, base: Path) -> None:
    """Files that are missing, unreadable, directories, or of a wrong content never end in a traceback."""
    if swept.name in LONG_RUNNING:
        return
    for param in swept.command.params:
        if _names_a_file(param) and param.nargs == 1 and not getattr(param, "is_flag", False):
            for file in _wrong_files(base):
                _call(_arguments(swept, base, param, file))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["journal", "where", "--journal"], 0),
        (["journal", "check", "--journal"], 2),
        (["journal", "backup"], 2),
        (["crew", "init", "--db"], 2),
        (["policy", "check"], 2),
        (["report", "--project"], 0),
        (["doctor", "--journal"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_names_that_are_not_utf_8(words: list[str], code: int, base: Path) -> None:
    """A name with bytes that are not UTF-8 is refused or printed with a replacement, in a process of its own."""
    name = os.fsencode(base) + b"/\xff.db"
    done = subprocess.run(
        [sys.executable, "-m", "rung", *words, name], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--no-gateway", "--port", "0", "--journal"),
        ("mcp", "--journal"),
        ("gateway", "--journal"),
        ("gateway", "--config"),
        ("lab", "--script"),
        ("log", "--journal"),
        ("fleet", "status", "--journal"),
        ("crew", "board", "--once", "--db"),
        ("crew", "run"),
    ],
    ids=" ".join,
)
def test_servers_refuse_wrong_files(words: tuple[str, ...], base: Path) -> None:
    """Commands that would serve or follow refuse files of a wrong content, each by its name."""
    for name in ("folder", "binary", "bad.toml", "odd.toml"):
        assert name in _refused([*words, str(base / name)])


def test_servers_refuse_a_port_that_is_taken(base: Path) -> None:
    """A port that is taken is named, with how to get another."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words in (["serve", "--port", port], ["gateway", "--no-journal", "--port", port], ["lab", "--port", port]):
            assert port in _refused(words)


@each_command
def test_the_help_teaches_and_fits(swept: Swept) -> None:
    """The help fits 60 columns, cuts no summary, and has an example; every option says what it is for."""
    context = click.Context(
        swept.command, info_name=f"rung {swept.name}", terminal_width=60, help_option_names=["-h", "--help"]
    )
    text = context.get_help()
    assert [line for line in text.splitlines() if len(line) > 60] == []
    assert not re.search(r"\.\.\.$", text.partition("Options:")[2], re.MULTILINE)
    assert "\b" not in text
    assert "\\b" not in text
    if not isinstance(swept.command, click.Group) and not swept.command.hidden:
        assert re.search(r"^  Examples?:\n    \S", text, re.MULTILINE)
    for option in (one for one in swept.command.params if isinstance(one, click.Option)):
        assert option.help, option.opts
        assert option.help.rstrip().endswith((".", "]")), option.help


def test_every_command_has_a_summary_of_its_own() -> None:
    """Every command has a summary: one sentence, not that of another command of its group."""
    for swept in ALL:
        if isinstance(swept.command, click.Group):
            from rung.cli.command_group import CommandGroup

            assert isinstance(swept.command, CommandGroup)
            summaries = dict(swept.command.summaries(click.Context(swept.command, **root.context_settings)))
            assert len(set(summaries.values())) == len(summaries)
            for name, summary in summaries.items():
                assert re.fullmatch(r"[A-Z][^\n]+[.]", summary), (swept.name, name, summary)
