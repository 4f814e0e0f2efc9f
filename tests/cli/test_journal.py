"""`rung report`, `log`, `show` and `journal`: reports over real recoveries, as text and as JSON."""

from __future__ import annotations

import csv
import io
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rung.cli.group import root
from rung.core.domain import events as ev
from rung.core.policy.call_costs import SessionUsage
from rung.store import open_journal
from rung.store.queries.groups import groups, resolve
from rung.store.session_usage import add_usage
from rung.testing import HttpError
from rung.wiring.journals import default_path, journal_path
from tests.store.recorded import DAY, NO_IDEA, START, Recorded
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORTS = ("overview", "failures", "success", "recovery", "rungs", "messages", "models", "latency", "spirals")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def good(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments: str) -> str:
    """Return the one-line error of a command that fails with exit code 2."""
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    line, end = done.stderr.split("\n", 1)
    assert end == ""
    return line


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    path = tmp_path / "journal.db"
    monkeypatch.setenv("RUNG_JOURNAL", str(path))
    with open_journal(path) as journal:
        made = Recorded(journal)
        made.story()
        yield made


# -- report ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("filters", [(), ("--project", "web"), ("--since", "2027-01-16")], ids=str)
def test_every_report_fits_eighty_columns(recorded: Recorded, name: str, filters: tuple[str, ...]) -> None:
    """No line of a report is wider than the terminal; each report has a title."""
    shown = good("report", name, *filters)
    assert shown.startswith(name)
    assert len(shown.splitlines()) >= 2
    assert max(map(len, shown.splitlines())) <= 80


def test_the_overview_says_how_it_stands(recorded: Recorded) -> None:
    """The overview has attempts, incidents, failures, rungs and messages."""
    tried = list(recorded.tried())
    failed = [attempt for attempt in tried if attempt.kind]
    shown = good("report")
    assert f"{len(tried)}, of which {len(failed)} failed ({100 * len(failed) / len(tried):.1f} %)" in shown
    recovered = sum(outcome.status == "recovered" for outcome in recorded.outcomes)
    assert f"recovered  {recovered} (" in shown
    assert "1 question asked" in shown
    for heading in ("Failures", "Models", "Rungs", "Most frequent messages"):
        assert heading in shown


def test_failures_have_a_line_over_time(recorded: Recorded) -> None:
    """Each kind has a sparkline whose tallest block is its worst day."""
    row = next(line for line in good("report", "failures").splitlines() if line.startswith("unknown"))
    assert row.rstrip().endswith("█")


def test_a_report_as_json_is_what_the_library_says(recorded: Recorded) -> None:
    """`--json` is one object: the filter, and rows with their rate."""
    table = json.loads(good("report", "failures", "--by", "model", "--project", "web", "--json"))
    assert table["filter"] == {"project": "web"}
    web = [attempt for attempt in recorded.tried() if attempt.project == "web"]
    small = [attempt for attempt in web if attempt.model == "small"]
    row = next(row for row in table["rows"] if row["key"] == "small")
    failures = sum(bool(attempt.kind) for attempt in small)
    assert (row["attempts"], row["failures"], row["rate"]) == (len(small), failures, round(failures / len(small), 9))


def test_json_and_csv_hold_every_report(recorded: Recorded) -> None:
    """Each report has the same rows as JSON and as CSV."""
    for name in REPORTS:
        parts = json.loads(good("report", name, "--json"))
        first = parts["totals" if name == "overview" else "rows"]
        rows = list(csv.DictReader(io.StringIO(good("report", name, "--csv"))))
        assert [list(row) for row in rows] == [list(row) for row in first], name
        assert len(rows) == len(first) >= 1, name
    assert len(json.loads(good("report", "rungs", "--json", "--limit", "2"))["rows"]) == 2
    days = json.loads(good("report", "failures", "--by", "day", "--json", "-n", "1"))["rows"]
    assert [row["key"] for row in days] == ["2027-01-17"]


def test_the_state_of_a_message_is_shown(recorded: Recorded) -> None:
    """A resolved message that occurs again is a regression."""
    group = next(g for g in groups(recorded.journal, now=START, project="api") if g.kind == "unknown")
    resolve(recorded.journal, group, now=recorded.clock.now())
    assert "resolved" in good("report", "messages")
    recorded.recover(NO_IDEA, "fine")
    assert "regression" in good("report", "messages")


def test_nothing_recorded_is_said(recorded: Recorded) -> None:
    """A report without rows prints a text instead of an empty table."""
    for name in REPORTS:
        assert "Nothing" in (shown := good("report", name, "--project", "none")) or "No " in shown
        assert good("report", name, "--project", "none", "--csv").count("\n") <= (5 if name == "success" else 2)


