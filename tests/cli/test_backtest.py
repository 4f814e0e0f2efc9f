"""`rung backtest`: another policy on recorded incidents, with its limits."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import rung
from rung.cli.journal.backtest import command
from rung.core.domain.errors import ConfigError, StoreError
from rung.core.domain.incident import Incident
from rung.core.recovery.backtest import LIMITATIONS
from rung.store import open_journal
from rung.store.queries.incident_replay import ended_incidents
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.backends.port import BackendConnection

BUSY = HttpError(529, "overloaded")
DAY = 86_400.0
NOW = 1_790_000_000.0


def record(path: Path, *script: Any, at: float = NOW, project: str = "", **settings: Any) -> str:
    """Run one recovery into the journal; return the incident's id."""
    clock = FakeClock(at)
    play = Script(*script)

    def attempt(request: rung.Request) -> Any:
        clock.advance(2)
        rung.report_cost(0.25)
        return play(request)

    with open_journal(path, project=project) as journal:
        outcome = rung.recover_sync(
            attempt,
            rung.Request(prompt="do it", model="small"),
            policy=rung.policy("task", report="", **settings),
            journal=journal,
            clock=clock,
            jitter=lambda: 0.5,
            retry_budget=None,
            breakers=rung.BreakerRegistry(),
        )
    return outcome.id


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--journal", str(path)])


def shown(path: Path, *arguments: str) -> str:
    done = run(path, *arguments)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


def table(path: Path, *arguments: str) -> Any:
    return json.loads(shown(path, *arguments, "--json"))


def _execute(sql: str, name: str, connection: BackendConnection) -> None:
    connection.execute(sql, (name,))


def policy_file(folder: Path, text: str) -> str:
    file = folder / "new.toml"
    file.write_text(text)
    return str(file)


def test_the_policy_it_was_recorded_under(path: Path) -> None:
    """Under the recorded ladder nothing differs."""
    record(path, BUSY, "done")
    record(path, "done")  # nothing failed: nothing to try
    out = shown(path, "--policy", "task")
    assert "1 incident with a failure, under task" in out
    assert "the same        1" in out
    assert "no difference in attempts, time or cost" in out
    assert "What would have been different" not in out


def test_what_would_have_been_different(path: Path, tmp_path: Path) -> None:
    """Prints which incidents would have stopped, what that saves and loses, and what is unknown."""
    same = record(path, BUSY, "done")
    stopped = record(path, BUSY, BUSY, BUSY, "done", at=NOW + 60)
    gone_on = record(path, BUSY, at=NOW + 120, attempts=1)
    new = policy_file(tmp_path, "[policy]\nattempts = 2\n")
    out = " ".join(shown(path, "--policy", new).split())
    assert "3 incidents with a failure" in out
    assert "the same 1" in out
    assert "fewer attempts 1; 1 of them recovered, and would not have" in out
    assert "unknown 1; 1 would have continued after the recorded end" in out
    assert "difference 2 attempts fewer, about 7.0 s less, $0.50 less" in out
    assert "2 attempts fewer, partial instead of recovered" in out
    assert "recorded: retried after 1.0 s" in out
    assert all(name in out for name in (stopped, gone_on))
    assert same not in out
    assert all(text in out for text in LIMITATIONS)


def test_as_json(path: Path, tmp_path: Path) -> None:
    """`--json` has every incident, the totals, and the limits."""
    name = record(path, BUSY, BUSY, "done", project="site")
    found = table(
        path, "--policy", policy_file(tmp_path, "[policy]\nescalate_after = 0\nmodels = ['small', 'large']\n")
    )
    assert found["summary"]["unknown"] == 1
    assert found["on_another_ladder"] == 0
    assert found["unreadable"] == []
    assert found["cannot_know"] == list(LIMITATIONS)
    (one,) = found["incidents"]
    assert (one["incident"], one["project"], one["ladder"], one["known"], one["same"]) == (
        name, "site", "task", False, False,
    )  # fmt: skip
    assert one["status"] is None
    assert one["was_status"] == "recovered"
    assert one["point"]["instead"] == "handed over to large"
    assert one["words"] == "would have handed over to large after attempt 1: outcome unknown"


