"""`bench.corpus` counts right, says what is wrong with a file, and can be held against needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.corpus.litellm_mapping import own_error

ROOT = Path(__file__).parents[2]


def row(number: int, label: str, retryable: bool, **facts: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": f"made-{number}",
        "form": "http",
        "provider": "openai",
        "status": None,
        "headers": {},
    }
    truth = {"label": label, "retryable": retryable, "retry_after_s": None, "also": []}
    return plain | {"body": "", "message": "", "exception_type": None} | truth | facts


# What the table of codes says of each is plain, so the sums below are made by hand.
ROWS = [
    row(1, "rate_limit", True, status=429, body="slow down", headers={"Retry-After": "20"}, retry_after_s=20.9),
    row(2, "rate_limit", True, status=429, body="slow down", headers={"retry-after": "20"}, retry_after_s=22.0),
    row(3, "quota_exhausted", False, status=429, body="the account has no money left"),  # table: rate_limit, again
    row(4, "service_down", False, status=500, body="closed for the week", also=["server_error"]),  # lenient alone
    row(5, "model_unavailable", False, status=404, body="no such model"),  # a 404 covers it
    row(6, "network", True, form="exception", exception_type="ConnectionResetError", body="reset", retry_after_s=3),
    row(7, "not_found", False, form="tool", exit_code=127, body="sh: frobnicate: command not found"),
    row(8, "timeout", True, form="tool", exit_code=1, body="gave up after a minute", also=["tool_error"]),
    row(9, "refusal", False, form="output", body="I would rather not."),
]
OBVIOUS = [
    row(1, "rate_limit", True, status=429, body="Too Many Requests"),
    row(2, "auth_error", False, status=401, body="invalid x-api-key"),
    row(3, "server_error", True, status=500, body="Internal Server Error"),
    row(4, "not_found", False, form="tool", exit_code=127, body="sh: frobnicate: command not found"),
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def corpus(*arguments: object, start: tuple[str, ...] = ("-m", "bench.corpus")) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def tally(rows: int, strict: int, lenient: int, retryable: int, waits: int, waits_right: int) -> dict[str, int]:
    return {
        "rows": rows, "strict": strict, "lenient": lenient, "retryable": retryable,
        "waits": waits, "waits_right": waits_right,
    }  # fmt: skip


def test_sums(tmp_path: Path) -> None:
    """Strict, lenient, retryable and retry_after are counted for each form and for all."""
    out = tmp_path / "out.json"
    done = corpus(written(tmp_path / "rows.jsonl", ROWS), "--who", "status", "--json", out)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(out.read_text())
    assert found["scores"] == {
        "status table": {
            "http+exception": tally(6, 3, 4, 3, 3, 1),
            "http": tally(5, 3, 4, 3, 2, 1),
            "exception": tally(1, 0, 0, 0, 1, 0),
            "tool": tally(2, 1, 2, 1, 0, 0),
            "output": tally(1, 0, 0, 1, 0, 0),
            "all": tally(9, 4, 6, 5, 3, 1),
        }
    }
    line = next(line for line in done.stdout.splitlines() if " all " in line)
    assert line.split() == ["all", "9", "4/9", "44.4%", "6/9", "66.7%", "5/9", "55.6%", "1/3", "33.3%"]
    assert max(map(len, done.stdout.splitlines()[1:])) <= 100  # but for the first, which names the file


def test_kinds_and_confusions(tmp_path: Path) -> None:
    """Precision, recall and what was taken for what follow from rung's own answers."""
    out = tmp_path / "out.json"
    wrong = row(5, "refusal", False, status=429, body="Too Many Requests", also=["gave_up"])
    done = corpus(written(tmp_path / "rows.jsonl", [*OBVIOUS, wrong]), "--who", "rung", "--wrong", "--json", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    by_kind = {one["kind"]: (one["labelled"], one["answered"], one["right"]) for one in found["kinds"]}
    assert by_kind["rate_limit"] == (1, 2, 1)
    assert by_kind["refusal"] == (1, 0, 0)
    assert found["confusions"] == [{"label": "refusal", "answered": "rate_limit", "ids": ["made-5"]}]
    assert "refusal -> rate_limit: 1  made-5" in done.stdout
    assert "refusal (also gave_up) -> rate_limit, by " in done.stdout
    assert "Too Many Requests" not in out.read_text()  # a row's text is not ours to pass on


def test_labels_are_hidden(tmp_path: Path) -> None:
    """A classifier is not shown what is right: other labels, the same answers."""
    answers = []
    for name, label in (("one", "rate_limit"), ("other", "refusal")):
        out = tmp_path / f"{name}.json"
        truth = {"label": label, "retryable": label == "rate_limit", "retry_after_s": 7, "also": [label], "why": label}
        rows = [one | truth | {"source": label} for one in OBVIOUS]
        assert corpus(written(tmp_path / name, rows), "--who", "rung,status", "--json", out).returncode == 0
        answers.append(json.loads(out.read_text())["answers"])
    assert answers[0] == answers[1]


def test_only_some_forms(tmp_path: Path) -> None:
    """`--form` leaves the other rows out, also of the sum."""
    out = tmp_path / "out.json"
    done = corpus(written(tmp_path / "rows.jsonl", ROWS), "--who", "status", "--form", "exception,tool", "--json", out)
    assert done.returncode == 0, done.stderr
    scores = json.loads(out.read_text())["scores"]["status table"]
    assert [scores[name]["rows"] for name in ("http", "exception", "tool", "all")] == [0, 1, 2, 3]


def test_speed(tmp_path: Path) -> None:
    """`--speed` gives a rate for each classifier and a median for each form there is."""
    out = tmp_path / "out.json"
    done = corpus(written(tmp_path / "rows.jsonl", ROWS), "--who", "rung,status", "--speed", "--json", out)
    assert done.returncode == 0, done.stderr
    speeds = json.loads(out.read_text())["speeds"]
    assert list(speeds) == ["rung", "status table"]
    for speed in speeds.values():
        assert min(speed["again"], speed["first"]) > 0
        assert set(speed["medians"]) == {"http", "exception", "tool", "output"}


def test_litellm_missing(tmp_path: Path) -> None:
    """Where LiteLLM is not installed the table says so, and how to install it."""
    code = (
        "import runpy, sys; sys.modules['litellm'] = None; sys.path.insert(0, '.');"
        "runpy.run_module('bench.corpus', run_name='__main__')"
    )
    done = corpus(written(tmp_path / "rows.jsonl", OBVIOUS), start=("-c", code))
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("litellm"))
    assert "not installed" in line
    assert "pip install --group corpus" in line


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 3: not JSON"),
        ("[]", "line 3: must be an object, not list"),
        ({"label": "sunburn"}, "line 3: field 'label': 'sunburn' is not a kind"),
        ({"also": ["refusal", 7]}, "line 3: field 'also': 7 is not a kind"),
        ({"also": [["refusal"]]}, "line 3: field 'also': ['refusal'] is not a kind"),
        ({"status": True}, "line 3: field 'status': True is not int or null"),
        ({"retryable": "yes"}, "line 3: field 'retryable': 'yes' is not bool"),
        ({"retry_after_s": -1}, "line 3: field 'retry_after_s': -1 is not a number of seconds"),
        ({"form": "letter"}, "line 3: field 'form': 'letter' must be one of http, exception, tool, output"),
        ({"id": "made-1"}, "line 3: field 'id': 'made-1' is a duplicate"),
        ({"form": None}, "line 3: field 'form': None is not str"),
    ],
)
def test_bad_line(tmp_path: Path, line: str | dict[str, Any], says: str) -> None:
    """A bad line ends the run with 2 and one line that names the line and the field."""
    path = written(tmp_path / "rows.jsonl", OBVIOUS[:1])
    bad = line if isinstance(line, str) else json.dumps(OBVIOUS[1] | line)
    path.write_text(path.read_text() + "\n" + bad + "\n")
    done = corpus(path, "--who", "status")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_field_missing(tmp_path: Path) -> None:
    """So does a line without a field that is needed."""
    rows = [{name: value for name, value in OBVIOUS[0].items() if name != "retryable"}]
    done = corpus(written(tmp_path / "rows.jsonl", rows), "--who", "status")
    assert done.returncode == 2
    assert done.stderr.endswith("rows.jsonl: line 1: field 'retryable' is missing\n")


