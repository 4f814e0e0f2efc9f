"""Handlers of hook events: every agent's format, and invariants over all sequences of events."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.hooks import fast_json
from rung.hooks.agent_formats import EVENTS
from rung.hooks.crash_log import LOG_NAME
from rung.hooks.handlers import handle_event
from rung.hooks.install import ENTRY_PATH
from rung.hooks.spool_drain import drain
from rung.store import open_journal
from rung.store.settings import put_setting
from tests.trusting import write_trusted

ERROR = "ls: cannot access '/nope': No such file or directory"
NAMES = {agent: {name: said for said, name in events.items()} for agent, events in EVENTS.items()}


def tell(place: Path, agent: str, name: str, **facts: Any) -> dict[str, Any]:
    table = {"session_id": "s", "cwd": str(place), "hook_event_name": NAMES[agent][name], **facts}
    answer, *_ = handle_event(agent, str(place), json.dumps(table).encode())
    found: dict[str, Any] = json.loads(answer)
    return found


def call(place: Path, agent: str, command: str, outcome: str, *, failed: bool, number: int = 0) -> dict[str, Any]:
    """Send the events of a call and its outcome in the agent's format."""
    facts: dict[str, Any] = {"tool_name": "shell", "tool_input": {"command": command}, "tool_use_id": f"t{number}"}
    if agent == "claude-code":
        if failed:
            tell(place, agent, "failed", **facts, error=outcome)
        return tell(place, agent, "after", tool_calls=[{**facts, "tool_response": outcome}])
    response: dict[str, Any] = {"output": outcome, "exit_code": 1 if failed else 0}
    if agent == "gemini-cli":
        response = {"llmContent": outcome, "error": {"message": outcome}} if failed else {"llmContent": outcome}
    return tell(place, agent, "after", **facts, tool_response=response)


@pytest.mark.parametrize("agent", EVENTS)
def test_three_five_eight_in_every_dialect(tmp_path: Path, agent: str) -> None:
    """A repeated failure is reported at three, five and eight; then calls are denied, and finally the agent is stopped."""
    told = [call(tmp_path, agent, "ls /nope", ERROR, failed=True, number=n) for n in range(8)]
    words = [answer.get("hookSpecificOutput", {}).get("additionalContext", "") for answer in told]
    assert [bool(text) for text in words] == [False, False, True, False, True, False, False, True]
    assert len(set(words) - {""}) == 3
    for number in range(1, 6):
        answer = tell(tmp_path, agent, "before", tool_name="shell", tool_input={"command": "other"})
        if agent == "gemini-cli":
            assert answer["decision"] == "deny"
        else:
            assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert ("continue" in answer) == (number > 3)
    assert tell(tmp_path, agent, "stop", last_assistant_message="All done.", prompt_response="All done.") == {}
    assert tell(tmp_path, agent, "prompt", prompt="go on") == {}
    assert tell(tmp_path, agent, "before", tool_name="shell", tool_input={}) == {}


@pytest.mark.parametrize("agent", EVENTS)
def test_work_that_gets_on_is_left_alone(tmp_path: Path, agent: str) -> None:
    """Sixty different calls are never reported, although the detectors run in between."""
    for number in range(60):
        outcome = f"line {number}: " + "abcdefghij"[number % 10] * (number + 30)
        assert call(tmp_path, agent, f"cat part{number}", outcome, failed=False, number=number) == {}


def test_a_context_that_is_full_again_at_once_is_told_to_the_user(tmp_path: Path) -> None:
    """The third compaction in a row is a notice and a failure in the journal; calls count across prompts."""

    def compacted() -> dict[str, Any]:
        return tell(tmp_path, "claude-code", "compact", trigger="auto")

    assert [compacted() for _ in range(3)] == [{}] * 3
    tell(tmp_path, "claude-code", "prompt", prompt="go on")
    for number in range(6):
        call(tmp_path, "claude-code", f"cat part{number}", f"line {number}", failed=False, number=number)
    assert [compacted() for _ in range(3)] == [{}] * 3
    assert "3 times in a row; split the task" in compacted()["systemMessage"]
    drain(tmp_path, str(tmp_path / "journal.db"))
    with open_journal(str(tmp_path / "journal.db")) as journal:
        assert journal.read("SELECT kind FROM attempt") == [("context_warning",)]


def test_parallel_calls_count_each(tmp_path: Path) -> None:
    """Three equal calls in one batch are three repetitions."""
    one = {"tool_name": "Bash", "tool_input": {"command": "ls /nope"}, "tool_response": "Exit code 2\n" + ERROR}
    answer = tell(tmp_path, "claude-code", "after", tool_calls=[{**one, "tool_use_id": str(n)} for n in range(3)])
    assert "3 repetitions" in answer["hookSpecificOutput"]["additionalContext"]


