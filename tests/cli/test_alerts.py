"""`rung alerts`: checks, lists, tests, silences and shows the history, with one line for what is wrong."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.core.alerts.evaluation import Reading
from rung.store.alerts.states import record
from rung.testing import HttpError
from rung.wiring import trust
from rung.wiring.journals import journal as open_default
from rung.wiring.settings_file import named
from tests.store.recorded import Recorded

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

FILE = """
[alerts.channels.log]
type = "command"
run = ["tee", "{out}"]
[alerts.channels.bad]
type = "command"
run = ["false"]
[alerts.rules.failing]
when = "failure_rate"
threshold = 0.2
channels = ["log"]
[alerts.rules.quiet]
when = "cost"
threshold = 5
[alerts.rules.broken]
when = "stuck"
threshold = 1
channels = ["log", "bad"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "alerts.toml"
    path.write_text(FILE.replace("{out}", str(tmp_path / "out.json")))
    return str(path)


def alerts(*words: str) -> Result:
    """Run `rung alerts WORDS`."""
    return CliRunner().invoke(root, ["alerts", *words])


def as_json(*words: str) -> Any:
    """Run a command with --json; return the one object that it prints."""
    done = alerts(*words, "--json")
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.output)


def test_check_says_what_is_watched(file: str) -> None:
    """A valid file is summed up rule by rule; nothing is sent."""
    done = alerts("check", file)
    assert done.exit_code == 0
    assert "failing: at failure_rate >= 20 %, window 15 min -> log" in done.output
    assert "quiet: at cost >= $5.00, window 1 d -> history only" in done.output
    assert "3 rules, 2 channels: valid" in done.output
    assert as_json("check", file)["rules"] == ["failing", "quiet", "broken"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[alerts.rules.r]\nwhen = 'cots'\nthreshold = 1\n", "alerts.rules.r.when: 'cots' is invalid; must be one of"),
        ("[alerts.channels.c]\ntype = 'slack'\nurl_env = 'NOT_SET_ANYWHERE'\n", "an environment variable that is set"),
        ("[alert]\n", "file.alert"),
    ],
)
def test_check_names_what_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    """An invalid file is one line on standard error with the key and what is allowed, and exit code 2."""
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    done = alerts("check", str(path))
    assert (done.exit_code, told in done.output, done.output.count("\n")) == (2, True, 1), done.output


def test_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file there is nothing to check, which is said in one line."""
    monkeypatch.chdir(tmp_path)
    assert "there is no rung.toml in this directory" in alerts("check").output
    assert alerts("check", "none.toml").exit_code == 2


def test_a_test_is_sent_and_recorded(file: str, tmp_path: Path) -> None:
    """The channel gets a test, and the history says so."""
    done = alerts("test", "failing", "--config", file)
    assert (done.exit_code, done.output) == (0, "log: sent\n")
    assert json.loads((tmp_path / "out.json").read_text())["event"] == "test"
    (entry,) = as_json("history")["entries"]
    assert (entry["event"], entry["deliveries"][0]["channel"]) == ("test", "log")
    assert "Test: failing" in alerts("history", "--rule", "failing").output
    assert alerts("history", "--rule", "other").output == "No alert has fired.\n"


def test_a_channel_that_refuses_is_told(file: str) -> None:
    """A test that one channel did not accept names it and exits with 1; the others got it."""
    done = alerts("test", "broken", "--config", file)
    assert done.exit_code == 1
    assert "log: sent\nbad: not sent: RuntimeError: exit code 1" in done.output
    assert "no channels" in alerts("test", "quiet", "--config", file).output
    assert "did you mean failing?" in alerts("test", "failin", "--config", file).output


def test_list_shows_state_and_figure(file: str) -> None:
    """Each rule is shown with its state and its value now, also when it is silenced."""
    assert "ok           failing: 0 % now; fires at failure_rate >= 20 %" in alerts("list", "--config", file).output
    assert "silenced until" in alerts("silence", "failing", "--minutes", "5", "--config", file).output
    rules = {one["name"]: one for one in as_json("list", "--config", file)["rules"]}
    assert rules["failing"]["silenced_until"]
    assert rules["quiet"]["silenced_until"] is None
    first, second, _ = alerts("list", "--config", file).output.splitlines()
    assert "; silenced until 2" in first
    assert "silenced" not in second
    assert "no longer" in alerts("silence", "failing", "--minutes", "0", "--config", file).output


def test_list_says_that_an_alert_is_cooling_down(tmp_path: Path) -> None:
    """A rule that is over its threshold within its cooldown is not shown as ok, and the line says when it may fire again."""
    path = tmp_path / "rested.toml"
    path.write_text("[alerts.rules.rested]\nwhen = 'failure_rate'\nthreshold = 0.5\nminimum = 2\n")
    settings = named(path).alerts()
    assert settings is not None
    with open_default(None) as journal:
        for value in (1.0, 0.0):  # it fires and is resolved
            record(journal, settings.rules["rested"], settings, Reading(value), now=None)
        recorded = Recorded(journal)
        recorded.clock.time = time.time() - 60
        recorded.recover(HttpError(529, "overloaded"), HttpError(529, "overloaded"), "fine")
    line = alerts("list", "--config", str(path)).output
    assert line.startswith("cooling down rested: 66.7 % now;"), line
    assert "; over the threshold, may fire again at 2" in line


def test_alerts_of_a_file_that_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rung alerts list` names the file and the command that trusts it, whether it is undecided or denied."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rung.toml"
    path.write_text("[alerts.rules.r]\nwhen = 'cost'\nthreshold = 5\n")
    undecided = alerts("list")
    assert (undecided.exit_code, f"rung trust {path}" in undecided.output) == (2, True), undecided.output
    trust.decide(path, path.read_bytes(), trust.Decision.DENIED)
    assert alerts("list").output.startswith(f"Alerts are off: {path} is denied")
    trust.decide(path, path.read_bytes(), trust.Decision.TRUSTED)
    assert alerts("list").output.startswith("ok           r:")
