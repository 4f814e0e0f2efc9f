"""Command lines of agents: recognised in their form without a terminal, and rewritten to continue a session."""

from __future__ import annotations

import shlex

import pytest

from rung.core.agents.own_agents import OwnAgent
from rung.core.agents.recognise import program_name, recognise
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import read_rows

ID = "01a1e7c3-d158-7381-92eb-2fc6a533dab9"
OTHER = "5e0f2c1d-2f0f-4d84-8a0f-2b1b0c5b7a11"


@pytest.mark.parametrize(
    ("line", "start", "resume"),
    [
        (
            'claude -p "do it" --model x --allowedTools Bash Edit',
            f'claude --session-id {ID} -p "do it" --model x --allowedTools Bash Edit',
            f"claude --resume {ID} -p --model x --allowedTools Bash Edit",
        ),
        (
            "claude --print --output-format=json --dangerously-skip-permissions",
            f"claude --session-id {ID} --print --output-format=json --dangerously-skip-permissions",
            f"claude --resume {ID} --print --output-format=json --dangerously-skip-permissions",
        ),
        (f"claude -p --session-id {OTHER} x", f"claude -p --session-id {ID} x", f"claude --resume {ID} -p"),
        (f"claude -p --session-id={OTHER} x", f"claude -p --session-id={ID} x", f"claude --resume {ID} -p"),
        (f"claude -p --resume {OTHER} x", f"claude -p --resume {OTHER} x", f"claude --resume {ID} -p"),
        ("claude -c -p x", "claude -c -p x", f"claude --resume {ID} -p"),
        (
            "timeout -k 5 600 /opt/bin/claude -p -- --odd",
            f"timeout -k 5 600 /opt/bin/claude --session-id {ID} -p -- --odd",
            f"timeout -k 5 600 /opt/bin/claude --resume {ID} -p",
        ),
        ("env A=/b nice -n 5 claude -p", f"env A=/b nice -n 5 claude --session-id {ID} -p", f"env A=/b nice -n 5 claude --resume {ID} -p"),
        ("codex exec --json -s read-only 'do it'", "codex exec --json -s read-only 'do it'", f"codex exec --json -s read-only resume {ID} -"),
        ("codex -m gpt e -", "codex -m gpt e -", f"codex -m gpt e resume {ID} -"),
        ("codex exec -o last.txt < x", "codex exec -o last.txt < x", None),
        (f"codex exec -C d resume {OTHER} --json go", f"codex exec -C d resume {OTHER} --json go", f"codex exec -C d --json resume {ID} -"),
        ("gemini -m x --yolo -p 'hello there'", f"gemini --session-id {ID} -m x --yolo -p 'hello there'", f"gemini --resume {ID} -m x --yolo --prompt="),
        (f"gemini --session-id {OTHER} -p x", f"gemini --session-id {ID} -p x", f"gemini --resume {ID} --prompt="),
        ("opencode run --format json -m a/b hello world", "opencode run --format json -m a/b hello world", f"opencode run --session {ID} --format json -m a/b"),
        ("opencode --pure run -c --title t hi", "opencode --pure run -c --title t hi", f"opencode --pure run --session {ID}"),
    ],
)  # fmt: skip
def test_commands_of_known_agents(line: str, start: str, resume: str | None) -> None:
    """The start keeps the user's words, and the continuation keeps the options, without the prompt and other sessions."""
    call = recognise(shlex.split(line))
    if resume is None:
        assert call is None  # more words than one prompt
        return
    assert call is not None
    assert call.started(ID) == tuple(shlex.split(start))
    assert call.resumed(ID) == tuple(shlex.split(resume))


@pytest.mark.parametrize(
    "line",
    [
        "claude", "claude 'do it'", "claude -p --no-session-persistence x", "claude -p -w tree x", "claude -p a b",
        "claude -p --new-option maybe-its-value", "codex", "codex 'do it'", "codex exec --ephemeral x", "codex exec review",
        "codex exec resume --last x", "codex exec resume my-name x", "codex exec fork x", "gemini", "gemini hello",
        "gemini -i x", "opencode", "opencode serve", "opencode run --command x", "sh -c 'claude -p x'", "my-claude -p x",
        "timeout 5", "env", "",
    ],
)  # fmt: skip
def test_other_commands_are_left_alone(line: str) -> None:
    """A terminal session, one that is not kept, or a command whose prompt is not certain is no known call."""
    assert recognise(shlex.split(line)) is None


