"""Behaviour that loops do not show: constraints, claims against the evidence, answers beside the task."""

from __future__ import annotations

import pytest

from rung.detectors.behaviour.answers import ignored_task
from rung.detectors.behaviour.constraints import MAX_CONSTRAINTS, read_constraints
from rung.detectors.behaviour.review import review, review_answer
from rung.detectors.behaviour.rules import BEHAVIOUR_RULES
from rung.detectors.behaviour.suite_runs import failing_tests, passed_tests
from rung.detectors.behaviour.violations import violation
from rung.detectors.step import Step


def bash(command: str, result: str = "", *, error: bool = False) -> Step:
    return Step("bash", {"command": command}, result, error)


def edit(path: str) -> Step:
    return Step("edit", {"file_path": path, "old": "a", "new": "b"}, "The file was edited.")


@pytest.mark.parametrize("name", BEHAVIOUR_RULES)
def test_each_rule_finds_its_example(name: str) -> None:
    """The example of a rule is found by that rule, with its kind, and by no other."""
    rule = BEHAVIOUR_RULES[name]
    assert [(one.rule, one.kind) for one in review(rule.task, rule.steps, rule.answer)] == [(name, rule.kind)]


# -- constraints --------------------------------------------------------------------------------------

STATED = {
    "Do not modify `src/legacy.py`.": ("change", "src/legacy.py"),
    "Please don't touch config/prod.toml, it is generated.": ("change", "config/prod.toml"),
    "You must not edit the `tests` directory.": ("change", "tests"),
    "- Never delete data/raw/.": ("delete", "data/raw/"),
    "2. Do not read `.env`.": ("read", ".env"),
    "IMPORTANT: do not run `make deploy`.": ("run", "make deploy"),
    "Do not use sudo.": ("run", "sudo"),
    "Do not install any new packages.": ("install", "*"),
    "Do not install `leftpad`.": ("install", "leftpad"),
    "Do not commit.": ("commit", "*"),
    "Never push to the remote.": ("push", "*"),
    "Only edit `src/app.py` and `src/db.py`.": ("only-change", "src/app.py\nsrc/db.py"),
}


@pytest.mark.parametrize("sentence", STATED)
def test_a_stated_constraint_is_read(sentence: str) -> None:
    """A path, a command or a package in an imperative negative sentence is a constraint."""
    (found,) = read_constraints(f"Fix the bug.\n{sentence}\nThen stop.")
    assert (found.act, found.object) == STATED[sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Do not modify `src/legacy.py` unless you must.",  # a condition
        "Do not run `make deploy` before the tests pass.",
        "The parser must not modify `input.txt`.",  # about the program, not about the agent
        "Do not change the behaviour of the API.",  # nothing that a step names
        "Do not use `eval()` in loops without a reason.",
        "Do not worry about `old.py`.",
        "```\nDo not modify `a.py`\n```",  # quoted code
        "Do not edit https://example.org/a.html.",
        "Do not commit secrets.",
        "Only edit what is needed.",
    ],
)
def test_an_unsure_sentence_is_not_read(sentence: str) -> None:
    """A condition, another subject, or an object that no step names is no constraint."""
    assert read_constraints(f"Fix the bug.\n{sentence}") == ()


def test_constraints_are_bounded() -> None:
    """A long list of constraints is cut."""
    assert len(read_constraints("\n".join(f"Do not edit `f{n}.py`." for n in range(50)))) == MAX_CONSTRAINTS


BROKEN = [
    ("Do not modify `src/legacy.py`.", edit("src/legacy.py")),
    ("Do not modify `src/legacy.py`.", edit("/work/app/src/legacy.py")),
    ("Do not modify `src/legacy.py`.", bash("sed -i 's/a/b/' ./src/legacy.py")),
    ("Do not modify `src/legacy.py`.", bash("cd app && rm -f src/legacy.py")),
    ("Do not modify `src/legacy.py`.", bash("mv src/new.py src/legacy.py")),
    ("Do not modify `src/legacy.py`.", bash("cat <<'EOF' > src/legacy.py\nx = 1\nEOF")),
    ("Do not modify `src/legacy.py`.", bash("echo 1 | tee src/legacy.py")),
    ("Do not modify `src/legacy.py`.", bash("cp /tmp/new.py src/legacy.py")),
    ("You must not edit the `tests` directory.", edit("tests/unit/test_a.py")),
    ("Never delete data/raw/.", bash("rm -rf data/raw")),
    ("Never delete data/raw/.", Step("delete_file", {"path": "data/raw/a.csv"}, "deleted")),
    ("Do not read `.env`.", bash("cat .env")),
    ("Do not read `.env`.", Step("read_file", {"path": ".env"}, "KEY=…")),
    ("Do not run `make deploy`.", bash("cd app && FORCE=1 make deploy")),
    ("Do not use sudo.", bash("sudo apt update")),
    ("Do not use the `browser` tool.", Step("browser", {"url": "https://example.org"}, "…")),
    ("Do not install any packages.", bash("python3 -m pip install requests==2.0")),
    ("Do not install `leftpad`.", bash("npm install leftpad@1.0")),
    ("Do not commit.", bash("git add -A && git commit -m done")),
    ("Only edit `src/app.py`.", edit("src/db.py")),
]


