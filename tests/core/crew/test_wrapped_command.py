"""The command behind `rung worker run … --` is known where it runs on this machine."""

from __future__ import annotations

import pytest

from rung.core.crew.evidence import wrapped_command


@pytest.mark.parametrize(
    ("command", "wrapped"),
    [
        ("rung worker run -- claude -p", "claude -p"),
        ("/opt/bin/rung worker run --check true -- claude -- x", "claude -- x"),
        ("python3 -P -m rung worker run -- claude", "claude"),
        ("ssh host rung worker run -- claude", ""),
        ("docker run image rung worker run -- claude", ""),
        ("rung run -- claude", ""),
        ("rung worker run claude", ""),
        ("sh -c true -- worker run", ""),
        ("", ""),
    ],
)
def test_the_wrapped_command(command: str, wrapped: str) -> None:
    """Behind a remote shell or a container it is not known, and a plain command wraps nothing."""
    assert wrapped_command(command.split()) == wrapped.split()
