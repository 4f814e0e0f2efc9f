"""`rung ladder` and `rung policy`: diagrams, tables that can be parsed again, worst cases."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rung.cli.group import root
from rung.cli.output import format_seconds, format_worst_case
from rung.cli.policy.ladder_diagram import draw
from rung.cli.policy.policy import settings_text
from rung.core.domain.dollars import format_dollars
from rung.core.domain.ladder import ACTION_DESCRIPTIONS, Action, Ladder
from rung.core.policy.parser import parse_ladder, parse_policy
from rung.core.policy.policy import Policy
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import ladder_table, policy_table
from rung.core.policy.templates import TEMPLATE_DESCRIPTIONS, TEMPLATES, preset
from rung.core.policy.worst_case import WorstCase, worst_case
from rung.wiring.files import load_policy

if TYPE_CHECKING:
    from pathlib import Path

OWN = """
[ladder]
name = "careful"
about = "My own."
rungs = [
  { action = "retry", tries = 2, seconds = 20 },
  { action = "nudge", name = "hint", cost = 0.05 },
  { action = "ask", name = "person" },
]
[ladder.entry]
transient = "retry"
refusal = "person"
[policy]
attempts = 5
seconds = 120
dollars = 0.25
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def table(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def picture(ladder: Ladder, width: int = 80, *, plain: bool = False) -> list[str]:
    return [line.plain for line in draw(ladder, width, plain=plain)]


@pytest.mark.parametrize("ladder", LADDERS.values(), ids=LADDERS)
@pytest.mark.parametrize("width", [80, 100])
def test_a_picture_fits(ladder: Ladder, width: int) -> None:
    """Every diagram fits the terminal, with straight rails."""
    lines = picture(ladder, width)
    assert max(map(len, lines)) <= width
    body = lines[2:-1]
    left = min(line.index("┃") for line in body if "┃" in line)
    assert all(line[left] in "┃┣" for line in body)
    right = max(line.rindex("┃") for line in body if "┃" in line)
    assert all(line[right] in "┃┫" for line in body)


@pytest.mark.parametrize("ladder", LADDERS.values(), ids=LADDERS)
def test_the_highest_rung_is_on_top(ladder: Ladder) -> None:
    """Rungs are drawn from the last to the first, each with its level, name and tries."""
    rows = [line for line in picture(ladder) if "┣" in line]
    assert [int(row.split()[0]) for row in rows] == [ladder.level(n) for n in reversed(range(len(ladder.rungs)))]
    for row, rung in zip(rows, reversed(ladder.rungs), strict=True):
        assert f" {rung.name} " in row
        assert f"{rung.tries} tr" in row
        assert f"per {rung.scope}" in row


@pytest.mark.parametrize("ladder", LADDERS.values(), ids=LADDERS)
def test_every_kind_stands_where_it_enters(ladder: Ladder) -> None:
    """Each kind with its own entry is listed beside its rung."""
    beside: dict[str, str] = {}
    for line in picture(ladder)[3:-1]:
        if "┣" in line:
            name = line.partition("━ ")[2].partition(" ━")[0]
            beside[name] = ""
        else:
            beside[name] += line.rpartition("┃")[2] + " "
    for kind, rung in ladder.entry.items():
        assert kind in beside[rung].replace(",", " ").split()
    assert "not named elsewhere" in beside[ladder.default_entry] or "all others" in beside[ladder.default_entry]


def test_a_picture_without_unicode() -> None:
    """The plain diagram is ASCII only."""
    for ladder in LADDERS.values():
        assert "\n".join(picture(ladder, plain=True)).isascii()


def test_a_very_narrow_screen() -> None:
    """On a narrow terminal the diagram is cropped, not wrapped."""
    assert len(picture(LADDERS["task"], 20)) >= len(picture(LADDERS["task"], 80))


def test_a_pipe_gets_no_colour() -> None:
    """A pipe gets plain text at 80 columns."""
    out = run("ladder", "show", "task").output
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert "Worst case: " + format_worst_case(worst_case(preset("task"))) in out


def test_every_action_is_described() -> None:
    """Every action and every template has a description."""
    assert set(ACTION_DESCRIPTIONS) == set(Action)
    assert set(TEMPLATE_DESCRIPTIONS) == set(TEMPLATES)


@pytest.mark.parametrize("name", LADDERS)
def test_a_ladder_can_be_read_again(name: str) -> None:
    """`ladder show --json` is a table that makes the ladder of the preset, with the rungs that wait."""
    assert parse_ladder(table("ladder", "show", name)) == preset(name).ladder


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_policy_can_be_read_again(name: str, template: str) -> None:
    """`policy show --json` is a table that makes the same policy."""
    shown = table("policy", "show", name, "--template", template)
    assert parse_policy(shown["policy"]) == preset(name, template)
    assert WorstCase(**shown["worst_case"]) == worst_case(preset(name, template))


def test_lists() -> None:
    """`ladder list` and `policy templates` list all of them."""
    assert [ladder["name"] for ladder in table("ladder", "list")["ladders"]] == list(LADDERS)
    assert [template["name"] for template in table("policy", "templates")["templates"]] == list(TEMPLATES)
    out = run("ladder", "list").output
    assert all(name in out for name in LADDERS)
    out = run("policy", "templates").output
    assert all(name in out for name in TEMPLATES)
    assert max(map(len, out.splitlines())) <= 80


def test_a_ladder_of_ones_own(own: str) -> None:
    """A file's ladder is drawn with its own names, costs and entries."""
    out = run("ladder", "show", own).output
    for words in ("careful  My own.", " hint ", "nudge · 1 try · $0.05 a try", "rate_limit", "refusal"):
        assert words in out


def test_a_file_that_is_right(own: str) -> None:
    """`ladder check` says OK and the worst case: attempts, seconds and dollars within the budget."""
    done = run("ladder", "check", own)
    assert done.exit_code == 0
    assert done.output.splitlines()[0] == f"OK  {own}: ladder careful, 3 rungs"
    case = worst_case(load_policy(own).default)
    assert f"worst case: {format_worst_case(case)}" in done.output
    checked = table("ladder", "check", own)
    assert checked["ok"] is True
    assert WorstCase(**checked["worst_case"]) == case
    assert (case.attempts, case.seconds) == (5, 120)
    assert case.dollars is not None
    assert 0.05 <= case.dollars <= 0.25
    assert parse_ladder(checked["ladder"]).name == "careful"


def test_projects_and_tools(tmp_path: Path) -> None:
    """`policy check` prints the default policy and that of each project and tool."""
    path = tmp_path / "book.toml"
    path.write_text(
        '[policy]\nmodels = [{ name = "small", cost = 0.1 }, "large"]\nattempts = 9\n'
        "[projects.web]\nattempts = 4\n[tools.bash]\nretries = 0\nseconds = 90\n"
    )
    checked = table("policy", "check", str(path))
    assert checked["default"]["worst_case"]["attempts"] == 9
    assert checked["projects"]["web"]["worst_case"]["attempts"] == 4
    assert checked["tools"]["bash"]["worst_case"]["seconds"] == 90
    out = run("policy", "check", str(path)).output
    assert out.startswith(f"OK  {path}\n")
    for words in ("small ($0.10) → large", "project web", "4 attempts, 1 h", "tool bash", "90 s"):
        assert words in out
    assert out.count("backoff") == 1, "what does not differ is not repeated"


def test_every_setting_is_shown() -> None:
    """The text of a policy includes every setting; those of tools are tables of their own."""
    assert {*settings_text(preset("task")), "tools"} == {field.name for field in fields(Policy) if field.init}
    out = run("policy", "show", "call", "-t", "conservative").output
    assert all(field.name in out for field in fields(Policy) if field.init and field.name != "tools")


def test_tables_match_the_values() -> None:
    """Sets, tuples and enums become what JSON has, sorted, with nothing lost."""
    shown = policy_table(preset("pipeline"))
    assert json.loads(json.dumps(shown)) == shown
    assert ladder_table(LADDERS["pipeline"])["rungs"][1]["applies_to"] == [
        "malformed_output",
        "partial_output",
        "unverified",
    ]


@pytest.mark.parametrize(
    ("amount", "words"),
    [(None, "no time limit"), (0, "0 s"), (0.5, "0.5 s"), (60, "1 min"), (90, "90 s"), (1200, "20 min"), (3600, "1 h")],
)
def test_durations_in_words(amount: float | None, words: str) -> None:
    """Durations are printed in readable units."""
    assert format_seconds(amount) == words


def test_money_in_words() -> None:
    """Small amounts keep their significant digits; an unknown price is not printed as free."""
    assert [format_dollars(amount) for amount in (12, 0.4, 0.0025)] == ["$12.00", "$0.40", "$0.0025"]
    assert (
        format_worst_case(WorstCase(attempts=1, seconds=None, dollars=0.0))
        == "1 attempt, no time limit, no price known"
    )
    assert format_worst_case(WorstCase(attempts=None, seconds=1.0, dollars=2.0)) == "any number of attempts, 1 s, $2.00"


def test_what_each_way_in_does(tmp_path: Path) -> None:
    """`policy check` shows the policy of each way in: a gateway's own defaults, and the file's own ladder and tries."""
    path = tmp_path / "gateway.toml"
    path.write_text(
        '[policy]\nmodels = ["small", "large"]\n'
        '[ladder]\nname = "mine"\n'
        'rungs = [{ action = "retry", tries = 2 }, { action = "fallback" }, { action = "surface" }]\n'
    )
    ways = table("policy", "check", str(path))["ways_in"]
    assert list(ways) == ["library", "run", "mcp", "gateway", "pipeline", "crew", "hooks"]
    assert (ways["gateway"]["ladder"], ways["gateway"]["retries"]) == ("mine", 2)
    assert ways["gateway"]["models"] == ["large"]
    assert (ways["gateway"]["patience"], ways["run"]["patience"]) == (3_600, 300)
    assert ways["run"]["longest_wait"] > 300
    assert (ways["crew"]["longest_wait"], ways["hooks"]["longest_wait"]) == (0, 0)
    shown = run("policy", "check", str(path)).output
    assert "way in: gateway" in shown
    assert max(len(line) for line in shown.splitlines() if str(path) not in line) <= 80
    path.write_text("")
    ways = table("policy", "check", str(path))["ways_in"]
    assert (ways["gateway"]["ladder"], ways["run"]["ladder"]) == ("call", "task")