@pytest.mark.parametrize(("content", "says"), [(None, "No such file or directory"), ("\n", "no rows")])
def test_no_file(tmp_path: Path, content: str | None, says: str) -> None:
    """So does a file that is not there, or empty."""
    path = tmp_path / "rows.jsonl"
    if content is not None:
        path.write_text(content)
    done = corpus(path)
    assert (done.returncode, done.stderr) == (2, f"corpus: {path}: {says}\n")


@pytest.mark.parametrize(
    ("needs", "code", "says"),
    [
        ("strict=75,retryable=75,all=80", 0, ""),
        ("strict=75.1", 1, "strict: 75.1 % needed, http+exception strict is 75.00 %"),
        ("retryable=76", 1, "retryable: 76 % needed, http+exception retryable is 75.00 %"),
        ("strict=75,all=81", 1, "all: 81 % needed, all strict is 80.00 %"),
        ("speed=1", 2, "'speed' is invalid; must be one of strict, retryable, all"),
        ("strict", 2, "'strict' is not name=percent"),
    ],
)
def test_needs(tmp_path: Path, needs: str, code: int, says: str) -> None:
    """`--need` ends with 1 where rung is below, and says where; with 2 where it is not understood."""
    wrong = row(5, "refusal", False, status=429, body="Too Many Requests")
    done = corpus(written(tmp_path / "rows.jsonl", [*OBVIOUS, wrong]), "--who", "rung", "--need", needs)
    assert done.returncode == code
    assert says in done.stderr
    assert bool(done.stderr) == bool(code)


def test_needs_without_rows(tmp_path: Path) -> None:
    """A need that no row speaks to is not met."""
    done = corpus(written(tmp_path / "rows.jsonl", OBVIOUS[3:]), "--who", "rung", "--need", "strict=1")
    assert done.returncode == 1
    assert "no http+exception rows" in done.stderr


class BudgetExceededError(Exception):
    """As LiteLLM declares it: without a model, with two amounts."""

    def __init__(self, current_cost: float, max_budget: float, message: str | None = None) -> None:
        super().__init__(message, current_cost, max_budget)


class APIError(Exception):
    """As LiteLLM declares it: with a status."""

    def __init__(self, status_code: int, message: str, llm_provider: str, model: str) -> None:
        super().__init__(status_code, message, llm_provider, model)


def test_errors_of_litellm_are_made_with_what_their_classes_take() -> None:
    """Rows that name one of LiteLLM's classes become an error of it, whatever its constructor takes."""
    assert own_error(BudgetExceededError, "spent", "openai", 400).args == ("spent", 0.0, 0.0)
    assert own_error(APIError, "down", "openai", None).args == (500, "down", "openai", "model")
