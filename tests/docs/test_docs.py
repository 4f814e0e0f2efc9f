"""The generated reference pages are complete and up to date."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import pytest

from rung.cli.group import root
from rung.core.classify.classifier import RULES, classify
from rung.core.classify.guide.work import GUIDES
from rung.core.classify.rule_index import ClassifyRule
from rung.core.crew.contract import WORKER_TRANSITIONS
from rung.core.crew.plan import CrewSettings, PlannedTask, checked_plan
from rung.core.domain import events
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.settings_schema import declared_settings
from rung.core.pipeline.spec import PipelineSettings, PipelineStage, read_pipeline
from rung.core.policy.parser import FILE_KEYS, POLICY_KEYS, parse_policy_file
from rung.core.policy.presets import LADDERS
from rung.core.policy.prompts import PROMPTS

if TYPE_CHECKING:
    from rung.core.classify.rule_index import ClassifyRule
    from rung.core.domain.settings_schema import Setting

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
EVENTS = [event.__name__ for event in get_args(events.Event)]


def write_docs(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "scripts" / "write_docs.py"
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, check=False, encoding="utf-8"
    )


def read(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def test_every_kind_has_a_guide() -> None:
    """Every kind has a guide, in the order of the kinds."""
    assert list(GUIDES) == list(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_a_guide_is_complete_and_short(kind: Kind) -> None:
    """Every part of a guide is complete sentences; the summary is one, the symptoms are at most three."""
    guide = GUIDES[kind]
    for text in (guide.summary, guide.looks, guide.avoid, *guide.helps):
        assert text == text.strip()
        assert text.endswith((".", "?"))
    assert guide.helps
    assert len(re.findall(r"[.?](?: |$)", guide.summary)) == 1
    assert len(re.findall(r"[.?](?: |$)", guide.looks)) <= 3


def test_no_two_kinds_are_described_alike() -> None:
    """No two guides share a text."""
    for field in ("summary", "looks", "helps", "avoid"):
        texts = [getattr(guide, field) for guide in GUIDES.values()]
        assert len(set(texts)) == len(texts), field


def test_the_pages_are_up_to_date() -> None:
    """The pages in docs/reference equal the output of `make docs`."""
    checked = write_docs("--check")
    assert checked.returncode == 0, checked.stderr


def test_the_check_names_a_page_that_differs_is_missing_or_is_left_over(tmp_path: Path) -> None:
    """`--check` exits with 1 and names outdated pages, `make docs` fixes them, and hand-written pages are kept."""
    assert write_docs("--into", str(tmp_path)).returncode == 0
    (tmp_path / "by-hand.md").write_text("# By hand\n", encoding="utf-8")
    assert write_docs("--check", "--into", str(tmp_path)).returncode == 0

    changed, missing, left_over = tmp_path / "events.md", tmp_path / "policy.md", tmp_path / "kinds" / "gone.md"
    left_over.write_text(changed.read_text(encoding="utf-8"), encoding="utf-8")
    changed.write_text("edited\n", encoding="utf-8")
    missing.unlink()
    checked = write_docs("--check", "--into", str(tmp_path))
    assert checked.returncode == 1
    for path in (changed, missing, left_over):
        assert str(path) in checked.stderr
    assert len(checked.stderr.splitlines()) == 3

    assert write_docs("--into", str(tmp_path)).returncode == 0
    assert write_docs("--check", "--into", str(tmp_path)).returncode == 0
    assert not left_over.exists()
    assert (tmp_path / "by-hand.md").exists()


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_page_with_its_rules_and_ladders(kind: Kind) -> None:
    """A kind's page contains its guide, all its rules and all ladders, and the index links to it."""
    text = read(f"kinds/{kind}.md")
    guide = GUIDES[kind]
    for part in (guide.summary, guide.looks, guide.avoid, *guide.helps):
        assert part in text
    for rule in RULES:
        assert (f"| `{rule.id}` |" in text) == (rule.kind is kind)
    for ladder in LADDERS:
        assert f"(../ladders/{ladder}.md)" in text
    assert f"[`{kind}`]({kind}.md)" in read("kinds/README.md")


