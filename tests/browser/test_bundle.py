"""The built bundle: its size, its content security policy and its relative URLs."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from hatch_build import Dashboard

ROOT = Path(__file__).parent.parent.parent
STATIC = ROOT / "src" / "rung" / "service" / "static"
FIRST_LOAD = 80 * 1024


def test_the_first_load_is_small() -> None:
    """The page, its style sheet and all scripts take at most 80 KB compressed."""
    sizes = {
        path.name: len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.rglob("*.*") if path.suffix != ".txt"
    }
    assert sum(sizes.values()) <= FIRST_LOAD, sizes


def test_the_page_has_nothing_inline_and_no_absolute_address() -> None:
    """The page contains no inline script, style or handler, and only relative URLs."""
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert addresses
    assert all(address.startswith("./") for address in addresses), addresses
    files = [address for address in addresses if address.startswith("./assets/")]
    assert all((STATIC / address).is_file() for address in files)
    assert all(re.search(r"-[A-Z0-9]{8}\.\w+$", address) for address in files), files


def test_the_lock_names_no_host() -> None:
    """The lock file contains digests but no registry URLs."""
    lock = json.loads((ROOT / "dashboard" / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert not [name for name, entry in packages.items() if "resolved" in entry]
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())


@pytest.mark.parametrize("change", ["src/main.tsx", "index.html", "package-lock.json"])
def test_a_changed_source_is_built_again_and_nothing_else(change: str, tmp_path: Path) -> None:
    """A build is skipped if no source changed, and runs if one byte changed."""
    skip = shutil.ignore_patterns("node_modules")
    shutil.copytree(ROOT / "dashboard", tmp_path / "dashboard", ignore=skip)
    shutil.copytree(STATIC, tmp_path / "src/rung/service/static")
    copy = Dashboard(tmp_path)
    copy.stamp.write_text(copy.digest())
    assert copy.is_fresh()
    source = tmp_path / "dashboard" / change
    source.write_text(source.read_text() + " ")
    assert not copy.is_fresh()


def test_without_its_sources_there_is_nothing_to_build(tmp_path: Path) -> None:
    """A wheel built without the dashboard's sources does not require Node."""
    assert Dashboard(tmp_path).is_fresh()
