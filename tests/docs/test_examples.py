"""The examples and links of the hand-written pages work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs/index.md",
    ROOT / "docs/tutorial.md",
    *sorted((ROOT / "docs/howto").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
    *sorted((ROOT / "docs/coming-from").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every Python block of a page runs, one after another, and its assertions hold."""
    names: dict[str, object] = {"__name__": page.stem}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec", dont_inherit=True), names)
    for value in names.values():  # a model of LangChain leaves its connections to the garbage collector, which warns
        client = getattr(value, "root_client", None)
        if client is not None:
            client.close()


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


def test_every_command_and_option_of_alerts_is_documented() -> None:
    """The page on alerts names every command and option, every figure, channel type and key."""
    from rung.cli.serve.alerts import command
    from rung.core.alerts.rules import ChannelType, Metric

    page = (ROOT / "docs/howto/set-up-alerts.md").read_text()
    for name, inner in command.commands.items():
        assert f"rung alerts {name}" in page
        for parameter in inner.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in page, option
    for metric in Metric:
        assert f"| `{metric}` |" in page
    for channel in ChannelType:
        assert f'type = "{channel}"' in page


def test_the_settings_of_the_page_on_alerts_are_valid() -> None:
    """Every TOML block of the page is read as settings, together with the others."""
    import tomllib

    from rung.core.alerts.rules import read_alerts

    for block in re.findall(r"```toml\n(.*?)```", (ROOT / "docs/howto/set-up-alerts.md").read_text(), re.DOTALL):
        read_alerts(tomllib.loads(block)["alerts"])


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def test_links_lead_somewhere() -> None:
    """No page has a broken relative link, nor one to a heading that is not there."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", page.read_text())):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            found = page.parent / name if name else page
            assert found.exists(), f"{page.relative_to(ROOT)}: {target}"
            assert not anchor or anchor in anchors(found), f"{page.relative_to(ROOT)}: {target}"


def test_the_figures_of_readme_are_those_of_the_results() -> None:
    """Each figure in README's table of results stands in the section of docs/results.md that its row links to."""
    _, _, readme = (ROOT / "README.md").read_text().partition("## Results")
    sections = {
        re.sub(r"[^a-z0-9 -]", "", section.splitlines()[0].lower()).replace(" ", "-"): section
        for section in (ROOT / "docs/results.md").read_text().split("\n## ")[1:]
    }
    rows = [line for line in readme.partition("\n## ")[0].splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 5
    anchor = ""
    for row in rows:
        anchor = (re.findall(r"results\.md#([a-z-]+)", row) or [anchor])[0]
        _, *cells, command, _ = (cell.strip(" *") for cell in row.split("|"))
        assert command.strip("`") in sections[anchor], command
        for figure in re.findall(r"(?<![\w.])\d+(?:\.\d+)?[%x]?(?!\w)", " ".join(cells[1:])):
            assert re.search(rf"\| {re.escape(figure)} \|", sections[anchor]), f"{figure} is not in {anchor}"


def test_the_kinds_of_readme_are_counted() -> None:
    """README says how many kinds of failure there are."""
    from rung.core.domain.failures import Kind

    assert f"one of {len(Kind)} [kinds]" in (ROOT / "README.md").read_text()
