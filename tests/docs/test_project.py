"""The files of the project that contributors and maintainers use are true."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types are one more package

import rung

ROOT = Path(__file__).parents[2]
PRACTICE_TEST = "tests/core/classify/test_classify.py"
PRACTICE_RULES = "src/rung/core/classify/rules/availability.py"
HOME = "https://github.com/rung-dev/rung"
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2026-01-31

- Something.

[Unreleased]: https://example.org
[1.2.3]: https://example.org
"""


def make_repository(folder: Path) -> None:
    """Create a repository that is ready for the release of 1.2.3."""
    (folder / "src/rung").mkdir(parents=True)
    (folder / "src/rung/__init__.py").write_text('__version__ = "1.2.3"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    (folder / "docs/project").mkdir(parents=True)
    (folder / "docs/project/release-1.2.3.md").write_text("# Release notes: 1.2.3\n")
    git(folder, "init", "-q")
    commit(folder)


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "State")


def check_release(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/release.py"), "--check", "--root", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_release_that_is_ready(tmp_path: Path) -> None:
    """A clean tree whose version, changelog and release notes agree can be released."""
    make_repository(tmp_path)
    done = check_release(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- More.\n", "[Unreleased] must be empty"),
        ("CHANGELOG.md", " - 2026-01-31", "", "[1.2.3] must have a date"),
        ("CHANGELOG.md", "[1.2.3]: https://example.org\n", "", "no link for [1.2.3]"),
        ("src/rung/__init__.py", "1.2.3", "1.2.4", "must be ['Unreleased', '1.2.4']"),
        ("src/rung/__init__.py", "1.2.3", "1.2.4", "no release notes: docs/project/release-1.2.4.md"),
    ],
)
def test_a_release_that_is_not_ready(tmp_path: Path, file: str, old: str, new: str, words: str) -> None:
    """What does not agree is named, and nothing is built."""
    make_repository(tmp_path)
    (tmp_path / file).write_text((tmp_path / file).read_text().replace(old, new))
    commit(tmp_path)
    done = check_release(tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_release_of_a_changed_tree(tmp_path: Path) -> None:
    """Uncommitted changes, and a version that has its tag, stand against a release."""
    make_repository(tmp_path)
    (tmp_path / "new").write_text("")
    assert "the tree has 1 uncommitted changes, new among them" in check_release(tmp_path).stderr
    commit(tmp_path)
    git(tmp_path, "tag", "v1.2.3")
    assert "the tag v1.2.3 exists" in check_release(tmp_path).stderr


def test_the_changelog_has_this_version() -> None:
    """The newest section of the changelog is that of the package, with its date and its release notes."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)[:2] == ["Unreleased", rung.__version__]
    assert re.search(rf"^## \[{re.escape(rung.__version__)}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)
    assert (ROOT / f"docs/project/release-{rung.__version__}.md").is_file()


def test_one_address() -> None:
    """Every address of the repository is the one in pyproject.toml."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert all(url.startswith(HOME) for url in urls.values())
    files = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.*"), *(ROOT / "docs/project").glob("*.md")]
    for file in files:
        for found in re.findall(r"https://github\.com/[\w.-]*rung[\w.-]*/[\w.-]+", file.read_text()):
            assert found == HOME, file.name


def copy_without_practice(folder: Path, *names: str) -> list[Path]:
    """Copy files and folders of the project; a finished practice change of CONTRIBUTING is undone in the copies."""
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "static"))
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    changed = [folder / PRACTICE_TEST, folder / PRACTICE_RULES]
    for file in changed:
        file.write_text("".join(line for line in file.read_text().splitlines(True) if "napping" not in line))
    return changed


def run_practice_test(folder: Path) -> tuple[int, str]:
    """Run the row of the practice change in the copy. Return the exit code and the output."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, str(folder / PRACTICE_TEST), "-k", "napping"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_first_change_of_contributing(tmp_path: Path) -> None:
    """CONTRIBUTING's steps work in a copy: the pasted row fails, the pasted phrase makes it pass."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    row = next(block for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "HttpError" in block)
    phrase = re.findall(r"```python\n *message_has=\(\n(.*?\n) *# and all others\n```", page, re.DOTALL)[0]
    test, rules = copy_without_practice(tmp_path, "src/rung", PRACTICE_TEST, PRACTICE_RULES)
    seen = re.search(r"^SEEN: .*= \[\n", test.read_text(), re.MULTILINE)
    assert seen
    test.write_text(test.read_text().replace(seen[0], seen[0] + row))
    code, output = run_practice_test(tmp_path)
    assert (code, "1 failed" in output, "Kind.INVALID_REQUEST" in output) == (1, True, True), output
    before, rule, after = rules.read_text().partition('id="overloaded"')
    rules.write_text(before + rule + after.replace("message_has=(\n", "message_has=(\n" + phrase, 1))
    code, output = run_practice_test(tmp_path)
    assert (code, "1 passed" in output) == (0, True), output


def test_the_paths_and_targets_of_contributing() -> None:
    """Every target and every path that CONTRIBUTING names is there."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", page, re.MULTILINE)) <= targets
    for path in re.findall(r"`((?:src|tests|docs|dashboard)/[\w/.-]+)`", page):
        assert "VERSION" in path or (ROOT / path).exists(), path


def test_links_of_the_project_lead_somewhere() -> None:
    """No page of the project has a broken relative link."""
    pages = [
        *ROOT.glob("*.md"),
        ROOT / "examples/README.md",
        *(ROOT / "docs/project").glob("*.md"),
        *(ROOT / "docs/reference").glob("*.md"),
    ]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_ci_runs_the_gate_on_every_python() -> None:
    """The workflow calls the gate of `.ci/run`, on exactly the Pythons that the package claims."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands == [".ci/run", ".ci/run python"]
    tested = {"3.11", *jobs["pythons"]["strategy"]["matrix"]["python"]}
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert tested == {found[1] for line in classifiers if (found := re.search(r"Python :: (3\.\d+)$", line))}


def test_the_demo_has_the_versions_of_the_gate() -> None:
    """`make run` installs the versions that the gate tests."""
    pins = [
        dict(re.findall(r"^([a-z0-9.-]+)==([^\s;\\]+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("constraints.txt", "requirements/run.txt")
    ]
    assert pins[1].items() <= pins[0].items()
    assert {"uvicorn", "fastapi", "orjson", "hatchling"} <= pins[1].keys()
