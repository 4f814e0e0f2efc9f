"""The containers really run: each with its own words, variables and probes, in directories that stand for the image's."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rung.gateway.keys import new_key
from rung.store import open_journal
from tests.deploy import manifests
from tests.deploy.manifests import DEPLOY, Container
from tests.deploy.servers import Running, environment, started
from tests.waiting import wait_until

SECRET = "a-secret-of-the-test-that-is-long-enough"
GATEWAYS = [one for one in manifests.containers() if one.role == "gateway"]
SERVICES = [one for one in manifests.containers() if one.role == "serve"]
WORKERS = [one for one in manifests.containers() if one.words[:2] == ("fleet", "worker")]
INITS = [one for one in manifests.containers() if one.words[:2] == ("fleet", "init")]
AUDITED = Path(__file__).parent / "audited"


class Image:
    """Directories that stand for those of a container, and the words and variables of its containers in them."""

    def __init__(self, root: Path, journal: str) -> None:
        self.home, self.etc, self.writes = root / "var", root / "etc", root / "writes"
        for path in (self.home, self.etc):
            path.mkdir()
        self.key, digest = new_key()
        text = (DEPLOY / "rung.toml").read_text()
        placeholder = "replace this by the hash that `rung gateway new-key` prints"
        assert placeholder in text
        (self.etc / "rung.toml").write_text(text.replace(placeholder, digest))
        (self.etc / "tasks.py").write_text((DEPLOY / "tasks.py").read_text())
        self.journal = journal

    def words(self, one: Container, port: int = 0) -> list[str]:
        """Return the words of a container, with the test's own paths and a free port."""
        own = {str(one.port): str(port), "/etc/rung/rung.toml": str(self.etc / "rung.toml")}
        return [own.get(word, word) for word in one.words]

    def env(self, one: Container) -> dict[str, str]:
        """Return the variables of a container, with the test's own secrets, and a record of what is written."""
        own = {name: SECRET if "$" in value else value.replace("/etc/rung", str(self.etc)) for name, value in one.env.items()}  # fmt: skip
        if not own:  # the image alone: its variables come from whoever runs it
            own = {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET}
        path = ":".join(filter(None, (str(AUDITED), own.pop("PYTHONPATH", ""))))
        data = {"XDG_DATA_HOME": str(self.home), "PYTHONPATH": path, "RUNG_TEST_WRITES": str(self.writes)}
        return {**own, **data, "PYTHONDONTWRITEBYTECODE": "1", "RUNG_JOURNAL": self.journal}

    def run(self, one: Container) -> subprocess.CompletedProcess[str]:
        """Run a container to its end."""
        words, env = [sys.executable, "-m", "rung", *self.words(one)], environment(self.home, self.env(one))
        return subprocess.run(words, cwd=self.home, env=env, capture_output=True, text=True, check=False, timeout=180)

    def written_elsewhere(self) -> list[str]:
        """Return what was written outside of the writable places of the containers."""
        paths = self.writes.read_text().splitlines()
        allowed = (str(self.home), "/tmp/", "/dev/null")
        return sorted({path for path in paths if not path.startswith(allowed)})


def named(one: Container) -> str:
    return one.where.replace(" ", "-")


@pytest.fixture
def image(tmp_path: Path, postgres_url: str) -> Image:
    return Image(tmp_path, postgres_url)


def get(server: Running, path: str, host: str = "", **headers: str) -> int:
    """Return the status of a GET request, by default with an address as Host, as probes have it."""
    return server.ask("GET", path, host=host or f"10.2.3.4:{server.port}", **headers).status


def test_the_shipped_settings_start_nothing(tmp_path: Path) -> None:
    """Before a key is put into rung.toml, a gateway refuses to start and names what is missing: there is no default key."""
    (tmp_path / "rung.toml").write_text((DEPLOY / "rung.toml").read_text())
    words = [sys.executable, "-m", "rung", "gateway", "--host", "0.0.0.0", "--port", "0", "--config", "rung.toml"]
    env = environment(tmp_path, {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET})
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "gateway.keys" in done.stderr
    assert "rung gateway new-key" in done.stderr