CLAIMS = ["All done, everything works.", "I created missing.txt.", "I give up.", "Here is what I found.", "", "# ..."]
event = st.one_of(
    st.tuples(st.just("stop"), st.fixed_dictionaries({"last_assistant_message": st.sampled_from(CLAIMS), "stop_hook_active": st.booleans()})),
    st.tuples(st.just("prompt"), st.fixed_dictionaries({"prompt": st.text(max_size=20)})),
    st.tuples(st.just("start"), st.just({})),
    st.tuples(st.just("compact"), st.just({"trigger": "auto"})),
    st.tuples(st.just("broke"), st.just({"error": "server_error"})),
    st.tuples(st.just("end"), st.just({"reason": "other"})),
    st.tuples(st.just("before"), st.just({"tool_name": "Bash", "tool_input": {"command": "x"}})),
    st.tuples(
        st.just("after"),
        st.fixed_dictionaries({"tool_calls": st.lists(st.fixed_dictionaries({
            "tool_name": st.sampled_from(["Bash", "Edit"]), "tool_input": st.just({"command": "x"}),
            "tool_response": st.sampled_from(["Exit code 1\nno", "fine", {"a": [1]}, None]),
        }), max_size=4)}),
    ),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(event, max_size=40))
def test_no_sequence_of_events_blocks_more_than_twice(told: list[tuple[str, dict[str, Any]]]) -> None:
    """In any sequence of events, a stop is blocked at most twice, with different messages, and the agent can finish."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        blocked = []
        for name, facts in told:
            answer = tell(place, "claude-code", name, **facts)
            if "decision" in answer:
                assert name == "stop"
                blocked.append(answer["reason"])
        assert len(blocked) <= 2
        assert len(set(blocked)) == len(blocked)
        for _ in range(3):
            last = tell(place, "claude-code", "stop", last_assistant_message=CLAIMS[0], stop_hook_active=True)
        assert "decision" not in last
        drain(place, str(place / "journal.db"))
        assert not list((place / "spool").glob("*.jsonl"))


def test_another_hooks_block_is_not_added_to(tmp_path: Path) -> None:
    """With stop_hook_active and no block of ours, the agent may finish, and the outcome is partial."""
    answer = tell(tmp_path, "claude-code", "stop", last_assistant_message=CLAIMS[0], stop_hook_active=True)
    assert "decision" not in answer
    assert "partial" in answer["systemMessage"]


@pytest.mark.parametrize("flagged", [True, False])
def test_by_default_the_stop_after_a_block_passes(tmp_path: Path, flagged: bool) -> None:
    """The second stop passes as partial, reported as `stop_hook_active` or not; a later prompt allows one more block."""

    def stop(*, again: bool) -> dict[str, Any]:
        flag = {"stop_hook_active": again} if flagged else {}
        return tell(tmp_path, "claude-code", "stop", last_assistant_message=CLAIMS[0], **flag)

    tell(tmp_path, "claude-code", "prompt", prompt="do it")
    assert stop(again=False)["decision"] == "block"
    passed = stop(again=True)
    assert "decision" not in passed
    assert "partial" in passed["systemMessage"]
    tell(tmp_path, "claude-code", "prompt", prompt="do more")
    assert stop(again=False)["decision"] == "block"
    tell(tmp_path, "claude-code", "prompt", prompt="do still more")
    assert "decision" not in stop(again=False)


def test_a_check_of_the_projects_own_decides(tmp_path: Path) -> None:
    """With `[stop] check`, the command decides; a passing one lets the agent finish at once."""
    write_trusted(tmp_path / "rung.toml", "[stop]\ncheck = \"sh -c 'test -f ready'\"\n")
    tell(tmp_path, "claude-code", "prompt", prompt="make it ready")
    answer = tell(tmp_path, "claude-code", "stop", last_assistant_message="It is ready.")
    assert "exit code 1" in answer["reason"]
    (tmp_path / "ready").touch()
    assert tell(tmp_path, "claude-code", "stop", last_assistant_message="All done.", stop_hook_active=True) == {}


def test_what_went_wrong_reaches_the_journal_once(tmp_path: Path) -> None:
    """Lines drained twice, as after a crash, are stored once."""
    for number in range(3):
        call(tmp_path, "codex", "ls /nope", ERROR, failed=True, number=number)
    tell(tmp_path, "codex", "end", reason="exit")
    spool = next((tmp_path / "spool").glob("*.jsonl"))
    kept = spool.read_bytes()
    journal = str(tmp_path / "journal.db")
    assert drain(tmp_path, journal) == 7
    spool.write_bytes(kept + b'{"cut')
    assert drain(tmp_path, journal) == 7
    with open_journal(journal) as opened:
        ((incident,),) = opened.read("SELECT DISTINCT incident FROM event")
        names = [type(one).__name__ for one in opened.events(incident)]
    assert names == ["Opened", *["AttemptFailed"] * 4, "Decided", "AttemptSucceeded"]
    assert ev.Status.RECOVERED


def hook(
    place: Path, told: bytes, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", "-S", ENTRY_PATH, *(arguments or ("claude-code", str(place)))]
    return subprocess.run(command, input=told, capture_output=True, check=False, timeout=60, env=env)


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        (b"", ()),
        (b"no JSON", ()),
        (b"[1, 2]", ()),
        (b'{"session_id": "s", "hook_event_name": "Stop", "cwd": 7, "last_assistant_message": {}}', ()),
        (b"\xff\xfe", ()),
        (b"{}", ("nobody", "/dev/null")),
        (b"{}", ("claude-code", "/dev/null/not/there")),
        (b'{"hook_event_name": "Unknown", "session_id": "s"}', ()),
    ],
)
def test_whatever_it_is_told_it_answers_json_and_exits_0(
    tmp_path: Path, told: bytes, arguments: tuple[str, ...]
) -> None:
    """Nothing, nonsense, another agent, a place that cannot be: `{}`, exit code 0, not a word on stderr."""
    done = hook(tmp_path, told, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def test_the_crash_log_is_shown_when_the_next_session_begins(tmp_path: Path) -> None:
    """A fault of ours leaves a line, shown once at the next start."""
    hook(tmp_path, b"no JSON")
    assert len((tmp_path / LOG_NAME).read_bytes().splitlines()) == 1
    start = json.dumps({"session_id": "n", "hook_event_name": "SessionStart", "cwd": str(tmp_path)}).encode()
    assert "failed once" in json.loads(hook(tmp_path, start).stdout)["systemMessage"]
    assert json.loads(hook(tmp_path, start).stdout) == {}


def test_what_cannot_be_remembered_is_not_done(tmp_path: Path) -> None:
    """If the number of blocks cannot be saved, nothing is blocked."""
    (tmp_path / "sessions").mkdir()
    stop = json.dumps(
        {"session_id": "s", "hook_event_name": "Stop", "cwd": str(tmp_path), "last_assistant_message": CLAIMS[0]}
    )
    for path in ("spool", "sessions"):
        (tmp_path / path).mkdir(exist_ok=True)
    (tmp_path / "spool").rmdir()
    (tmp_path / "spool").write_text("in the way")
    assert hook(tmp_path, stop.encode()).stdout == b"{}"


def test_a_hook_loads_next_to_nothing(tmp_path: Path) -> None:
    """An ordinary event is answered without importing click, rich, asyncio, typing, apsw or the classifier."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from rung.hooks.handlers import handle_event; "
        "handle_event('claude-code', sys.argv[2], sys.stdin.buffer.read()); print(' '.join(sys.modules))"
    )
    calls = [{"tool_name": "Bash", "tool_input": {}, "tool_response": "x"}]
    told = {"session_id": "s", "cwd": ".", "hook_event_name": "PostToolBatch", "tool_calls": calls}
    source = str(Path(ENTRY_PATH).parents[2])
    command = [sys.executable, "-I", "-S", "-c", code, source, str(tmp_path)]
    done = subprocess.run(command, input=json.dumps(told), capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rung.hooks.handlers" in loaded
    heavy = {
        "click",
        "enum",
        "re",
        "json",
        "rich",
        "asyncio",
        "typing",
        "dataclasses",
        "apsw",
        "rung.core.classify.classifier",
        "rung.detectors.session_monitor",
        "pathlib",
        "subprocess",
    }
    assert not heavy & loaded


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@given(json_values)
def test_quick_json_is_json(value: Any) -> None:
    """fast_json and json parse each other's output."""
    assert json.loads(fast_json.dumps(value)) == value
    assert fast_json.loads(json.dumps(value, indent=1).encode("utf-8", "replace")) == value


@given(st.binary(max_size=30) | st.sampled_from([b"", b"{", b"[1,]", b"1 2", b"nul", b'"a']))
def test_what_is_no_json_is_a_value_error(content: bytes) -> None:
    """fast_json rejects what json rejects, except for control characters in strings."""
    try:
        wanted = json.loads(content.decode(), strict=False)
    except ValueError:
        with pytest.raises(ValueError):
            fast_json.loads(content)
    else:
        assert fast_json.loads(content) == wanted or wanted != wanted  # noqa: PLR0124  # NaN


def test_the_console_script_answers_too(tmp_path: Path) -> None:
    """`rung-hook AGENT` answers events, for hand-written settings."""
    script = Path(sys.executable).with_name("rung-hook")
    if not script.exists():
        pytest.skip("installed before this command was there")
    env = {**os.environ, "RUNG_HOOKS": str(tmp_path)}
    done = subprocess.run([script, "gemini-cli"], input=b"{}", capture_output=True, check=False, env=env)
    assert (done.returncode, done.stdout) == (0, b"{}")


@pytest.mark.parametrize("blocks", [0, 1])
def test_the_number_of_blocks_is_set(tmp_path: Path, blocks: int) -> None:
    """`[stop] max_blocks` bounds how often an agent is kept from finishing."""
    (tmp_path / "rung.toml").write_text(f"[stop]\nmax_blocks = {blocks}\n")
    told = [tell(tmp_path, "claude-code", "stop", last_assistant_message=f"Done, take {n}.") for n in range(3)]
    assert [answer.get("decision") for answer in told] == ["block"] * blocks + [None] * (3 - blocks)


@pytest.mark.parametrize("agent", ["claude-code", "claude-sdk"])
def test_a_session_starts_with_the_notes_of_the_project(tmp_path: Path, agent: str) -> None:
    """The agent gets what is known once, at the start or at its first prompt; a session that ends partial adds an issue."""
    write_trusted(tmp_path / "rung.toml", 'notes = "known"\n')
    notes = tmp_path / "known"
    notes.mkdir()
    (notes / "learnings.md").write_text("## [TOOL_ERROR] Use make -k\n")
    first = tell(tmp_path, agent, "start" if "start" in NAMES[agent] else "prompt")
    assert "> Learning (TOOL_ERROR): Use make -k." in first["hookSpecificOutput"]["additionalContext"]
    assert tell(tmp_path, agent, "prompt", prompt="do it") == {}
    if agent == "claude-sdk":
        return  # it reports no end
    tell(tmp_path, agent, "broke", error="no such table: users")
    tell(tmp_path, agent, "end", reason="other")
    (notes / "learnings.md").unlink()
    (notes / "learnings.md").mkdir()
    drain(tmp_path, str(tmp_path / "journal.db"))
    assert "no such table" in (notes / "issues.md").read_text()
    assert "notes" in (tmp_path / LOG_NAME).read_text()
    tell(tmp_path, agent, "start")
    assert len((tmp_path / LOG_NAME).read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "off", ["[tools.shell]\nretries = 0\n", '[policy]\ntemplate = "off"\n', "[tools.other]\nretries = 0\n"]
)
def test_a_tool_whose_recovery_is_off(tmp_path: Path, off: str) -> None:
    """A loop of a tool whose recovery the project's file disables is recorded, and the agent is told nothing."""
    (tmp_path / "rung.toml").write_text(off)
    told = [call(tmp_path, "claude-code", "ls /nope", ERROR, failed=True, number=n) for n in range(8)]
    assert any("hookSpecificOutput" in answer for answer in told) is ("other" in off)


def test_a_policy_of_the_service_holds_in_hooks(tmp_path: Path) -> None:
    """Recovery that the service disables for the project says nothing in its sessions, from the first loop on."""
    where = str(tmp_path / "journal.db")
    with open_journal(where) as journal:
        put_setting(journal, f"policy/{tmp_path.name}", {"retries": 0}, "ada")
    facts = {"tool_name": "shell", "tool_input": {"command": "ls"}}
    for n in range(8):
        event = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "PostToolBatch"}
        table = {**event, "tool_calls": [{**facts, "tool_use_id": f"t{n}", "tool_response": ERROR}]}
        answer, *_ = handle_event("claude-code", str(tmp_path), json.dumps(table).encode(), where)
        assert json.loads(answer) == {}