def test_the_index_of_kinds_has_every_group() -> None:
    """The index is divided by the groups of kinds."""
    assert re.findall(r"^## (.*)$", read("kinds/README.md"), re.MULTILINE) == list(GROUPS)


@pytest.mark.parametrize("name", LADDERS)
def test_every_ladder_has_a_page_with_its_rungs_and_entries(name: str) -> None:
    """A ladder's page draws its rungs and lists the entry rung of each kind, and the index links to it."""
    text = read(f"ladders/{name}.md")
    ladder = LADDERS[name]
    levels = [f"{ladder.level(index)} {rung.name}" for index, rung in enumerate(ladder.rungs)]
    assert re.findall(r"^║ (.*?) +║", text, re.MULTILINE) == levels[::-1]
    for kind in Kind:
        assert f"[`{kind}`](../kinds/{kind}.md)" in text
    assert f"[{name}]({name}.md)" in read("ladders/README.md")


@pytest.mark.parametrize("name", PROMPTS)
def test_every_prompt_is_shown_with_its_use(name: str) -> None:
    """Every prompt is listed with its id, its text and at least one action that uses it."""
    _, found, rest = read("prompts.md").partition(f"## `{name}`\n")
    assert found
    uses, _, text = rest.partition("```text\n")
    assert uses.strip().startswith("- `")
    assert text.startswith(PROMPTS[name])


@pytest.mark.parametrize("key", POLICY_KEYS)
def test_every_policy_key_is_described(key: str) -> None:
    """Every key of a policy file has a row with type, default and meaning."""
    row = re.search(rf"^\| `{key}` \| .+ \| .+ \| .+ \|$", read("policy.md"), re.MULTILINE)
    assert row


