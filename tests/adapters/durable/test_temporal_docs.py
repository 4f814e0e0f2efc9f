"""The page about Temporal is true: its code runs on the real server."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "recover-in-temporal.md"


def test_the_page_runs(temporal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks, as one module, recover as it says."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "page_about_temporal.py").write_text("\n".join(blocks))
    monkeypatch.syspath_prepend(str(tmp_path))
    page = import_module("page_about_temporal")
    try:
        found = asyncio.run(page.main(temporal))
    finally:
        del sys.modules["page_about_temporal"]
    assert (found["value"], found["status"], found["model"]) == ("Why?, by large", "recovered", "large")