def test_a_store_that_does_not_answer_keeps_no_agent_waiting(tmp_path: Path) -> None:
    """Where the store of the policies accepts a connection and says nothing, a loop is told as without a policy."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        told = []
        for n in range(3):
            event = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": NAMES["claude-code"]["after"]}
            step = {
                "tool_name": "shell",
                "tool_input": {"command": "ls"},
                "tool_use_id": f"t{n}",
                "tool_response": ERROR,
            }
            table = {**event, "tool_calls": [step]}
            answer, *_ = handle_event("claude-code", str(tmp_path), json.dumps(table).encode(), where)
            told.append(json.loads(answer))
        assert "hookSpecificOutput" in told[-1]


# -- behaviour ----------------------------------------------------------------------------------------


def context_of(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.mark.parametrize("agent", EVENTS)
def test_a_violated_constraint_is_told_once(tmp_path: Path, agent: str) -> None:
    """A call that does what the prompt forbids is told to the agent, once for each constraint, and recorded."""
    tell(
        tmp_path,
        agent,
        "prompt",
        prompt="Clean up. Do not delete `data/raw`. Never use `curl`. Don't run `make deploy`.",
    )
    assert call(tmp_path, agent, "ls data/raw", "a.csv", failed=False) == {}
    answer = call(tmp_path, agent, "rm -r data/raw", "", failed=False, number=1)
    assert "Do not delete `data/raw`" in context_of(answer)
    assert call(tmp_path, agent, "rm -r data/raw", "", failed=False, number=2) == {}
    assert "Never use `curl`" in context_of(call(tmp_path, agent, "curl x.example", "ok", failed=False, number=3))
    answer = call(tmp_path, agent, "make deploy", "done", failed=False, number=4)  # two nudges are the limit
    assert context_of(answer) == ""
    assert "make deploy" in answer["systemMessage"]
    drain(tmp_path, str(tmp_path / "j.db"))
    with open_journal(tmp_path / "j.db") as journal:
        (incident,) = [row for (row,) in journal.read("SELECT id FROM incident")]
        kinds = [one.failure.kind for one in journal.events(incident) if isinstance(one, ev.AttemptFailed)]
    assert kinds == ["goal_misaligned"] * 3


def test_a_new_prompt_lifts_the_constraints(tmp_path: Path) -> None:
    """Only the last prompt's constraints hold: the user may have changed their mind."""
    tell(tmp_path, "codex", "prompt", prompt="Do not run `make deploy`.")
    tell(tmp_path, "codex", "prompt", prompt="Now deploy it.")
    assert call(tmp_path, "codex", "make deploy", "done", failed=False) == {}