def test_longer_waits_cost_time(path: Path, tmp_path: Path) -> None:
    """Additional time is reported as such."""
    record(path, BUSY, "done", backoff={"base": 1, "jitter": False})
    out = shown(path, "--policy", policy_file(tmp_path, "[policy]\nbackoff = {base = 4, jitter = false}\n"))
    assert "about 3.0 s more" in out
    assert "would have waited 4.0 s instead of 1.0 s" in out


def test_another_ladder_and_another_end(path: Path, tmp_path: Path) -> None:
    """Incidents of another ladder are replayed, and their number is printed."""
    record(path, BUSY, attempts=1)
    out = shown(path, "--policy", policy_file(tmp_path, '[policy]\nladder = "call"\nattempts = 1\n'))
    assert "another end     1" in out
    assert "1 incident used another ladder." in out
    assert "as many attempts, failed instead of partial" in " ".join(out.split())


def test_narrowed(path: Path, tmp_path: Path) -> None:
    """`--project` and `--since` filter, and a project's table applies to its incidents."""
    old = record(path, BUSY, BUSY, "done", project="site", at=NOW - 9 * DAY)
    new = record(path, BUSY, BUSY, "done", project="site")
    other = record(path, BUSY, BUSY, "done", project="other")
    file = policy_file(tmp_path, "[projects.site]\nattempts = 1\n")
    words = {one["incident"]: one["words"] for one in table(path, "--policy", file)["incidents"]}
    assert set(words) == {old, new, other}
    assert words[other] == "the same"
    assert "stopped" in words[new]
    only = table(path, "--policy", file, "--project", "site", "--since", "2026-09-16")["incidents"]
    assert [one["incident"] for one in only] == [new]
    assert "No closed incident with a failure." in shown(path, "--policy", file, "--project", "none")


def test_a_limit(path: Path, tmp_path: Path) -> None:
    """`--limit` prints the latest, and the number of the others."""
    names = [record(path, BUSY, "done", at=NOW + n) for n in range(3)]
    file = policy_file(tmp_path, "[policy]\nattempts = 1\n")
    out = shown(path, "--policy", file, "--limit", "1")
    assert names[2] in out
    assert names[0] not in out
    assert "… and 2 earlier (--limit)" in out
    assert "What would have been different" not in shown(path, "--policy", file, "--limit", "0")


def test_more_incidents_than_a_page(path: Path) -> None:
    """Events are read in pages without losing any."""
    names = [record(path, BUSY, "done", at=NOW + n) for n in range(5)]
    with open_journal(path) as journal:
        found = [Incident.of(events).id for events in ended_incidents(journal, [], page_size=2)]
    assert found == names


def test_what_cannot_be_read_is_left_out_and_said(path: Path) -> None:
    """Incidents with missing, truncated or unknown events are skipped; the others are replayed."""
    gone, late, newer, fine = (record(path, BUSY, "done", at=NOW + n) for n in range(4))
    with open_journal(path) as journal:
        for sql, name in (
            ("DELETE FROM event WHERE incident = ?", gone),
            ("DELETE FROM event WHERE n = 0 AND incident = ?", late),
            ("UPDATE event SET body = '{\"v\": 99}' WHERE n = 0 AND incident = ?", newer),
        ):
            journal.write(partial(_execute, sql, name), lambda _: False).result()
    found = table(path, "--policy", "task")
    assert found["unreadable"] == [gone, late, newer]
    assert [one["incident"] for one in found["incidents"]] == [fine]
    assert "3 incidents could not be read and are skipped." in shown(path, "--policy", "task")


def test_misuse(path: Path, tmp_path: Path) -> None:
    """A missing journal, an unknown policy or an invalid time is a one-line error; no journal is created."""
    assert isinstance(run(path, "--policy", "task").exception, StoreError)
    assert not path.exists()
    wrong = run(path, "--policy", "tsk").exception
    assert isinstance(wrong, ConfigError)
    assert "did you mean task" in str(wrong)
    assert isinstance(run(path, "--policy", str(tmp_path / "none.toml")).exception, ConfigError)
    assert "must be an age" in run(path, "--policy", "task", "--since", "soon").output
    assert "--policy" in run(path).output


GAVE_UP = rung.AttemptError("cannot do it", finding="gave_up")


def flat(path: Path, *arguments: str) -> str:
    """The output on one line, however wide the terminal is."""
    return " ".join(shown(path, *arguments).split())


def nudges_in_vain(path: Path, count: int, project: str = "") -> None:
    """Record incidents in which only the third try of the ladder, a new plan, helps."""
    for n in range(count):
        record(path, *[GAVE_UP] * (4 if n % 3 else 5), "done", at=NOW + n, project=project, models=["small", "large"])


