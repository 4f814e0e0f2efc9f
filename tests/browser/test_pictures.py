"""The picture of the dashboard in README shows the page of today."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.browser.conftest import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_incident_page_looks_as_in_readme(browser: Browser) -> None:
    """The incident page over the demo world has the text and the look of the picture."""
    assert browser.is_connected()
    checked = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "write_pictures.py"), "--check", "incident"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stderr) == (0, "")
