"""`rung doctor`: finds what is broken, names the command that fixes it, and never breaks or hangs itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from rung import schemas
from rung.cli.doctor.finding import DoctorFinding, State
from rung.cli.doctor.probes import run_checks
from rung.cli.extras import EXTRAS
from rung.cli.group import root
from rung.core.domain.request import Request
from rung.engine.recover import recover_sync
from rung.store import open_journal
from rung.testing import Script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "sk-ant-REDACTED"


@pytest.fixture(autouse=True)
def _own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the diagnosis a home, a working directory and a PATH of its own."""
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home, here):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "RUNG_HOOKS", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_TOKEN")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RUNG_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.chdir(here)
    return tmp_path


def diagnose(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code, and the findings by group and name; the document matches its schema."""
    done = CliRunner().invoke(root, ["doctor", "--json", *arguments], catch_exceptions=False)
    document = json.loads(done.output)
    Draft202012Validator(json.loads(schemas.text("doctor"))).validate(document)
    assert document["ok"] == (done.exit_code == 0)
    assert document["broken"] == sum(found["state"] == "broken" for found in document["findings"])
    return done.exit_code, {f"{found['group']}.{found['name']}": found for found in document["findings"]}


def test_a_fresh_installation_is_well() -> None:
    """Without a journal, settings, servers or agents nothing is broken: all of them are optional."""
    code, found = diagnose()
    assert code == 0
    assert found["versions.rung"]["facts"]["version"]
    assert found["versions.python"]["facts"]["executable"] == sys.executable
    assert found["versions.sqlite"]["facts"]["driver"] == "apsw"
    assert found["journal.file"]["detail"] == "there is no journal yet; the first run creates it"
    assert found["servers.service"]["state"] in ("info", "ok")  # one may run on this machine
    assert found["agents.agents"]["state"] == found["hooks.hooks"]["state"] == found["keys.keys"]["state"] == "info"


def test_a_journal_in_use(tmp_path: Path) -> None:
    """A journal is shown with its schema, size and last event."""
    with open_journal(tmp_path / "journal.db") as journal:
        recover_sync(Script("fine"), Request(prompt="x"), journal=journal)
    code, found = diagnose()
    facts = found["journal.content"]["facts"]
    assert code == 0
    assert facts["schema"] >= 3
    assert facts["bytes"] > 0
    assert facts["last_event_at"].startswith("20")
    assert found["journal.file"]["facts"]["writable"] is True


def test_a_damaged_journal_is_broken(tmp_path: Path) -> None:
    """A file that is no journal is broken, and the command that moves it away is printed."""
    path = tmp_path / "journal.db"
    path.write_bytes(b"no database" * 100)
    code, found = diagnose()
    assert code == 1
    assert found["journal.content"]["state"] == "broken"
    assert "is not a journal" in found["journal.content"]["detail"]
    assert found["journal.content"]["fix"] == f"mv {path} {path}.broken"


def test_a_directory_and_a_link_in_place_of_the_journal(tmp_path: Path) -> None:
    """A directory or a dangling link where the journal should be is broken, without a traceback."""
    (tmp_path / "folder.db").mkdir()
    assert diagnose("--journal", str(tmp_path / "folder.db"))[0] == 1
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere")
    assert diagnose("--journal", str(tmp_path / "link.db"))[0] == 1


def test_a_postgres_journal_that_is_not_there() -> None:
    """A PostgreSQL journal that cannot be reached is broken, and its password is not printed."""
    code, found = diagnose("--journal", "postgresql://ann:hunter2secret@127.0.0.1:1/rung")
    assert code == 1
    assert found["journal.content"]["state"] == "broken"
    assert "hunter2secret" not in json.dumps(found)


@pytest.mark.parametrize("text", ["[policy\n", "[policy]\nretries = -1\n", "policy = 5\n", "\xff"])
def test_invalid_settings_are_broken(text: str, tmp_path: Path) -> None:
    """An invalid rung.toml is broken, and the message names what is wrong with it."""
    (tmp_path / "here" / "rung.toml").write_bytes(text.encode("latin-1"))
    code, found = diagnose()
    assert code == 1
    assert found["settings.rung.toml"]["state"] == "broken"
    assert "rung.toml" in found["settings.rung.toml"]["detail"]
    assert found["settings.rung.toml"]["fix"] == "rung policy check rung.toml"


def test_settings_that_are_not_trusted(tmp_path: Path) -> None:
    """A file that sets what needs trust is a warning with the command; nobody is asked."""
    (tmp_path / "here" / "rung.toml").write_text('[[hooks]]\nwhen = "attempt.pre"\nrun = "true"\n')
    code, found = diagnose()
    file = found["settings.rung.toml"]
    assert code == 0
    assert (file["state"], file["facts"]["sets"]) == ("warning", ["hooks"])
    assert file["fix"] == f"rung trust {tmp_path}/here/rung.toml"


def test_alerts_that_are_off(tmp_path: Path) -> None:
    """A file that is not trusted and defines alerts is a warning that says that they are off."""
    (tmp_path / "here" / "rung.toml").write_text("[alerts.rules.r]\nwhen = 'cost'\nthreshold = 5\n")
    _, found = diagnose()
    assert found["settings.rung.toml"]["detail"].endswith("it cannot set alerts; its alerts are off")


def test_keys_are_named_and_their_values_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of keys are printed, also as text; their values never."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://user:{SECRET}@127.0.0.1:1/?key={SECRET}")
    _, found = diagnose()
    assert found["keys.keys"]["facts"]["set"] == ["ANTHROPIC_API_KEY"]
    assert SECRET not in json.dumps(found)
    assert SECRET not in CliRunner().invoke(root, ["doctor"]).output


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Health) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def test_servers_that_answer(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named service and gateway that answer are well, and so are programs that are pointed at the gateway."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server}/v1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    code, found = diagnose("--service", server, "--gateway", server)
    assert code == 0
    assert found["servers.service"]["state"] == found["servers.gateway"]["state"] == "ok"
    assert found["servers.OPENAI_BASE_URL"]["detail"] == "points at the gateway"


def test_servers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named server that is not there, or never answers, is broken; so are programs pointed at it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        code, found = diagnose("--service", "http://127.0.0.1:1", "--gateway", url)
    assert code == 1
    assert found["servers.service"]["state"] == "broken"
    assert "did not answer within" in found["servers.gateway"]["detail"]
    assert found["servers.ANTHROPIC_BASE_URL"]["fix"] == "rung gateway"
    for address in ("nonsense", "ftp://x", "http://", "http://[", "http://x:99999999"):
        assert diagnose("--service", address)[0] == 1


def test_agents_are_found_with_their_versions(tmp_path: Path) -> None:
    """Agents in PATH are listed with their version; one that hangs or prints nonsense is listed without."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in (
        ("claude", "echo '2.1.9 (Claude Code)'"),
        ("codex", "exec /bin/sleep 60"),
        ("gemini", "exit 3"),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    _, found = diagnose()
    assert found["agents.claude"]["facts"] == {"path": str(folder / "claude"), "version": "2.1.9"}
    assert found["agents.codex"]["facts"]["version"] is None
    assert found["agents.gemini"]["facts"]["version"] is None


def test_hooks_of_this_and_of_another_installation(tmp_path: Path) -> None:
    """Installed hooks are listed; those of an installation that moved are a warning with the command."""
    assert CliRunner().invoke(root, ["hooks", "install", "claude-code"]).exit_code == 0
    settings = tmp_path / "here" / ".claude" / "settings.local.json"
    assert diagnose()[1]["hooks.claude-code"]["state"] == "ok"
    settings.write_text(settings.read_text().replace("/hooks/entry.py", "/gone/entry.py"))
    found = diagnose()[1]["hooks.claude-code"]
    assert (found["state"], found["fix"]) == ("warning", "rung hooks install claude-code")


def test_a_check_that_breaks_or_hangs_hides_no_other() -> None:
    """A check that raises or never ends is a finding of its own; the others are reported."""

    def broken() -> Iterator[DoctorFinding]:
        yield DoctorFinding(name="first", state=State.OK, detail="seen")
        raise ZeroDivisionError("no")

    def hanging() -> Iterator[DoctorFinding]:
        time.sleep(60)
        yield DoctorFinding(name="never", state=State.OK, detail="")

    found = run_checks({"broken": broken, "hanging": hanging}, deadline_seconds=0.2)
    assert [(one.name, one.state) for one in found["broken"]] == [("first", State.OK), ("broken", State.BROKEN)]
    assert [one.state for one in found["hanging"]] == [State.BROKEN]


@pytest.mark.usefixtures("unmeasured_processes")  # coverage needs a working directory
def test_no_home_and_no_working_directory(tmp_path: Path) -> None:
    """Without a home, and in a directory that was deleted, there is still a diagnosis and no traceback."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.environ['HOME'] = '/no/such/home'; os.environ.pop('RUNG_JOURNAL', None); sys.argv = ['rung', 'doctor']; from rung.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Versions" in done.stdout
    assert done.returncode in (0, 1)


def test_the_extras_are_those_of_the_package() -> None:
    """Every extra of the package but `all` is checked."""
    from importlib.metadata import metadata

    names = set(metadata("rung").get_all("Provides-Extra") or ())
    assert names - {"all"} == set(EXTRAS)


def test_the_text_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line but commands and paths is wider than a terminal of 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    lines = CliRunner().invoke(root, ["doctor"]).output.splitlines()
    assert [line for line in lines if len(line) > 60 and "/" not in line and "fix:" not in line] == []
    assert lines[-1] == "All is well."


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gateway]\nprot = 8484\n", "did you mean port"),
        (
            '[gateway.upstreams.x]\nwire = "openai"\nurl = "https://x.example"\nkey_env = "NO_KEY"\n',
            "NO_KEY is not set",
        ),
    ],
)
def test_settings_that_the_gateway_refuses(text: str, named: str, tmp_path: Path) -> None:
    """A file whose [gateway] table would be refused at the start of the gateway is broken."""
    (tmp_path / "here" / "rung.toml").write_text(text)
    done = CliRunner().invoke(root, ["doctor", "--json"], catch_exceptions=False)
    (found,) = [each for each in json.loads(done.output)["findings"] if each["name"] == "rung.toml"]
    assert (done.exit_code, found["state"]) == (1, "broken")
    assert named in found["detail"]


def test_programs_pointed_at_a_closed_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base URL of this machine where nothing answers is broken, and the fix names the variable."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        found = [each for each in findings() if each["name"] == "OPENAI_BASE_URL"]
        assert [each["state"] for each in found] == ["ok"]
    (found_closed,) = [each for each in findings() if each["name"] == "OPENAI_BASE_URL"]
    assert (found_closed["state"], found_closed["fix"]) == ("broken", "unset OPENAI_BASE_URL")
    assert "nothing answers" in found_closed["detail"]


def findings() -> list[dict[str, Any]]:
    done = CliRunner().invoke(root, ["doctor", "--json"], catch_exceptions=False)
    return list(json.loads(done.output)["findings"])