def test_a_policy_that_is_off_tells_nothing(tmp_path: Path) -> None:
    """Where the project's policy disables recovery, a violation is recorded and nobody is told."""
    (tmp_path / "rung.toml").write_text('[policy]\ntemplate = "off"\n')
    tell(tmp_path, "codex", "prompt", prompt="Do not run `make deploy`.")
    assert call(tmp_path, "codex", "make deploy", "done", failed=False) == {}


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_claim_against_the_last_test_run_is_sent_back(tmp_path: Path, agent: str) -> None:
    """An agent that claims passing tests is sent back if the last run failed, whatever it did since; a pass ends that."""
    tell(tmp_path, agent, "prompt", prompt="Fix the parser and run its tests.")
    call(tmp_path, agent, "pytest -q", "Exit code 1\n1 failed, 2 passed in 0.1s", failed=True)
    call(tmp_path, agent, "cat parser.py", "text", failed=False, number=1)
    answer = tell(tmp_path, agent, "stop", last_assistant_message="I fixed it, all tests pass.")
    assert "the last test run failed" in answer["reason"]
    call(tmp_path, agent, "pytest -q", "3 passed in 0.1s", failed=False, number=2)
    assert tell(tmp_path, agent, "stop", last_assistant_message="I fixed it, all tests pass.") == {}


