"""Build and check a release: `make release`. It uploads nothing; it prints what a maintainer has to sign off.

`--check` only compares version, changelog and release notes, and looks at the tree.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

_SECTION: Final = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?\s*$", re.MULTILINE)
_SIGN_OFFS: Final = (
    "the gate passed on this commit: make test",
    "it passed on the other Pythons: make test-python with 3.12, 3.13 and 3.14, or the CI workflow",
    "the release notes were read by somebody else, and their upgrade steps were tried on a copy of a journal",
    "results that the release changes were measured again: make results",
    "the addresses in pyproject.toml ([project.urls]), SECURITY.md and CODE_OF_CONDUCT.md are right",
)


def main() -> None:
    """Check, build, try; print the checksums and the sign-offs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="build nothing")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--twine", default="twine", help="program that checks the metadata")
    options = parser.parse_args()
    version = version_of(options.root)
    found = problems(options.root, version)
    if found:
        sys.exit("".join(f"release: {problem}\n" for problem in found).rstrip())
    print(f"release: {version}: clean tree; changelog and release notes agree")
    if not options.check:
        _build(options.root, version, options.twine)


def version_of(root: Path) -> str:
    """Return the version of the package."""
    text = (root / "src/rung/__init__.py").read_text()
    found: list[str] = re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return found[0]


def problems(root: Path, version: str) -> list[str]:
    """Return what stands against a release of this version."""
    changed = _git(root, "status", "--porcelain").splitlines()
    found = [f"the tree has {len(changed)} uncommitted changes, {changed[0][3:]} among them"] if changed else []
    if _git(root, "tag", "--list", f"v{version}"):
        found.append(f"the tag v{version} exists: set another __version__ in src/rung/__init__.py")
    return [*found, *changelog_problems((root / "CHANGELOG.md").read_text(), version), *_notes_problems(root, version)]


def changelog_problems(text: str, version: str) -> list[str]:
    """Return where the changelog does not describe this version."""
    sections = list(_SECTION.finditer(text))
    names = [section["name"] for section in sections]
    if names[:2] != ["Unreleased", version]:
        return [f"CHANGELOG.md begins with {names[:2]}; must be ['Unreleased', {version!r}]"]
    found = []
    if text[sections[0].end() : sections[1].start()].strip():
        found.append(f"CHANGELOG.md: [Unreleased] must be empty; move its lines to [{version}]")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", sections[1]["date"] or ""):
        found.append(f"CHANGELOG.md: [{version}] must have a date, such as 2026-01-31")
    found += [f"CHANGELOG.md has no link for [{name}]" for name in names if f"\n[{name}]: http" not in text]
    return found


def _notes_problems(root: Path, version: str) -> list[str]:
    file = root / f"docs/project/release-{version}.md"
    return [] if file.is_file() else [f"there are no release notes: {file.relative_to(root)}"]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip("\n")  # noqa: S603, S607  # own command


def _build(root: Path, version: str, twine: str) -> None:
    """Build both archives, check them, and use the wheel."""
    dist = root / "dist"
    for old in dist.glob("rung-*"):
        old.unlink()
    for target in ("sdist", "wheel"):
        _run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(dist)], root)
    archives = sorted(dist.glob(f"rung-{version}*"))
    assert len(archives) == 2, archives  # noqa: S101, PLR2004  # an sdist and a wheel
    _compare(root, dist / f"rung-{version}.tar.gz", dist / f"rung-{version}-py3-none-any.whl")
    _run([twine, "check", "--strict", *map(str, archives)], root)
    _run([sys.executable, "scripts/try_wheel.py", str(dist / f"rung-{version}-py3-none-any.whl")], root)
    for archive in archives:
        print(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.relative_to(root)}")
    print("\nTo sign off:")
    for line in _SIGN_OFFS:
        print(f"  [ ] {line}")
    print(
        f"\nThen, by a maintainer: git tag -s v{version} && git push origin v{version} && twine upload dist/rung-{version}*"
    )


def _compare(root: Path, sdist: Path, wheel: Path) -> None:
    """Build a wheel from the sdist: it must have the same files as the wheel from the tree."""
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(sdist) as archive:
            archive.extractall(directory, filter="data")
        source = Path(directory) / sdist.name.removesuffix(".tar.gz")
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory], source)
        with zipfile.ZipFile(Path(directory) / wheel.name) as built, zipfile.ZipFile(wheel) as expected:
            differing = set(built.namelist()) ^ set(expected.namelist())
        if differing:
            sys.exit(f"release: the wheel from the sdist differs: {sorted(differing)[:5]}")
    shutil.rmtree(root / "build", ignore_errors=True)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, check=False)  # noqa: S603  # own commands
    if done.returncode != 0:
        sys.exit(f"release: {' '.join(command)} failed with exit code {done.returncode}")


if __name__ == "__main__":
    main()
