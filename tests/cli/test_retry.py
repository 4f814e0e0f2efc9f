"""`rung retry` and `rung escalate`: real processes on a real journal, and through a real service."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import anthropic
import pytest

import rung
from rung.cli.run.recorded_command import BackgroundCommands
from rung.core.domain.events import Ordered
from rung.service.manual_retry import ManualRetries
from rung.service.replay import Replayers
from rung.service.retry_ways import RetryChoice
from rung.testing import HttpError, Script
from rung.testing.provider import Lab
from rung.wiring.policies import PolicyStore, file_book
from tests.trusting import write_trusted
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung"]
# Fails until the file `good` exists; then it says what it was given.
AGENT = """
cat > given
if [ -e good ]; then cat given; exit 0; fi
echo "ValueError: the widget is upside down" >&2
exit 7
"""
TASK = "turn the widget, with the password=hunter2-hunter2"
MODELS = [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.1}]


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("RUNG_JOURNAL", str(tmp_path / "j.db"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.sh").write_text(AGENT)


def call(*words: str, given: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **env}
    return subprocess.run(
        [*RUNG, *words], input=given, capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def failed_run(*options: str, **env: str) -> str:
    """Run a command that fails; return its session."""
    done = call("run", "--retries", "0", "--max-attempts", "1", *options, "--", "sh", "agent.sh", given=TASK, **env)
    assert done.returncode not in (0, 2), done.stderr
    with rung.journal() as journal:
        ((session,),) = journal.read("SELECT id FROM session ORDER BY touched_at DESC LIMIT 1")
    return str(session)


def test_a_command_runs_again_with_its_error(tmp_path: Path) -> None:
    """It runs in its directory, with its whole input and the error before it; the exit code and the output are its own."""
    session = failed_run()
    (tmp_path / "good").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    done = call("retry", session)
    assert done.returncode == 0, done.stderr
    assert "the widget is upside down" in done.stdout
    assert done.stdout.rstrip().endswith(TASK)
    with rung.journal() as journal:
        ((incidents, status),) = journal.read("SELECT incidents, status FROM session WHERE id = ?", (session,))
        assert (incidents, status) == (2, "succeeded")
        ((name,),) = journal.read("SELECT id FROM incident WHERE id LIKE 'again-%'")
        assert any(isinstance(event, Ordered) and "(rung)" in event.by for event in journal.events(name))


def test_it_fails_again_and_is_retried_again(tmp_path: Path) -> None:
    """A retry that fails has the exit code of the run, and can be retried; the error stands in its prompt once."""
    session = failed_run()
    again = call("retry", session)
    assert again.returncode == 3, again.stderr
    (tmp_path / "good").touch()
    done = call("retry", session, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["how"], found["ok"], found["session"]) == ("run", True, session)
    assert found["result"].count("attempt") == 1
    assert found["result"].count("turn the widget") == 1


@pytest.mark.parametrize(
    ("options", "env", "reason"),
    [
        ((), {"RUNG_RECORDING": "off"}, "the command was not recorded"),
        (("--policy", "off.toml"), {}, "the command was not recorded"),
    ],
)
def test_without_recording(tmp_path: Path, options: tuple[str, ...], env: dict[str, str], reason: str) -> None:
    """With recording off nothing is kept, and a retry is refused with the reason."""
    (tmp_path / "off.toml").write_text("[recording]\nrequests = false\n")
    session = failed_run(*options, **env)
    refused = call("retry", session)
    assert refused.returncode == 4
    assert reason in refused.stderr


def test_what_cannot_be_run_again_says_why(tmp_path: Path) -> None:
    """Its directory is gone, it names its model itself, or it ran elsewhere: the reason, and what to do."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(tmp_path / "agent.sh", work)
    os.chdir(work)
    session = failed_run()
    os.chdir(tmp_path)
    refused = call("retry", session, "--model", "large", "--yes")
    assert (refused.returncode, "without {model}" in refused.stderr) == (4, True)
    shutil.rmtree(work)
    refused = call("retry", session)
    assert (refused.returncode, "no longer exists" in refused.stderr) == (4, True)


