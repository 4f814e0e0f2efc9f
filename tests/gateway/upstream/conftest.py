"""No test sees the credentials of the person who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.upstream.requests_seen import VARIABLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("UPSTREAM_KEY", "held-by-the-gateway")