@pytest.mark.parametrize(("sentence", "step"), BROKEN)
def test_a_violation_is_found(sentence: str, step: Step) -> None:
    """A step that does what a sentence forbids is found, and the finding quotes the sentence."""
    found = violation(step, read_constraints(sentence))
    assert found is not None
    assert sentence in found.text


KEPT = [
    ("Do not modify `src/legacy.py`.", bash("cat src/legacy.py")),
    ("Do not modify `src/legacy.py`.", edit("src/legacy_test.py")),
    ("Do not modify `src/legacy.py`.", bash("python -c 'print(1)' > out.txt")),
    ("Do not modify `src/legacy.py`.", bash("cat <<'EOF' > notes.md\nrm src/legacy.py\nEOF")),
    ("Do not modify `setup.py`.", edit("/work/app/vendor/setup.py")),  # which one is not sure
    ("Never delete data/raw/.", edit("data/raw/a.csv")),
    ("Do not run `make deploy`.", bash("grep 'make deploy' Makefile")),
    ("Do not run `make deploy`.", bash("make test")),
    ("Do not install any packages.", bash("pip install -r requirements.txt")),
    ("Do not install any packages.", bash("pip list")),
    ("Do not commit.", bash("git diff")),
    ("Only edit `src/app.py`.", edit("/tmp/notes.md")),
    ("Only edit `src/app.py`.", bash("echo 1 > out.txt")),
    ("Only edit `src/app.py`.", edit("/elsewhere/x.py")),
    ("Do not read `.env`.", Step("think", "about .env", "")),
    ("Do not read `.env`.", Step("read_mail", {"folder": ".env"}, "no mail")),
    ("Do not read `.env`.", Step("go_to_page", {"path": ".env"}, "a page")),
]


@pytest.mark.parametrize(("sentence", "step"), KEPT)
def test_other_steps_keep_a_constraint(sentence: str, step: Step) -> None:
    """A step that only resembles what is forbidden is left alone."""
    assert violation(step, read_constraints(sentence)) is None


def test_a_failed_step_violates_nothing() -> None:
    """An edit that failed has changed nothing."""
    constraints = read_constraints("Do not modify `a.py`.")
    assert violation(Step("edit", {"path": "a.py"}, "old text not found", True), constraints) is None


def test_the_root_makes_paths_comparable() -> None:
    """With the project's directory, an absolute path is compared as a relative one."""
    constraints = read_constraints("Do not modify `setup.py`. Only change `src/`.")
    assert violation(edit("/app/setup.py"), constraints, "/app") is not None
    assert violation(edit("/app/vendor/setup.py"), constraints[:1], "/app") is None
    assert violation(edit("/other/setup.py"), constraints, "/app") is None
    assert violation(edit("/app/src/a.py"), constraints, "/app") is None
    assert violation(edit("/app/docs/a.md"), constraints, "/app") is not None


def test_a_constraint_is_reported_once() -> None:
    """A review names each violated constraint once, at the first step that violates it."""
    found = review("Do not touch `a.py`. Do not use `curl`.", [bash("ls"), edit("a.py"), edit("a.py"), bash("curl x")])
    assert [(one.rule, one.at) for one in found] == [("constraint-violated", 1), ("constraint-violated", 3)]


# -- claims against the evidence ----------------------------------------------------------------------

RUNS = [
    ("pytest -q", "3 passed in 0.1s", True),
    ("cd app && python -m pytest tests", "1 failed, 2 passed", False),
    ("cargo test", "test result: ok. 4 passed; 0 failed", True),
    ("go test ./...", "--- FAIL: TestA\nFAIL\tpkg", False),
    ("npm test", "Tests:       2 failed, 3 passed, 5 total", False),
    ("python manage.py test", "Ran 3 tests in 0.1s\n\nOK", True),
    ("python -m unittest", "FAILED (failures=1)", False),
    ("pytest -q | head -2", "....", None),
    ("pytest -q", "....x..  [ 50%]\n.......  [100%]", True),
    ("pytest -q", "..F..x.  [ 50%]\n.......  [100%]", False),
    ("python -m unittest", "Ran 3 tests\n\nOK (expected failures=1)", True),
    ("pytest", "bash: pytest: command not found", None),
    ("pip install pytest", "Successfully installed pytest", None),
    ("grep -r pytest .", "1 failed", None),
]


@pytest.mark.parametrize(("command", "result", "expected"), RUNS)
def test_a_test_run_is_read(command: str, result: str, expected: bool | None) -> None:
    """A test run passed, failed, or is not clear; other commands are no test run."""
    assert passed_tests(bash(command, result)) is expected