def test_suggest_says_when_there_is_too_little_data(path: Path) -> None:
    """With few incidents nothing is suggested, and the number that is needed is told."""
    nudges_in_vain(path, 12)
    out = flat(path, "--suggest")
    assert "12 incidents with a try of a rung; at least 30 are needed. No suggestion." in out
    found = table(path, "--suggest")
    assert (found["incidents"], found["needed"], found["enough"], found["toml"]) == (12, 30, False, "")


def test_suggest_a_fragment_that_a_policy_file_can_have(path: Path, tmp_path: Path) -> None:
    """The printed fragment is a policy file; a backtest of it tells what is known of it."""
    nudges_in_vain(path, 36)
    out = flat(path, "--suggest")
    assert "36 incidents with a try of a rung, compared with task." in out
    assert "entry of gave_up: replan (was nudge)" in out
    assert "left out: 0 of 108 tries succeeded (0 to 3 %); replan: 24 of 36 tries succeeded" in out
    assert "would have saved 108 attempts (103 to 108), " in out
    assert "rests on 36 incidents" in out
    assert "Rungs that were not tried have no data" in out
    found = table(path, "--suggest")
    assert found["toml"] == '[policy.entry]\ngave_up = "replan"\n'
    assert found["toml"] in shown(path, "--suggest")
    (change,) = found["changes"]
    assert (change["setting"], change["key"], change["value"], change["project"]) == ("entry", "gave_up", "replan", "")
    assert change["saving"]["dollars"]["expected"] == pytest.approx(27)
    assert change["left_out"]["tried"] == 108
    tried = table(path, "--policy", policy_file(tmp_path, found["toml"]))
    assert tried["summary"]["unknown"] == 36  # other attempts than those recorded


def test_suggest_for_a_project_a_file_and_a_time(path: Path, tmp_path: Path) -> None:
    """The filters hold: a project gets a table of its own, and a policy file that has the change is left as it is."""
    nudges_in_vain(path, 31, "shop")
    found = table(path, "--suggest", "--project", "shop")
    assert found["toml"] == '[projects.shop.entry]\ngave_up = "replan"\n'
    assert table(path, "--suggest", "--project", "shop", "--since", "2030-01-01")["incidents"] == 0
    changed = policy_file(tmp_path, found["toml"])
    assert "No change is suggested" in flat(path, "--suggest", "--project", "shop", "--policy", changed)
    assert table(path, "--suggest", "--policy", "call")["on_another_ladder"] == 31


def test_suggest_on_another_ladder(path: Path) -> None:
    """Without a policy the ladder of most incidents is compared, and the fragment names it; hopeless kinds are told."""
    clock = FakeClock(NOW)
    with open_journal(path) as journal:
        for _ in range(33):
            play = Script(*[BUSY] * 9)
            rung.recover_sync(
                play, "do it", policy=rung.policy("call", patience=0), journal=journal, clock=clock, retry_budget=None,
                breakers=rung.BreakerRegistry(),
            )  # fmt: skip
    record(path, GAVE_UP, "done")
    out = flat(path, "--suggest")
    assert "33 incidents with a try of a rung, compared with call; 1 incident used another ladder." in out
    assert '[policy] ladder = "call" [policy.tries] retry = 1' in out
    assert "Never fixed: overloaded, 33 incidents, 99 attempts after it" in out


def test_suggest_lists_what_it_cannot_read(path: Path) -> None:
    """Incidents of a newer version are counted, and kinds with few incidents named."""
    nudges_in_vain(path, 31)
    other = record(path, BUSY, "done", at=NOW + 900)
    broken = record(path, BUSY, "done", at=NOW + 901)
    with open_journal(path) as journal:
        journal.write(
            partial(_execute, "UPDATE event SET body = '{}' WHERE incident = ?", broken), lambda _: False
        ).result()
    out = flat(path, "--suggest")
    assert "1 incident could not be read." in out
    assert "Too little data for overloaded (1 incident); at least 30 are needed." in out
    assert other != broken


def test_a_policy_or_a_suggestion_is_needed(path: Path) -> None:
    """Without either there is nothing to try."""
    done = run(path)
    assert done.exit_code == 2
    assert "Missing option '--policy' (or '--suggest')" in done.output
