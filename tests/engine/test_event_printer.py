"""`print_events`: the lines of `rung run`, for a recovery in Python."""

from __future__ import annotations

import io

import rung
from rung.cli.event_printer import ladder_info
from rung.core.text.progress_line import LadderInfo, ProgressLines
from rung.testing import FakeClock, HttpError, Script


def printed(*items: object, color: bool | None = None, policy: rung.Policy | str = "task") -> list[str]:
    """What is printed about a recovery with this script."""
    file = io.StringIO()
    rung.recover_sync(
        Script(*items),
        rung.Request(prompt="go", model="small"),
        policy=policy,
        listeners=[rung.print_events(file, color=color)],
        clock=FakeClock(),
        breakers=None,
        jitter=lambda: 0.5,
    )
    return file.getvalue().splitlines()


def test_lines() -> None:
    """Each attempt and each decision is a line: what failed, what is done, and how it ended."""
    lines = printed(HttpError(529, "Overloaded"), rung.AttemptError("no such file", finding="not_found"), "done")
    assert lines == [
        "✗ attempt 1    overloaded: Overloaded (0 s)",
        "↻ retry        again in 500 ms, attempt 2 of 4",
        "✗ attempt 2    not_found: no such file (0 s)",
        "↑ nudge        keep the approach and adjust it to the error",
        "✓ attempt 3    recovered (0 s)",
    ]


def test_colors() -> None:
    """A file is not coloured unless it is a terminal or colours are asked for."""
    assert "\x1b[" not in "".join(printed("done"))
    assert "\x1b[32m✓\x1b[0m" in printed("done", color=True)[0]


def test_one_printer_for_several_recoveries() -> None:
    """A printer can be shared by recoveries: none takes over the state of another, and nothing is kept of those that ended."""
    file = io.StringIO()
    printer = rung.print_events(file)
    jobs = [rung.GatherJob(Script(TimeoutError("late"), "done"), f"job {n}") for n in range(3)]
    policy = rung.policy("call", backoff={"base": 0})
    rung.gather_sync(*jobs, policy=policy, listeners=[printer], breakers=None, retry_budget=None)
    assert file.getvalue().count("✓ attempt 2    recovered") == 3
    assert printer._lines == {}  # noqa: SLF001  # nothing public shows it


def test_the_command_line_uses_the_same_lines() -> None:
    """With the policy at hand, the same renderer adds levels and the cap of attempts: that is all that differs."""
    policy = rung.policy("task", attempts=2)
    outcome = rung.recover_sync(
        Script(HttpError(529, "Overloaded"), "done"), "go", policy=policy, clock=FakeClock(), jitter=lambda: 0.5
    )
    from rung.core.domain.incident import Incident

    texts = []
    for ladder in (ladder_info(policy), LadderInfo.of_incident(Incident.of(outcome.events))):
        lines, incident = ProgressLines(), Incident()
        shown = []
        for event in outcome.events:
            incident.fold(event)
            shown.append(lines.add(event, incident, ladder, None))
        texts.append([line.text for line in shown if line is not None])
    assert [one.replace("of 2", "of 4") for one in texts[0]] == texts[1]
