"""Two versions on one journal, as during a rolling update: each reads and continues what the other wrote."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from rung.testing.provider import Lab
from tests.deploy.servers import Running, environment, started

ROOT = Path(__file__).parents[2]
OLDER = "2643d3fb"  # before fleets; the oldest version that may run beside this one
VERSIONS = ("older", "current")
PAIRS = [(one, other) for one in VERSIONS for other in VERSIONS if one != other]
TOKEN = "a-token-of-the-test-that-is-long-enough"
TASK = """
import os, pathlib, sys
import rung
journal = rung.journal()

@rung.durable.task("bill")
def bill(log: str, crash: bool) -> str:
    def number() -> str:
        with pathlib.Path(log).open("a") as file:
            file.write("number\\n")
        return "2026-17"
    number = rung.durable.step("number", number)
    if "crash" in sys.argv:
        os._exit(9)
    return rung.durable.step("sent", lambda: f"{number} is sent")

print(rung.durable.start(journal, "bill-17", "bill", log=sys.argv[1], crash=False))
"""


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources of the older version, from the repository's history."""
    words = ["git", "-C", str(ROOT), "archive", OLDER, "src"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, f"the history of the repository is needed: {done.stderr.decode()}"
    place = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(place, filter="data")
    return place / "src"


class Versions:
    """Both versions with the same settings and the same journal."""

    def __init__(self, home: Path, older: Path, journal: str) -> None:
        self.home = home
        self._sources = {"older": older, "current": ROOT / "src"}
        self._journal = journal

    def env(self, version: str) -> dict[str, str]:
        """Return the environment in which Python imports this version."""
        return {"PYTHONPATH": str(self._sources[version]), "RUNG_JOURNAL": self._journal, "RUNG_ADMIN_TOKEN": TOKEN}

    def run(self, version: str, *words: str) -> str:
        """Run Python with this version; return what it prints."""
        env = environment(self.home, self.env(version))
        done = subprocess.run([sys.executable, *words], cwd=self.home, env=env, capture_output=True, text=True, check=False, timeout=180)  # fmt: skip
        assert done.returncode in (0, 9), done.stderr
        return done.stdout


@pytest.fixture
def versions(tmp_path: Path, older: Path, postgres_url: str) -> Versions:
    return Versions(tmp_path, older, postgres_url)


def failing_call(gateway: Running) -> str:
    """Send a call whose first attempt fails; return the id of its incident."""
    body = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": f"hello {gateway.port}"}]}
    answer = gateway.ask(
        "POST", "/v1/messages", json.dumps(body).encode(), x_api_key="k", content_type="application/json"
    )
    assert (answer.status, json.loads(answer.body)["content"][0]["text"].split()[0]) == (200, "word1")
    return answer.headers["x-rung-incident"]


def fetched(service: Running, path: str) -> dict[str, object]:
    """Return a document of a service's API."""
    answer = service.ask("GET", path, authorization=f"Bearer {TOKEN}")
    assert answer.status == 200, answer.body
    return dict(json.loads(answer.body))


def test_the_sources_differ(versions: Versions) -> None:
    """Each environment really imports its own version: otherwise the other tests would prove nothing."""
    places = {version: versions.run(version, "-c", "import rung; print(rung.__file__)") for version in VERSIONS}
    assert len(set(places.values())) == 2
    assert places["current"].startswith(str(ROOT))


def test_gateways_and_services_of_two_versions(versions: Versions) -> None:
    """Gateways of both versions recover calls at the same time, and the services of both show the incidents of both."""
    words = ("gateway", "--port", "0")
    with Lab([{"fault": "overloaded", "request": 1}, {"fault": "overloaded", "request": 3}]) as lab:
        aimed = (*words, "--anthropic", lab.url)
        with (
            started(versions.home, *aimed, env=versions.env("older")) as old,
            started(versions.home, *aimed, env=versions.env("current")) as new,
        ):
            incidents = {"older": failing_call(old), "current": failing_call(new)}
            assert lab.attempts == 4
    serve = ("serve", "--port", "0", "--no-gateway", "--token", TOKEN)
    for version in VERSIONS:
        with started(versions.home, *serve, env=versions.env(version)) as service:
            for written_by, incident in incidents.items():
                shown = fetched(service, f"/api/incidents/{incident}")
                assert "overloaded" in json.dumps(shown), f"{version} does not show what {written_by} wrote"
        assert '"ok": true' in versions.run(version, "-m", "rung", "journal", "check", "--json").replace('"ok":true', '"ok": true')  # fmt: skip


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_run_of_one_version_is_continued_by_the_other(first: str, second: str, versions: Versions) -> None:
    """A run whose process dies is taken up by the other version, which does not repeat the finished step."""
    script, log = versions.home / "task.py", versions.home / "log"
    script.write_text(TASK)
    assert versions.run(first, str(script), str(log), "crash") == ""
    assert versions.run(second, str(script), str(log)) == "2026-17 is sent\n"
    assert versions.run(first, str(script), str(log)) == "2026-17 is sent\n"
    assert log.read_text() == "number\n"
