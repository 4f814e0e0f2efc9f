"""Recover a program that knows nothing of Rung: its SDK calls the gateway, which repeats what the provider fails."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import rung.testing


def client() -> None:
    """Call the API with retries off, as any program does; the environment names the gateway."""
    from anthropic import Anthropic

    with Anthropic(max_retries=0) as anthropic:
        message = anthropic.messages.create(
            model="any", max_tokens=100, messages=[{"role": "user", "content": "count to 5"}]
        )
        print("".join(block.text for block in message.content if block.type == "text"), flush=True)


def main() -> None:
    """Run this program behind a gateway, before a provider on this machine that is overloaded at first."""
    if find_spec("anthropic") is None:
        sys.exit("this example needs the SDK: pip install anthropic")
    script = [{"fault": "overloaded", "request": 1}, {"fault": "reset_headers", "request": 2}]
    with rung.testing.lab(script=script) as lab:
        command = [sys.executable, "-m", "rung", "gateway", "--anthropic", lab.url, "--no-journal"]
        environment = {**os.environ, "ANTHROPIC_API_KEY": "any"}
        subprocess.run([*command, "run", "--", sys.executable, __file__, "client"], env=environment, check=True)
        print("the provider answered:", [call.status for call in lab.calls])


if __name__ == "__main__":
    client() if "client" in sys.argv else main()
