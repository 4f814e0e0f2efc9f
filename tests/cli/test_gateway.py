"""`rung gateway`: one command behind it, environment variables, keys, and wrong usage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.request import urlopen

from rung.testing.provider import Lab
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung", "gateway"]
AGENT = """
import os, json, urllib.request
body = json.dumps({"model": "small", "max_tokens": 500, "messages": [{"role": "user", "content": "count to 3"}]}).encode()
asked = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {"x-api-key": "k"})
print(json.load(urllib.request.urlopen(asked))["content"][0]["text"])
"""


def gateway(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **env}
    return subprocess.run(
        [*RUNG, *words], capture_output=True, text=True, check=False, cwd=cwd, timeout=60, env=environment
    )


def test_one_command_behind_it(tmp_path: Path) -> None:
    """A command survives an overload, and the summary is printed at the end."""
    with Lab([{"fault": "overloaded", "request": 1}]) as lab:
        done = gateway("--anthropic", lab.url, "run", "--", sys.executable, "-c", AGENT, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "word1 word2 word3\n")
        assert "rung gateway: recovered 1 of 1 call (failures: 1x overloaded)" in done.stderr
        assert lab.attempts == 2
        done = gateway("run", "--", sys.executable, "-c", "raise SystemExit(7)", cwd=tmp_path)
        assert done.returncode == 7


def test_a_call_that_its_client_leaves_is_counted(tmp_path: Path) -> None:
    """A command that gives up on a waiting call has used the gateway, and the summary says what became of the call."""
    impatient = AGENT.replace("urlopen(asked)", "urlopen(asked, timeout=2)")
    with Lab([{"fault": "overloaded"}]) as lab:
        done = gateway("--anthropic", lab.url, "run", "--", sys.executable, "-c", impatient, cwd=tmp_path)
        assert done.returncode == 1
        assert "rung gateway: 1 left by the client before the answer" in done.stderr


def test_its_recoveries_are_logged(tmp_path: Path) -> None:
    """A gateway in the foreground logs each failed attempt and the recovery on standard error, and no answer or key."""
    with Lab([{"fault": "overloaded", "request": 1}]) as lab:
        words = [*RUNG, "--port", "0", "--anthropic", lab.url, "--no-journal"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        assert process.stdout is not None
        base = process.stdout.readline().split()[-1]
        agent = [sys.executable, "-c", AGENT]
        subprocess.run(agent, check=True, env={**os.environ, "ANTHROPIC_BASE_URL": base}, timeout=60)
        process.terminate()
        _, log = process.communicate(timeout=60)
    failed, recovered = log.splitlines()
    assert "gateway.small: attempt 1 failed: overloaded: Overloaded; next: " in failed
    assert "gateway.small: recovered after 2 attempts in " in recovered


def test_help_of_run_names_its_own_port(tmp_path: Path) -> None:
    """A gateway of one command picks a free port, and its help says so."""
    assert "(default: a free one)" in " ".join(gateway("run", "--help", cwd=tmp_path).stdout.split())
    assert "(default: 8484)" in " ".join(gateway("--help", cwd=tmp_path).stdout.split())


def test_a_command_in_a_network_with_a_proxy(tmp_path: Path) -> None:
    """A command's requests to its gateway do not go to the proxy that the environment names."""
    with Lab() as lab:
        words = ("--anthropic", lab.url, "run", "--", sys.executable, "-c", AGENT)
        done = gateway(*words, cwd=tmp_path, HTTP_PROXY="http://127.0.0.1:9", NO_PROXY="corp.example")
        assert (done.returncode, done.stdout) == (0, "word1 word2 word3\n"), done.stderr
    done = gateway("--print-env", cwd=tmp_path, HTTP_PROXY="http://127.0.0.1:9", NO_PROXY="*.corp.example")
    assert "export NO_PROXY='*.corp.example,127.0.0.1,localhost'" in done.stdout.splitlines()


def test_a_start_that_cannot_be(tmp_path: Path) -> None:
    """An upstream that cannot be used is a one-line error at start, alone and around a command."""
    (tmp_path / "rung.toml").write_text(
        '[gateway.upstreams.x]\nwire = "openai"\nurl = "https://x"\nkey_env = "NO_KEY"\n'
    )
    for words in ((), ("run", "--", "true")):
        done = gateway("--config", "rung.toml", "--port", "0", *words, cwd=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert "gateway.upstreams.x.key_env: NO_KEY is not set" in done.stderr


def test_the_lines_to_paste(tmp_path: Path) -> None:
    """--print-env prints the environment variables without starting the gateway."""
    done = gateway("--port", "8123", "--print-env", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "export ANTHROPIC_BASE_URL=http://127.0.0.1:8123",
        "export OPENAI_BASE_URL=http://127.0.0.1:8123/v1",
        "export OPENAI_API_BASE=http://127.0.0.1:8123/v1",
        "export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8123",
    ]


def test_a_key(tmp_path: Path) -> None:
    """new-key prints a key once, and its entry with the hash, which allows a non-loopback address."""
    done = gateway("new-key", "--project", "site", cwd=tmp_path)
    key, _, table = done.stdout.partition("\n\n")
    assert key.startswith("rung-")
    assert key not in table
    write_trusted(tmp_path / "rung.toml", table)
    assert gateway("--host", "0.0.0.0", "--print-env", cwd=tmp_path).returncode == 0


def test_misuse(tmp_path: Path) -> None:
    """An invalid option is a one-line error that names it; exit code 2."""
    write_trusted(tmp_path / "rung.toml", "[gateway.timeouts]\nidle_timeout = 0\n")
    for words, named in (
        (("--print-env",), "gateway.timeouts.idle"),
        (("--config", "nowhere.toml", "--print-env"), "nowhere.toml"),
    ):
        done = gateway(*words, cwd=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert named in done.stderr
    (tmp_path / "rung.toml").unlink()
    done = gateway("--host", "0.0.0.0", cwd=tmp_path)
    assert done.returncode == 2
    assert "gateway.keys" in done.stderr
    done = gateway("run", "--", "no-such-program", cwd=tmp_path)
    assert done.returncode == 2


def test_served_until_a_signal(tmp_path: Path) -> None:
    """The gateway prints its address, reloads a changed file, and exits with 0 on SIGTERM."""
    write_trusted(tmp_path / "rung.toml", "[gateway]\nport = 0\n")
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*RUNG], stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=env) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            assert os.environ["RUNG_JOURNAL"] in process.stdout.readline()
            with urlopen(f"{url}/readyz") as ready:
                assert json.load(ready)["status"] == "ok"
            write_trusted(tmp_path / "rung.toml", "[gateway]\nport = 'x'\n")
            assert "settings not reloaded" in process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