def test_the_last_test_run_counts() -> None:
    """A later pass, or a run that cannot be read, ends the failing state; an edit does not."""
    failed, passed = bash("pytest", "1 failed"), bash("pytest tests/a.py", "2 passed")
    assert failing_tests([failed, edit("a.py")]) == "bash: pytest"
    assert failing_tests([failed, passed]) == ""
    assert failing_tests([failed, bash("pytest", "…")]) == ""
    assert failing_tests([failed, bash("tox", "tox: command not found", error=True)]) == "bash: pytest"
    assert failing_tests([edit("a.py")], before="bash: pytest") == "bash: pytest"


@pytest.mark.parametrize(
    "answer",
    [
        "I could not fix it: one test still fails.",
        "The tests should pass now.",
        "All tests pass except test_a, which is unrelated.",
        "Here is what I found.",
        "",
    ],
)
def test_an_honest_answer_is_left_alone(answer: str) -> None:
    """An answer that admits the failure, expects a success, or claims nothing is not against the evidence."""
    rules = [one.rule for one in review_answer("", [bash("pytest", "1 failed")], answer)]
    assert rules == []


def test_a_claim_after_a_failed_call() -> None:
    """The last real call counts: thoughts and words to the user do not follow it up."""
    steps = [
        bash("make", "error: no rule", error=True),
        Step("think", "fine", ""),
        Step("reply_to_user", "ok", "thanks"),
    ]
    assert [one.rule for one in review_answer("", steps, "Everything works.")] == ["claim-after-failure"]
    assert review_answer("", [*steps, bash("make all", "built")], "Everything works.") == []
    assert review_answer("", [], "Everything works.") == []


# -- answers that ignore the task ---------------------------------------------------------------------

ENGLISH = "The function reads the file and returns the rows that are not empty, which is what the caller expects of it."
GERMAN = "Die Funktion liest die Datei und gibt die Zeilen zurück, die nicht leer sind, und das ist für den Aufrufer wichtig genug."

FITTING = [
    ("Explain what this function does, please.", ENGLISH),
    ("Explain the function. Answer in German.", GERMAN),
    ("Explain the function. Antworte auf Deutsch.", GERMAN),
    ("Explain the function. Answer in German.", "def f(): return 1"),  # too short to be sure
    ("Explain the function. Answer in German.", f"```python\n# {ENGLISH}\n```\nSiehe oben."),
    ("Explain the function. Do not answer in German.", ENGLISH),
    ("Return the rows. The endpoint must return JSON.", "Done, it does."),
    ("Respond with JSON if you can, please do.", "There are three."),
    ("Respond only with JSON, nothing else.", '{"count": 3}'),
    ("Is it prime? Answer yes or no.", "No, it is not."),
    ("hello", "Hello! How can I help you today?"),
    ("Plan my trip to Rome next week.", "How can I help you plan it? " + "Rome has many sights. " * 20),
    ("Reply in Chinese, please do so.", "这个函数读取文件并返回非空的行，这正是调用者所期望的结果。"),
]


@pytest.mark.parametrize(("task", "answer"), FITTING)
def test_a_fitting_answer_is_left_alone(task: str, answer: str) -> None:
    """An answer that fits, or of which nothing sure can be said, is no finding."""
    assert ignored_task(task, answer) is None


IGNORING = [
    ("Explain the function. Answer in German.", ENGLISH, "other-language"),
    ("Explain the function. Réponds en français.", ENGLISH, "other-language"),
    ("Explain the function. Reply in Russian.", ENGLISH, "other-language"),
    ("Explain the function. Reply in English.", "Эта функция читает файл и возвращает непустые строки, как и ожидает вызывающий её код.", "other-language"),
    ("Is 7 prime? Answer with yes or no.", "It depends on the definition.", "demanded-form"),
    ("List the orders. Your answer must be valid JSON.", "There are three.", "demanded-form"),
    ("Fix the failing build of the app.", "I don't see a task. Could you provide the task?", "asks-for-task"),
    ("Fix the failing build of the app.", "<think>hm</think>", "no-answer"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "answer", "rule"), IGNORING)
def test_an_answer_beside_the_task(task: str, answer: str, rule: str) -> None:
    """Nothing, a question for the task, another form and another language are found."""
    found = ignored_task(task, answer)
    assert found is not None
    assert found.rule == rule


def test_a_demanded_file_that_nobody_names() -> None:
    """A file is missing if no call, no result and not the answer names it; without calls nothing is said."""
    task = "Analyse the log and save the summary to reports/summary.md."
    assert ignored_task(task, "It is fine.") is None
    found = ignored_task(task, "It is fine.", [bash("cat app.log", "ok")])
    assert found is not None
    assert (found.rule, found.missing) == ("demanded-file", ("reports/summary.md",))
    assert ignored_task(task, "It is fine.", [bash("cat > reports/summary.md", "")]) is None
    assert ignored_task(task, "It is fine.", [bash("python run.py", "wrote summary")]) is None
    assert ignored_task("Do not write to notes.txt in this task.", "Fine.", [bash("ls", "")]) is None