@pytest.mark.parametrize(
    ("line", "session"),
    [
        (f"claude -p --session-id {ID}", ID),
        (f"claude -p -r {ID}", ID),
        ("claude -p --resume my-name", ""),
        (f"claude -p --resume {ID} --fork-session", ""),
        (f"codex exec resume {ID}", ID),
        (f"gemini --resume {ID} -p x", ID),
        ("gemini --resume latest -p x", ""),
        ("opencode run -s ses_1 x", "ses_1"),
        ("opencode run -s ses_1 --fork x", ""),
    ],
)
def test_a_session_that_the_command_names(line: str, session: str) -> None:
    """An id in the command is that of the session, unless the agent makes a copy under another one."""
    call = recognise(shlex.split(line))
    assert call is not None
    assert call.session == session


@pytest.mark.parametrize(
    ("line", "output", "found"),
    [
        ("claude -c -p", f'{{"type":"system","session_id":"{ID}"}}', ID),
        ("codex exec --json x", f'{{"type":"thread.started","thread_id":"{ID}"}}', ID),
        ("codex exec x", f"session id: {ID}", ID),
        ("codex exec --json x", rf'{{"output":"{{\"thread_id\":\"{ID}\"}}"}}', ""),
        ("opencode run --format json x", '{"type":"step_start","sessionID":"ses_e18"}', "ses_e18"),
        ("opencode run --format json x", '{"sessionID":"--version"}', ""),
        ("codex exec x", "session id: unknown", ""),
    ],
)
def test_the_id_in_the_output(line: str, output: str, found: str) -> None:
    """The id is read from the agent's own line, not from quoted text, and never looks like an option."""
    call = recognise(shlex.split(line))
    assert call is not None
    assert call.find_id(output) == found


def test_agents_of_the_settings_come_first() -> None:
    """A row of [[agents]] describes an agent that Rung does not know, or replaces what it knows."""
    rows = [
        {"match": ["my-agent", "do"], "resume": ["my-agent", "go-on", "{session}"], "session_field": "sid"},
        {"match": ["claude"], "resume": ["claude", "-r", "{session}"], "start": ["--id", "{session}"], "lost": "gone"},
    ]
    own = read_rows(OwnAgent, rows, "agents")
    call = recognise(["nice", "/bin/my-agent", "do", "it {session}"], own)
    assert call is not None
    assert call.started("s1") == ("nice", "/bin/my-agent", "do", "it {session}")
    assert call.resumed("s1") == ("nice", "my-agent", "go-on", "s1")
    assert call.find_id('{"sid": "s1"}') == "s1"
    assert not call.names_session
    other = recognise(["claude", "-p", "x"], own)
    assert other is not None
    assert other.started("s1") == ("claude", "--id", "s1", "-p", "x")
    assert recognise(["my-agent", "undo"], own) is None


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"match": [], "resume": ["a", "{session}"], "session_field": "s"}, "match"),
        ({"match": ["a"], "resume": ["a"], "session_field": "s"}, "resume"),
        ({"match": ["a"], "resume": ["a", "{session}"]}, "session_field"),
        ({"match": ["a"], "resume": ["a", "{session}"], "session_field": "s", "start": ["{session}"]}, "session_field"),
        ({"match": ["a"], "resume": ["a", "{session}"], "start": ["--new"]}, "start"),
        ({"match": ["a"], "resume": ["a", "{session}"], "session_pattern": "id: ("}, "session_pattern"),
        ({"match": ["a"], "resume": ["a", "{session}"], "session_pattern": "id: .*"}, "session_pattern"),
        ({"match": ["a"], "resume": ["a", "{session}"], "session_field": "s", "lost": "("}, "lost"),
        ({"match": "a", "resume": ["a", "{session}"], "session_field": "s"}, "match"),
        ({"match": ["a"], "session_field": "s"}, "resume"),
        ({"match": ["a"], "resume": ["a", "{session}"], "session_field": "s", "sesion": 1}, "sesion"),
    ],
)
def test_a_bad_row_is_an_error_that_names_its_key(row: dict[str, object], key: str) -> None:
    """A mistake in [[agents]] is refused before anything runs."""
    with pytest.raises(ConfigError) as raised:
        read_rows(OwnAgent, [row], "agents")
    assert raised.value.key == f"agents[0].{key}"


def test_names_of_programs() -> None:
    """The path and the endings of Windows are not part of the name."""
    assert [program_name(word) for word in ("/a/claude", "C:\\x\\codex.exe", "gemini.cmd")] == [
        "claude",
        "codex",
        "gemini",
    ]