PIPELINE = """
[pipeline]
name = "p"
[policy]
attempts = 1
[[stage]]
id = "plan"
prompt = "plan it"
command = ["sh", "-c", "echo ran >> planned; echo 'PASS|files:0'"]
[[stage]]
id = "build"
prompt = "turn the widget, with the password=hunter2-hunter2"
depends_on = ["plan"]
command = ["sh", "agent.sh"]
"""


def failed_stage(folder: Path, *options: str, **env: str) -> str:
    """Run a pipeline whose second stage fails; return the session of that stage."""
    (folder / "pipe.toml").write_text(PIPELINE)
    done = call("pipeline", "run", "pipe.toml", *options, **env)
    assert done.returncode not in (0, 2), done.stderr
    with rung.journal(folder / "j.db") as journal:
        ((session,),) = journal.read("SELECT session FROM incident WHERE id LIKE '%/build'", ())
    return str(session)


@pytest.mark.parametrize("options", [(), ("--run-id", "p-7")])
def test_a_stage_of_a_pipeline_is_tried_again(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The run is resumed with the stage's error in its prompt; a stage that has passed does not run again."""
    session = failed_stage(tmp_path, *options)
    again = call("retry", session)
    assert again.returncode not in (0, 2), again.stderr
    (tmp_path / "good").touch()
    done = call("retry", session)
    assert done.returncode == 0, done.stderr
    given = (tmp_path / "given").read_text()
    assert "the widget is upside down" in given
    assert TASK in given
    assert (tmp_path / "planned").read_text() == "ran\n"
    with rung.journal(tmp_path / "j.db") as journal:
        rows = journal.read("SELECT id, session, status FROM incident WHERE id LIKE '%/build%' ORDER BY id")
    assert [(name.rpartition("/")[2], which) for name, which, _ in rows] == [
        ("build", session), ("build~2", session), ("build~3", session),
    ]  # fmt: skip
    assert rows[-1][2] == "succeeded"


def test_a_service_tries_a_stage_again(tmp_path: Path) -> None:
    """With leave to run commands, a service resumes the pipeline; the incident it names is the stage's new run."""
    session = failed_stage(tmp_path, "--run-id", "p-7")
    (tmp_path / "good").touch()
    with rung.journal() as journal:
        runner = BackgroundCommands(journal, str(tmp_path / "j.db"))
        retries = ManualRetries(journal, PolicyStore(journal, file_book()), Replayers(journal, runner=runner))
        choice = RetryChoice("context")
        name = retries.carry_out(retries.plan(session, choice, "ada"), choice)
        assert name == "p-7/build~2"
        rows = wait_until(lambda: journal.read("SELECT status FROM incident WHERE id = ? AND ended_at > 0", (name,)))
    assert rows == [("succeeded",)]


def test_a_stage_that_was_not_recorded_says_how_it_is_tried_again(tmp_path: Path) -> None:
    """A stage is never sent to a model without its agent: the refusal names the command that resumes its run."""
    session = failed_stage(tmp_path, "--run-id", "p-7", RUNG_RECORDING="off")
    refused = call("retry", session, ANTHROPIC_API_KEY="sk-ant-of-the-service")
    assert refused.returncode == 4
    assert "rung pipeline run FILE --resume p-7" in refused.stderr
    (tmp_path / "good").touch()
    assert call("pipeline", "run", "pipe.toml", "--resume", "p-7").returncode == 0


def test_wrong_usage() -> None:
    """No such session, a mode without what it needs, a variable that is not set: exit code 2, and which."""
    session = failed_run()
    for words, reason in (
        (("retry", "none"), "there is no session 'none'"),
        (("escalate", "none", "--to", "x"), "there is no session 'none'"),
        (("retry", session, "--mode", "model"), "--model"),
        (("retry", session, "--mode", "prompt"), "--prompt"),
        (("retry", session, "--api-key-env", "NOT_SET"), "NOT_SET"),
        (("retry", session, "--service", "ftp://x", "--token", "t"), "--service"),
        (("retry", session, "--service", "http://127.0.0.1:9"), "--token"),
        (("retry", session, "--service", "http://127.0.0.1:9", "--token", "t"), "can be reached"),
    ):
        done = call(*words)
        assert (done.returncode, reason in done.stderr) == (2, True), (words, done.stderr)


def test_a_service_runs_a_command_only_where_it_may(tmp_path: Path) -> None:
    """Without leave it shows the command to type; with leave, the command runs as a process of its own."""
    session = failed_run()
    (tmp_path / "good").touch()
    with rung.journal() as journal:
        policies = PolicyStore(journal, file_book())
        closed = ManualRetries(journal, policies, Replayers(journal))
        incident, _ = closed.incident(session)
        why_not = closed.replayers.why_not(incident)
        assert "--run-commands" in why_not
        assert f"rung retry {session}" in why_not
        runner = BackgroundCommands(journal, str(tmp_path / "j.db"))
        open_ = ManualRetries(journal, policies, Replayers(journal, runner=runner))
        choice = RetryChoice("context")
        name = open_.carry_out(open_.plan(session, choice, "ada"), choice)
        rows = wait_until(lambda: journal.read("SELECT status FROM incident WHERE id = ? AND ended_at > 0", (name,)))
        assert rows == [("succeeded",)]
    assert "upside down" in (tmp_path / "given").read_text()


def test_an_order_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """A process that is told to make a run again without an order does nothing."""
    refused = call("run", "--", "sh", "agent.sh", RUNG_RETRY="again-none")
    assert refused.returncode == 2
    assert "there is no such order" in refused.stderr
    assert not (tmp_path / "given").exists()


def trusted(folder: Path) -> None:
    """A settings file of the user's own, with the costs of two models."""
    models = '[policy]\nmodels = [{ name = "small", cost = 0.01 }, { name = "large", cost = 0.1 }]\n'
    write_trusted(folder / "rung.toml", models)


def library_session(name: str, model: str = "small") -> None:
    with rung.journal() as journal:
        rung.recover_sync(
            Script(HttpError(401, "invalid x-api-key")),
            rung.Request(prompt="count to 4 as apple", model=model),
            policy=rung.policy("model", models=MODELS, report=""),
            journal=journal,
            session=rung.Session(model, name),
        )


def test_a_session_of_a_program_is_retried_on_a_dearer_model(tmp_path: Path) -> None:
    """The estimate is shown and must be confirmed; the call is made by a client with the key of the environment."""
    trusted(tmp_path)
    library_session("s-1")
    with Lab() as lab:
        keys = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": lab.url}
        asked = call("retry", "s-1", "--model", "large", **keys)
        assert asked.returncode == 4
        assert "about $0.10 per call, $0.09 more than on small" in asked.stderr
        assert "--yes" in asked.stderr
        assert not lab.calls
        done = call("retry", "s-1", "--mode", "context", "--model", "large", "--yes", "--json", **keys)
        assert done.returncode == 0, done.stderr
        assert lab.calls[-1].model == "large"
        assert "invalid x-api-key" in str(lab.calls[-1].json)
    found = json.loads(done.stdout)
    assert (found["ok"], found["result"], found["cost_estimate"]) == (True, "apple1 apple2 apple3 apple4", 0.1)
    with rung.journal() as journal:
        ((dollars,),) = journal.read("SELECT dollars FROM session WHERE id = 's-1'")
    assert dollars == pytest.approx(0.1)


def test_escalate(tmp_path: Path) -> None:
    """The estimate first, then the switch, which holds for the next call and is on record."""
    trusted(tmp_path)
    library_session("s-1")
    asked = call("escalate", "s-1")
    assert asked.returncode == 4
    assert "large: about $0.10 per call" in asked.stderr
    done = call("escalate", "s-1", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["to_model"] == "large"
    with rung.journal() as journal:
        assert journal.model_for("s-1") == "large"
    assert call("escalate", "s-1", "--to", "huge", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("words", "reason", "result"),
    [
        (("retry", "s-1", "--model", "large"), "no client for large", {"how": "refused", "ok": False, "result": None}),
        (("retry", "s-1", "--yes"), "no client for small", {"how": "refused", "ok": False, "result": None}),
        (("escalate", "s-1", "--to", "large"), "--yes", {"done": False}),
    ],
)
def test_a_refusal_is_a_json_object_too(
    words: tuple[str, ...], reason: str, result: dict[str, Any], tmp_path: Path
) -> None:
    """With --json a refusal prints one object with the reason, exit code 4, and the line on stderr stays."""
    trusted(tmp_path)
    library_session("s-1")
    done = call(*words, "--json")
    assert done.returncode == 4
    printed = json.loads(done.stdout)
    assert reason in printed.pop("reason")
    assert printed == {"session": "s-1", **result}
    assert reason in done.stderr


class Served(NamedTuple):
    """Addresses of a service and of its gateway."""

    service: str
    gateway: str


@contextmanager
def serving() -> Iterator[Served]:
    """A real `rung serve` with its gateway, which may run commands."""
    process = subprocess.Popen(
        [*RUNG, "serve", "--port", "0", "--gateway-port", "0", "--run-commands", "--token", "t" * 32],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        service = process.stdout.readline().split()[3].partition("?")[0]
        gateway = next(line for line in process.stdout if "gateway:" in line)
        yield Served(service, re.findall(r"ANTHROPIC_BASE_URL=(\S+)", gateway)[0])
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Address of a service."""
    with serving() as addresses:
        yield addresses.service


def test_a_missing_key_names_the_option(tmp_path: Path) -> None:
    """Where the client used its own key, the refusal names the option of the command, not the field of the API."""
    with Lab([{"fault": "bad_request"}]) as lab:
        write_trusted(tmp_path / "rung.toml", f'[gateway.upstreams.claude]\nwire = "anthropic"\nurl = "{lab.url}"\n')
        with serving() as addresses, anthropic.Anthropic(api_key="sk-client", base_url=addresses.gateway) as client:
            told: Any = [{"role": "user", "content": "hello"}]
            with pytest.raises(anthropic.BadRequestError):
                client.messages.create(
                    model="m", max_tokens=9, messages=told, extra_headers={"x-rung-session": "s-2"}, timeout=60
                )
            with rung.journal() as journal:  # the gateway says that it takes orders
                wait_until(lambda: journal.read("SELECT 1 FROM message WHERE topic LIKE 'replayer/%'"))
            for there in ((), ("--service", addresses.service, "--token", "t" * 32)):
                done = call("retry", "s-2", *there)
                assert done.returncode == 4, done.stderr
                assert "--api-key-env: the client used its own key" in done.stderr
                assert "apiKey" not in done.stderr


def test_through_a_service(tmp_path: Path, served: str) -> None:
    """With its address and a token, retry and escalate act through the service: estimate, confirmation, result."""
    session = failed_run()
    (tmp_path / "good").touch()
    there = ("--service", served, "--token", "t" * 32)
    done = call("retry", session, *there, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"]
    assert "upside down" in (tmp_path / "given").read_text()
    assert call("retry", session, "--service", served, "--token", "wrong").returncode == 4
    library_session("s-1")
    asked = call("escalate", "s-1", "--to", "large", "--json", *there)
    assert (asked.returncode, "--yes" in asked.stderr) == (4, True)
    assert "--yes" in json.loads(asked.stdout)["reason"]
    assert call("escalate", "s-1", "--to", "large", "--yes", *there).returncode == 0
    with rung.journal() as journal:
        assert journal.model_for("s-1") == "large"