@pytest.mark.parametrize("one", GATEWAYS, ids=named)
def test_a_gateway_runs_and_answers_its_probes(one: Container, image: Image) -> None:
    """A gateway starts with exactly these words, answers its probes, knows its names, and needs a key for all else."""
    with started(image.home, *image.words(one), env=image.env(one)) as gateway:
        for path in {*one.probes, "/healthz", "/readyz"}:
            assert get(gateway, path) == 200, path
        for name in ("rung-gateway:8484", "gateway:8484"):
            assert get(gateway, "/healthz", name) == 200
            assert get(gateway, "/v1/models", name) == 401
        assert get(gateway, "/healthz", "another.example:8484") == 421
        gateway.process.send_signal(signal.SIGINT)  # without the delay for load balancers
        assert gateway.process.wait(120) == 0
    assert image.written_elsewhere() == []


@pytest.mark.parametrize("one", SERVICES, ids=named)
def test_a_service_runs_and_answers_its_probes(one: Container, image: Image) -> None:
    """A service starts with exactly these words, answers its probes, and takes the token from the environment."""
    with started(image.home, *image.words(one), env=image.env(one)) as service:
        assert one.probes
        for path in one.probes:
            assert get(service, path) == 200, path
        assert get(service, "/api/me") == 401
        assert get(service, "/api/me", authorization=f"Bearer {SECRET}") == 200
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(120) == 0
    assert str(image.home) in image.writes.read_text(), "nothing was recorded"
    assert image.written_elsewhere() == []


@pytest.mark.parametrize("name", manifests.health_checks())
def test_a_health_check_tells_a_running_server_from_none(name: str, image: Image) -> None:
    """The command of each health check succeeds while its server runs, and fails when it has ended."""
    role = "service" if name == "service" else "gateway"
    (one, *_) = SERVICES if role == "service" else [each for each in GATEWAYS if each.env]
    check = manifests.health_checks()[name]

    def healthy(port: int) -> bool:
        words = [sys.executable if word == "python" else word.replace(f":{one.port}/", f":{port}/") for word in check]
        assert any(f":{port}/" in word for word in words)
        return subprocess.run(words, check=False, capture_output=True, timeout=120).returncode == 0

    with started(image.home, *image.words(one), env=image.env(one)) as server:
        assert healthy(server.port)
    assert not healthy(server.port)


SUBMIT = "import asyncio, rung; asyncio.run(rung.durable.engine().submit('hello', 'greet', {'name': 'Ada'}))"
DONE = "SELECT result FROM run WHERE id = 'hello' AND state = 'done'"


@pytest.mark.parametrize(("init", "worker"), list(zip(INITS, WORKERS, strict=True)), ids=named)
def test_a_prepared_database_and_its_worker(init: Container, worker: Container, image: Image) -> None:
    """After the init job, twice, a worker takes up a submitted run, and ends with 0 on SIGTERM."""
    for _ in range(2):
        done = image.run(init)
        assert done.returncode == 0, done.stderr
    env, log = environment(image.home, image.env(worker)), image.home / "worker.log"
    subprocess.run([sys.executable, "-c", SUBMIT], env=env, cwd=image.home, check=True, timeout=120)
    with log.open("w") as said:
        words = [sys.executable, "-m", "rung", *image.words(worker)]
        process = subprocess.Popen(words, env=env, cwd=image.home, stderr=said, stdout=said)
    try:
        with open_journal(image.journal) as journal:
            ended = wait_until(lambda: journal.read(DONE) or [(log.read_text(),)] * (process.poll() is not None))
        assert "Hello, Ada." in ended[0][0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert image.written_elsewhere() == []
