"""`rung classify` and `rung explain`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rung.cli.group import root
from rung.cli.policy import explain
from rung.core.classify.classifier import RULES, classify, use_rules
from rung.core.classify.evidence import evidence_of
from rung.core.classify.guide.work import GUIDES
from rung.core.domain.failures import Kind
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(root, arguments, input=given)


def found(*arguments: str, given: str | bytes | None = None) -> dict[str, Any]:
    done = run("classify", *arguments, "--json", given=given)
    assert done.exit_code == 0, done.output
    assert done.output.count("\n") == 1
    table: dict[str, Any] = json.loads(done.output)
    return table


def test_text_as_an_argument() -> None:
    """The command classifies a text as the library does, with the rule and its reason."""
    text = "Error: 429 Too Many Requests"
    failure = classify(text)
    table = found(text)
    assert table["kind"] == failure.kind == "rate_limit"
    assert table["retryable"] is True
    assert table["rule"] == failure.rule
    assert table["fingerprint"] == failure.fingerprint
    assert table["why"] == next(rule.why for rule in RULES if rule.id == failure.rule)


@pytest.mark.parametrize(
    ("arguments", "kind", "error_type"),
    [
        (("--status", "429", "slow down"), "rate_limit", "rate_limit"),
        (("--status", "503", "overloaded"), "overloaded", "server_error"),
        (("--status", "504", "no"), "timeout", "server_error"),
        (("the request timed out",), "timeout", "timeout"),
        (("--status", "400", "context_length_exceeded"), "context_limit", "context_limit"),
        (("--status", "403", "no"), "permission_denied", "auth_error"),
        (("who knows",), "unknown", "unknown"),
    ],
)
def test_the_error_type(arguments: tuple[str, ...], kind: str, error_type: str) -> None:
    """The eight error types that the API knows are shown beside the kind, as text, as JSON and by line."""
    table = found(*arguments)
    assert (table["kind"], table["error_type"]) == (kind, error_type)
    assert error_type in next(line for line in run("classify", *arguments).output.splitlines() if "error type" in line)
    given = {"message": arguments[-1], **({"status": int(arguments[1])} if len(arguments) > 1 else {})}
    (line,) = lines(run("classify", "--jsonl", given=json.dumps(given)).output)
    assert (line["kind"], line["error_type"]) == (kind, error_type)


def test_text_from_a_pipe() -> None:
    """Without an argument, or with a dash, the text is read from the pipe, even if it is not UTF-8."""
    assert found(given="API Error: 529 Overloaded")["kind"] == "overloaded"
    assert found("-", given="API Error: 529 Overloaded")["kind"] == "overloaded"
    assert found(given=b"\xff\xfe cat: x: No such file or directory")["kind"] == "not_found"


def test_every_fact_counts() -> None:
    """Status, headers, code, exception and exit code each reach the evidence."""
    assert found("", "--status", "529")["kind"] == "overloaded"
    limited = found("", "--status", "429", "--header", "Retry-After: 20")
    assert (limited["kind"], limited["retry_after"]) == ("rate_limit", 20.0)
    assert found("", "--code", "overloaded_error")["kind"] == "overloaded"
    assert found("", "--exception", "json.decoder.JSONDecodeError")["kind"] == "malformed_output"
    assert found("", "--exit-code", "127")["kind"] == "not_found"


def test_exceptions_bring_their_bases() -> None:
    """A built-in exception is classified with its base classes."""
    assert found("", "--exception", "ConnectionResetError")["kind"] == classify(ConnectionResetError()).kind
    assert found("", "--exception", "FileNotFoundError")["kind"] == classify(FileNotFoundError()).kind


def test_for_people() -> None:
    """The plain output has kind, retryable, wait, rule, reason and fingerprint."""
    out = run("classify", "--status", "429", "--header", "retry-after:20", "slow down").output
    rule = next(rule for rule in RULES if rule.id == classify(evidence_of({"status": 429, "body": "slow down"})).rule)
    for word in ("rate_limit", "retryable    yes", "retry-after  20 s", rule.id, rule.why, "fingerprint"):
        assert word in out


def test_nothing_known() -> None:
    """Text without a matching rule is unknown and not retryable."""
    table = found("the cat sat on the keyboard")
    assert (table["kind"], table["retryable"], table["rule"]) == ("unknown", False, "unknown")
    assert table["why"]


@pytest.mark.parametrize("header", ["retry-after", ": 20"])
def test_a_header_without_a_name_or_value(header: str) -> None:
    """A header that is not NAME:VALUE ends with exit code 2 and the allowed form."""
    done = run("classify", "x", "--header", header)
    assert done.exit_code == 2
    assert done.stderr == f"rung: --header: {header!r} is invalid; must be NAME:VALUE, such as retry-after:20\n"


def test_nothing_to_name() -> None:
    """At a terminal, without text or facts, it exits with an error instead of waiting for input."""
    there, here = pty.openpty()
    try:
        bare, told = (
            subprocess.run(
                [sys.executable, "-m", "rung", "classify", *more],
                stdin=here,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            for more in ([], ["--status", "500", "--json"])
        )
    finally:
        os.close(there)
        os.close(here)
    assert bare.returncode == 2
    assert "nothing to classify" in bare.stderr
    assert told.returncode == 0


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_is_explained(kind: Kind) -> None:
    """Each kind has its guide, the rung it enters at on each ladder, and the rules that find it."""
    out = run("explain", kind).output
    flat = " ".join(out.split())
    for part in (GUIDES[kind].summary, GUIDES[kind].looks, GUIDES[kind].avoid, *GUIDES[kind].helps):
        assert " ".join(part.split()) in flat
    table = json.loads(run("explain", kind, "--json").output)["kind"]
    assert table["name"] == kind
    assert table["rules"] == [rule.id for rule in RULES if rule.kind is kind]
    for name, ladder in LADDERS.items():
        rung = ladder.entry.get(kind, ladder.default_entry)
        assert table["enters"][name][0] == {"level": ladder.level(ladder.index(rung)), "rung": rung, "repeats": 0}


def test_a_loop_enters_higher_the_longer_it_runs() -> None:
    """The entry of a loop lists its thresholds."""
    entries = json.loads(run("explain", "loop_detected", "--json").output)["kind"]["enters"]["task"]
    assert [(entry["repeats"], entry["rung"]) for entry in entries] == [
        (0, "replan"),
        (5, "fallback"),
        (8, "force-done"),
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_explained(rule: Any) -> None:
    """Each rule has a kind, a reason, and an example that it matches."""
    table = json.loads(run("explain", rule.id, "--json").output)["rule"]
    assert (table["id"], table["kind"], table["why"], table["retryable"]) == (
        rule.id,
        rule.kind,
        rule.why,
        rule.retryable,
    )
    assert table["example"] == json.loads(json.dumps(explain.evidence_fields(rule.example)))
    assert rule.kind in run("explain", rule.id).output


def test_a_name_that_is_both() -> None:
    """`overloaded` is a kind and a rule: both are explained."""
    assert set(json.loads(run("explain", "overloaded", "--json").output)) == {"kind", "rule"}
    assert "(rule)" in run("explain", "overloaded").output


def test_names_as_people_write_them() -> None:
    """Case, dashes and underscores do not matter."""
    assert run("explain", "Rate-Limit").output == run("explain", "rate_limit").output
    assert run("explain", "HTTP_429").output == run("explain", "http-429").output


def test_without_a_name_all_kinds() -> None:
    """Without a name every kind is listed under its group."""
    out = run("explain").output
    assert all(kind in out for kind in Kind)
    assert len(json.loads(run("explain", "--json").output)["kinds"]) == 7


def test_an_unknown_name() -> None:
    """An unknown name is a one-line error with similar names; exit code 2."""
    done = run("explain", "rate_limt")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "'rate_limt'" in done.stderr
    assert "did you mean rate_limit" in done.stderr


ROWS = [
    {"id": "a", "form": "http", "status": 429, "headers": {"Retry-After": "7"}, "body": "slow", "label": "auth_error"},
    {"id": "b", "form": "tool", "exit_code": 127, "body": "x: not found"},
    {"id": 3, "form": "output", "body": '{"stop_reason": "max_tokens"}'},
    {},
]


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_a_file_of_errors(tmp_path: Path) -> None:
    """Each line is classified in order, with its id; a label is ignored."""
    file = tmp_path / "errors.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n")
    named = lines(run("classify", "--jsonl", str(file)).output)
    assert [(row["id"], row["kind"], row["retryable"], row["retry_after_s"]) for row in named] == [
        ("a", "rate_limit", True, 7.0),
        ("b", "not_found", False, None),
        (3, "output_limit", False, None),
        (None, "unknown", False, None),
    ]
    assert {"id", "kind", "error_type", "retryable", "retry_after_s", "rule"} == set(named[0])


def test_a_pipe_of_errors_is_answered_as_it_comes() -> None:
    """Each line is answered before the next one is written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rung.cli.main", "classify", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for row in ROWS[:2]:
        process.stdin.write(json.dumps(row) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == row["id"]
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (["--jsonl"], "{}\nnot json\n", "standard input, line 2: not JSON"),
        (["--jsonl"], "[1]\n", "line 1: list is not a JSON object"),
        (["--jsonl", "/no/such/file"], "", "/no/such/file: cannot be read: No such file"),
        (["--jsonl", "--status", "429"], "", "remove --status"),
        (["--rules", "/no/such/file", "x"], "", "/no/such/file: cannot be read"),
    ],
)
def test_lines_that_are_no_errors(arguments: list[str], given: str, said: str) -> None:
    """Invalid input exits with 2 and names the line; earlier lines are answered."""
    result = run("classify", *arguments, given=given)
    assert result.exit_code == 2
    assert said in result.output