def test_an_answer_beside_the_task_is_sent_back(tmp_path: Path) -> None:
    """An agent that did nothing and asks for the task is sent back; one that acted may ask what is next."""
    tell(tmp_path, "codex", "prompt", prompt="Rename the class Parser to Reader.")
    answer = tell(tmp_path, "codex", "stop", last_assistant_message="Hello! How can I help you today?")
    assert "asks for a task that was given" in answer["reason"]
    tell(tmp_path, "codex", "prompt", prompt="Rename the class Parser to Reader.")
    call(tmp_path, "codex", "sed -i s/Parser/Reader/ a.py", "", failed=False)
    assert tell(tmp_path, "codex", "stop", last_assistant_message="Renamed. How can I help you today?") == {}


def test_a_passing_check_outweighs_an_earlier_test_run(tmp_path: Path) -> None:
    """The project's own check runs last: if it passes, the earlier failed run is no evidence."""
    write_trusted(tmp_path / "rung.toml", f'[stop]\ncheck = "{sys.executable} -c pass"\n')
    tell(tmp_path, "codex", "prompt", prompt="Fix the parser and run its tests.")
    call(tmp_path, "codex", "pytest -q", "1 failed, 2 passed", failed=True)
    assert tell(tmp_path, "codex", "stop", last_assistant_message="I fixed it, all tests pass.") == {}