def test_wrong_reports(recorded: Recorded) -> None:
    """An invalid report, time or filter is a one-line error; exit code 2."""
    assert "did you mean failures?" in refused("report", "failurs")
    assert "session: 'a' is invalid; must be omitted" in refused("report", "latency", "--session", "a")
    assert "until" in refused("report", "--since", "2027-01-02", "--until", "2027-01-01")
    for arguments in (("--since", "yesterday"), ("recovery", "--by", "kind"), ("--limit", "0")):
        done = run("report", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")


def test_json_reports_stay_light(recorded: Recorded) -> None:
    """A report for a program imports neither Rich nor asyncio."""
    code = "import sys; from rung.cli.group import root; root(['report', '--json'], standalone_mode=False)"
    code += "; sys.stderr.write(' '.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"rich", "asyncio"}.isdisjoint(done.stderr.split())


# -- log ------------------------------------------------------------------------------------------------


def entries(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in good("log", "--json", *arguments).splitlines()]


def test_the_log_is_every_event_in_order(recorded: Recorded) -> None:
    """Each event is one line, the latest last; the limit keeps the latest."""
    events = [(o.id, n) for o in recorded.outcomes for n in range(len(o.events))]
    assert [(entry["incident"], entry["n"]) for entry in entries("-n", "1000")] == events
    assert [(entry["incident"], entry["n"]) for entry in entries("-n", "3")] == events[-3:]
    assert entries("-n", "0") == []
    lines = good("log", "-n", "1000").splitlines()
    assert len([line for line in lines if not line.startswith("──")]) == len(events)
    assert len([line for line in lines if line.startswith("──")]) == 3


def test_a_line_says_what_happened(recorded: Recorded) -> None:
    """A line has time, incident, mark and text; an attempt has its number and duration, a rung its name."""
    first = next(o for o in recorded.outcomes if o.attempts == 2).id
    lines = [line for line in good("log", "-n", "1000").splitlines() if first in line]
    assert [line.partition(first)[2].split(None, 1)[1] for line in lines] == [
        "opened       ladder task, small",
        "attempt 1    rate_limit: slow down (2.0 s)",
        "retry        again in 500 ms",
        "attempt 2    good (2.0 s)",
    ]
    assert lines[1].startswith("08:00:0")


def test_the_log_is_narrowed(recorded: Recorded) -> None:
    """The log filters by project, session and kind of failure."""
    ids = {o.id for o in recorded.outcomes if any("rate_limit" in str(e) for e in o.events)}
    assert {entry["incident"] for entry in entries("-n", "1000", "--kind", "rate_limit")} == ids
    terms = {o.id: o.events[0].terms for o in recorded.outcomes if isinstance(o.events[0], ev.Opened)}
    for name in ("project", "session"):
        value = getattr(terms[recorded.outcomes[-1].id], name)
        chosen = {i for i, t in terms.items() if getattr(t, name) == value}
        assert {entry["incident"] for entry in entries("-n", "1000", f"--{name}", value)} == chosen
    assert "did you mean rate_limit" in refused("log", "--kind", "rate_limits")


@pytest.mark.usefixtures("unmeasured_processes")
def test_follow_shows_what_comes(recorded: Recorded) -> None:
    """`-f` prints events that another process writes, until Ctrl-C."""
    command = [sys.executable, "-m", "rung", "log", "-f", "-n", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        last = json.loads(following.stdout.readline())
        assert last["incident"] == recorded.outcomes[-1].id
        recorded.recover("fine")
        new = [json.loads(following.stdout.readline()) for _ in range(2)]
        assert [entry["name"] for entry in new] == ["opened", "attempt_succeeded"]
        assert {entry["incident"] for entry in new} == {recorded.outcomes[-1].id}
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0


def test_an_event_of_a_newer_rung_does_not_stop_the_log(recorded: Recorded) -> None:
    """An unknown event is printed by name, and the other events are printed."""
    incident = recorded.outcomes[0].id
    body = json.dumps({"v": 1, "name": "levitated", "at": START})
    recorded.journal.write(
        lambda connection: connection.execute(
            "INSERT INTO event (incident, n, at, name, body) VALUES (?, 99, ?, 'levitated', ?)", (incident, START, body)
        ),
        lambda _: False,
    ).result()
    assert "levitated    cannot be read by this version of Rung" in good("log", "-n", "1")
    assert "levitated" in good("show", incident)


# -- show -----------------------------------------------------------------------------------------------


def test_show_tells_the_whole_climb(recorded: Recorded) -> None:
    """`rung show` prints the evidence, the rule, decisions, changes, waits, cost and the end."""
    incident = next(o for o in recorded.outcomes if any(isinstance(e, ev.ModelRestored | ev.Changed) for e in o.events))
    shown = good("show", incident.id)
    plain = " ".join(shown.split())
    assert f"{incident.id} {incident.status} {incident.attempts} attempts in" in plain
    for event in incident.events:
        match event:
            case ev.AttemptFailed(failure=failure):
                assert f"{failure.kind}: {failure.message}" in plain
                assert f"rule {failure.rule}" in plain
            case ev.Changed(fields=fields, prompt=prompt):
                assert ", ".join(fields) in plain
                assert prompt in plain
            case ev.Decided(decision=decision):
                assert all(reason in plain for _, reason in decision.skipped)
    assert f"ended {incident.status}" in plain
    assert max(map(len, shown.splitlines())) <= 80


def test_show_advises_where_it_did_not_work(recorded: Recorded) -> None:
    """An incident that failed has its reason and a recommendation."""
    incident = next(o for o in recorded.outcomes if not o.ok)
    plain = " ".join(good("show", incident.id).split())
    assert incident.reason in plain
    assert f"advice {incident.recommendation}" in plain
    assert "seen " in plain


def test_show_shows_questions_and_answers(recorded: Recorded) -> None:
    """A question has its options and the answer."""
    asked = next(o for o in recorded.outcomes if any(isinstance(e, ev.Answered) for e in o.events))
    plain = " ".join(good("show", asked.id).split())
    assert "auth_error: bad key" in plain
    assert "stop: Stop and keep the results so far" in plain
    assert "answered retry" in plain


def test_show_has_the_cache_share_of_the_session(recorded: Recorded) -> None:
    """An incident of a session with recorded tokens shows how much of the session's input came from the cache."""
    incident = next(
        one for one in recorded.outcomes if json.loads(good("show", one.id, "--json"))["incident"]["session"]
    )
    session = json.loads(good("show", incident.id, "--json"))["incident"]["session"]
    assert "from cache" not in good("show", incident.id)
    add_usage(recorded.journal, {session: SessionUsage(2, 1_000, 50, 620, 100)}, START)
    assert "62.0 % of the session's input from cache" in " ".join(good("show", incident.id).split())
    assert json.loads(good("show", incident.id, "--json"))["cache_share"] == 0.62


def test_show_as_json_is_the_row_and_the_events(recorded: Recorded) -> None:
    """`--json` holds the incident's row and its events as the journal has them."""
    table = json.loads(good("show", "last", "--json"))
    last = recorded.outcomes[-1]
    assert (table["incident"]["id"], table["incident"]["status"]) == (last.id, last.status)
    assert len(table["events"]) == len(last.events)
    assert table["levels"] == [dict(record) for record in last.levels]
    seen = sum(
        attempt.mark == table["incident"]["fingerprint"] for attempt in recorded.tried() if attempt.project == "api"
    )
    assert table["seen"]["times"] == seen


def test_an_incident_is_found_by_its_beginning(recorded: Recorded) -> None:
    """A unique prefix of an id suffices; no match or several are a one-line error."""
    ids = [outcome.id for outcome in recorded.outcomes]
    whole = ids[0]
    short = next(
        whole[:n]
        for n in range(1, len(whole) + 1)
        if sum(i.startswith(whole[:n]) for i in ids) == 1 or whole[:n] == whole
    )
    assert whole in good("show", short)
    assert "it matches " in refused("show", whole[:4])
    assert "`rung log` prints the ids" in refused("show", "nothing")
    assert "there is no incident ''" in refused("show", "")


# -- journal --------------------------------------------------------------------------------------------


def test_the_journal_is_chosen_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option overrides the environment, which overrides ./rung.toml, which overrides the data directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNG_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if sys.platform == "linux":
        assert journal_path(None) == str(tmp_path / "data" / "rung" / "journal.db")
        monkeypatch.setenv("XDG_DATA_HOME", "relative")
        assert default_path() == Path.home() / ".local" / "share" / "rung" / "journal.db"
    write_trusted(Path("rung.toml"), 'journal = "here.db"\n[policy]\nladder = "task"\n')
    assert journal_path(None) == "here.db"
    monkeypatch.setenv("RUNG_JOURNAL", "there.db")
    assert journal_path(None) == "there.db"
    assert journal_path("given.db") == "given.db"
    monkeypatch.setenv("RUNG_JOURNAL", "")
    assert journal_path("") == "here.db"
    assert good("journal", "where") == "here.db\n"
    table = json.loads(good("journal", "where", "--json"))
    assert table == {"journal": "here.db", "chosen_by": "rung.toml", "exists": False}
    write_trusted(Path("rung.toml"), "journal = 5\n")
    assert refused("journal", "where") == "rung: rung.toml: journal: 5 is invalid; must be a path or URL"


@pytest.mark.parametrize(("platform", "base"), [("darwin", "Library/Application Support"), ("win32", "AppData/Local")])
def test_the_data_directory_of_other_platforms(platform: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data directories of macOS and Windows."""
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert default_path(platform) == Path.home() / base / "rung" / "journal.db"
    if platform == "win32":
        monkeypatch.setenv("LOCALAPPDATA", "/local")
        assert default_path(platform) == Path("/local/rung/journal.db")


def test_a_password_is_not_shown() -> None:
    """`where` shows a server's URL without its password."""
    shown = good("journal", "where", "--journal", "postgresql://me:secret@host/db")
    assert "secret" not in shown
    assert shown == "postgresql://me@host/db\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("report",),
        ("log",),
        ("show", "last"),
        *(("journal", name) for name in ("check", "vacuum", "export", "rebuild")),
    ],
    ids=" ".join,
)
def test_no_journal_and_no_journal_of_ours(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A missing file, another program's database and a text file are one-line errors; nothing is changed."""
    import apsw

    nowhere = tmp_path / "none" / "journal.db"
    assert "there is no journal yet (looked there because of --journal)" in refused(
        *arguments, "--journal", str(nowhere)
    )
    assert not nowhere.parent.exists()
    text = tmp_path / "text.db"
    text.write_text("these are no pages of a database, only words " * 20, encoding="utf-8")
    assert "is not a journal" in refused(*arguments, "--journal", str(text))
    foreign = tmp_path / "foreign.db"
    apsw.Connection(str(foreign)).execute("CREATE TABLE cake (slice)")
    before = foreign.read_bytes()
    assert "another program's SQLite file" in refused(*arguments, "--journal", str(foreign))
    assert foreign.read_bytes() == before


def test_check_finds_what_is_wrong(recorded: Recorded) -> None:
    """An intact journal is exit code 0; wrong counts are 1, and a rebuild fixes them."""
    assert "BAD" not in good("journal", "check")
    assert json.loads(good("journal", "check", "--json"))["ok"] is True
    harm = "UPDATE by_message SET n = n + 1"
    recorded.journal.write(lambda connection: connection.execute(harm), lambda _: False).result()
    done = run("journal", "check")
    assert done.exit_code == 1
    assert "BAD  messages" in done.stdout
    assert "rebuilt from" in good("journal", "rebuild")
    assert run("journal", "check").exit_code == 0


@pytest.mark.parametrize("what", ["attempts", "incidents", "events"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_export_to_a_file_and_to_the_screen(recorded: Recorded, what: str, form: str, tmp_path: Path) -> None:
    """The export is complete, private to its owner, in the format of its name; standard output gets the same bytes."""
    out = tmp_path / f"out.{form}"
    said = run("journal", "export", what, "--out", str(out))
    assert said.exit_code == 0, said.output
    assert said.stdout == ""
    assert f"of {what} in {out}" in said.stderr
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    streamed = run("journal", "export", what, "--format", form)
    assert streamed.stdout_bytes == out.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if "part" in p.name) == []


def test_a_file_that_cannot_be_written(recorded: Recorded, tmp_path: Path) -> None:
    """An export into a missing directory is a one-line error; exit code 2."""
    assert "cannot be written" in refused("journal", "export", "--out", str(tmp_path / "no" / "x.csv"))


def test_prune_and_what_a_rebuild_would_forget(recorded: Recorded) -> None:
    """Prune prints what it deleted and keeps the counts; a rebuild that would lose them needs an option."""
    before = json.loads(good("report", "--json"))["totals"]
    gone = json.loads(good("journal", "prune", "--older-than", "2027-01-16T00:00", "--json"))
    old = [o for o in recorded.outcomes if o.events[-1].at < START + DAY * 2 / 3]
    assert (gone["incidents"], gone["events"]) == (len(old), sum(len(o.events) for o in old))
    assert json.loads(good("report", "--json"))["totals"] == before
    assert "--forget-pruned" in refused("journal", "rebuild")
    good("journal", "rebuild", "--forget-pruned")
    after = json.loads(good("report", "--json"))["totals"]
    assert after[0]["incidents"] == before[0]["incidents"] - len(old)
    assert "deleted" in good("journal", "prune", "--max-size", "1kB")
    assert run("journal", "prune").exit_code == 2
    assert run("journal", "prune", "--max-size", "lots").exit_code == 2


def test_vacuum_makes_it_smaller(recorded: Recorded) -> None:
    """Vacuum returns the space of deleted events."""
    recorded.recover(HttpError(429, "x" * 200_000), "fine")
    good("journal", "prune", "--older-than", "2030-01-01", "--no-vacuum")
    large = recorded.journal.backend.size()
    assert "before" in good("journal", "vacuum")
    assert recorded.journal.backend.size() < large / 2


def test_a_live_journal_can_be_read_by_another_process(recorded: Recorded) -> None:
    """A command reads durable events while another process has the journal open."""
    done = subprocess.run(
        [sys.executable, "-m", "rung", "report", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["totals"][0]["incidents"] == len(recorded.outcomes)