def test_rules_of_ones_own(tmp_path: Path) -> None:
    """The rules of a file are used as well."""
    file = tmp_path / "rung.toml"
    file.write_text('[[rules]]\nid = "ours"\nkind = "overloaded"\nretryable = true\nmessage_has = "no seat left"\n')
    try:
        named = json.loads(run("classify", "--rules", str(file), "--json", "Sorry, no seat left").output)
        assert (named["rule"], named["why"], named["retryable"]) == ("ours", "User-defined rule.", True)
        assert "ours" in run("explain", "overloaded").output
    finally:
        use_rules()


def test_the_numbers_of_an_overflow() -> None:
    """The requested tokens and the limit are printed."""
    text = "prompt is too long: 210000 tokens > 200000 maximum"
    assert "210,000 requested, limit 200,000" in run("classify", text).output
    assert json.loads(run("classify", text, "--json").output)["tokens"] == {"limit": 200_000, "asked": 210_000}


def test_the_model_is_explained() -> None:
    """`rung explain learned` says what the model is and how sure it must be; `rung classify` names its strongest words."""
    assert "at least 60% for a kind that is" in " ".join(run("explain", "learned").output.split())
    assert json.loads(run("explain", "learned", "--json").output)["rule"]["id"] == "learned"
    odd = "unable to locate the artifact in any of the repositories that were searched for it"
    found = json.loads(run("classify", odd, "--json").output)
    assert found["rule"] == "learned"
    assert "Strongest: “" in found["why"]
