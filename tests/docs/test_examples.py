"""The examples and links of the hand-written pages work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs/tutorial.md",
    *sorted((ROOT / "docs/howto").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every Python block of a page runs, one after another, and its assertions hold."""
    names: dict[str, object] = {"__name__": page.stem}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec", dont_inherit=True), names)


def test_every_option_of_run_is_documented() -> None:
    """The page on `rung run` names every option and every exit code it has."""
    from rung.cli.exit_codes import EXIT_CODES, INTERRUPTED, USAGE
    from rung.cli.run.run import command

    page = (ROOT / "docs/howto/supervise-a-command.md").read_text()
    for parameter in command.params:
        for option in parameter.opts:
            assert not option.startswith("--") or option in page, option
    for code in {*EXIT_CODES.values(), INTERRUPTED, USAGE}:
        assert f"| {code} |" in page


def test_every_option_of_a_pipeline_is_documented() -> None:
    """The page on pipelines names every command, option and exit code."""
    from rung.cli.exit_codes import EXIT_CODES, INTERRUPTED, USAGE
    from rung.cli.run.pipeline import command

    page = (ROOT / "docs/howto/run-a-pipeline.md").read_text()
    for name, inner in command.commands.items():
        assert f"rung pipeline {name}" in page
        for parameter in inner.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in page, option
    for code in {*EXIT_CODES.values(), INTERRUPTED, USAGE}:
        assert f"| {code} |" in page


def test_links_lead_somewhere() -> None:
    """No hand-written page has a broken relative link."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *(ROOT / "docs/explanation").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