@pytest.mark.parametrize(
    ("name", "key"),
    [("plan.md", key) for key in (*declared_settings(CrewSettings), *declared_settings(PlannedTask))]
    + [("pipeline.md", key) for key in (*declared_settings(PipelineSettings), *declared_settings(PipelineStage))],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_key_of_a_plan_and_a_pipeline_is_described(name: str, key: Setting) -> None:
    """Every key has a row with allowed values, default and meaning, and the example is valid."""
    row = re.search(rf"^\| `{key.name}` \| .+ \| .+ \| .+ \|$", read(name), re.MULTILINE)
    assert row
    (example,) = re.findall(r"```toml\n(.*?)```", read(name), re.DOTALL)
    {"plan.md": checked_plan, "pipeline.md": read_pipeline}[name](tomllib.loads(example))


@pytest.mark.parametrize("key", FILE_KEYS)
def test_every_table_of_the_settings_file_is_described(key: str) -> None:
    """Every top-level key that rung.toml accepts has a row with a link to its keys."""
    assert re.search(rf"^\| \[`\[*{key}[^`]*`\]\(\S+\) \| .+ \|", read("settings.md"), re.MULTILINE)


def settings_classes() -> dict[str, type]:
    """Return every class that declares keys of rung.toml, by its name; those of other files are left out."""
    modules = ("gateway", "wiring", "detectors", "core.agents", "core.policy", "core.classify", "adapters.system")
    for package in modules:
        found = importlib.import_module(f"rung.{package}")
        for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            importlib.import_module(module.name)
    prefixes = tuple(f"rung.{package}." for package in modules)
    return {
        value.__name__: value
        for name, module in list(sys.modules.items())
        if name.startswith(prefixes)
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == name
        if any("setting" in field.metadata for field in fields(value))
    }


SETTINGS = settings_classes()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_key_of_the_settings_file_is_described(name: str) -> None:
    """Every key that a table of rung.toml accepts has a row with allowed values, default and meaning."""
    text = read("policy.md") if name in ("Policy", "Model") else read("settings.md")
    keys = [key.name for key in declared_settings(SETTINGS[name])]
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    described = [re.findall(r"^\| `(\w+)` \| .+ \| .+ \| .+ \|$", one, re.MULTILINE) for one in tables]
    assert any(set(keys) <= set(one) for one in described), f"no table has the keys of {name}: {keys}"


def test_the_settings_file_may_choose_a_durable_engine() -> None:
    """A `[fleet]` table, which `rung fleet` reads, does not stop the commands that read the policy."""
    parse_policy_file({"fleet": {"engine": "embedded"}})


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_is_described(name: str) -> None:
    """Every event is listed with its docstring and all its fields."""
    _, found, rest = read("events.md").partition(f"## `{name}`\n")
    assert found
    section = rest.split("\n## ", maxsplit=1)[0]
    event = getattr(events, name)
    assert (event.__doc__ or "").splitlines()[0] in section
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(event._fields)


def commands() -> dict[str, click.Command]:
    """Return every command that is not hidden, by its path."""
    found: dict[str, click.Command] = {}

    def walk(command: click.Command, context: click.Context) -> None:
        found[context.command_path] = command
        for name in command.list_commands(context) if isinstance(command, click.Group) else ():
            inner = command.get_command(context, name) if isinstance(command, click.Group) else None
            if inner is not None and not inner.hidden:
                walk(inner, click.Context(inner, info_name=name, parent=context))

    walk(root, click.Context(root, info_name="rung", **root.context_settings))
    return {path: command for path, command in found.items() if path != "rung"}


COMMANDS = commands()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_described(path: str) -> None:
    """Every command has a heading, its usage, and a row for each option that has a help text."""
    text = read(f"cli/{path.split()[1]}.md")
    _, found, rest = text.partition(f"# `{path}`\n")
    assert found
    section = rest.partition("\n## ")[0]
    assert f"```text\n{path} " in section or f"```text\n{path}\n" in section
    for option in COMMANDS[path].params:
        if isinstance(option, click.Option) and option.help and not option.hidden:
            assert re.search(rf"^\| `[^`]*{re.escape(max(option.opts, key=len))}\b", section, re.MULTILINE), option.opts


def test_the_pictures_show_the_data() -> None:
    """Each ladder's picture names its rungs; the others name every decision, and every state that a task can have."""
    for name, ladder in LADDERS.items():
        svg = read(f"pictures/ladder-{name}.svg")
        for index, rung in enumerate(ladder.rungs):
            assert f">{ladder.level(index)}  {rung.name}" in svg
        assert f"(../pictures/ladder-{name}.svg)" in read(f"ladders/{name}.md")
    path, states = read("pictures/failure-path.svg"), read("pictures/crew-states.svg")
    assert all(f">{decision.__name__}<" in path for decision in get_args(events.Decision))
    reached = {each.after for each in WORKER_TRANSITIONS}
    assert all(f">{state}<" in states for state in reached)


def test_the_example_policies_load() -> None:
    """Every policy example can be loaded and has the values it shows."""
    examples = re.findall(r"```toml\n(.*?)```", read("policy.md"), re.DOTALL)
    assert len(examples) == 2
    shown, own = (parse_policy_file(tomllib.loads(example)) for example in examples)
    assert [model.name for model in shown.default.models] == ["small", "large"]
    assert shown.policy_for(project="website").budget.dollars == 5.0
    assert shown.policy_for(tool="bash").attempt_seconds == 120
    assert own.default.ladder.name == "nightly"
    assert own.default.unattended


def test_links_between_pages_lead_somewhere() -> None:
    """No generated page has a broken link."""
    for path in REFERENCE.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path}: {target}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rules_example_is_found_by_that_rule(rule: ClassifyRule) -> None:
    """The example of each rule is classified by that rule and not by an earlier one."""
    failure = classify(rule.example)
    assert (failure.rule, failure.kind, failure.retryable) == (rule.id, rule.kind, rule.retryable)


def test_rule_ids_are_unique() -> None:
    """Rule ids are unique and do not use the reserved names."""
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert not {"finding", "unknown"} & set(ids)
