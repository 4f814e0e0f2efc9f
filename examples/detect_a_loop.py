"""Detect a loop that raises no exception: the same call with the same result, reported at three, five and eight times."""

from __future__ import annotations

from rung.detect import SessionMonitor, Step


def main() -> None:
    """Watch an agent that builds again and again, then changes something."""
    monitor = SessionMonitor()
    build = Step("bash", {"command": "make build"}, "make: no rule to make target 'build'", error=True)
    for call in range(1, 9):
        found = monitor.check(build)
        if found is not None and found.is_new_stage:
            print(f"call {call}: {found.failure.kind}, rule {found.rule}, next: {found.stage}")
    edited = monitor.check(Step("edit", {"path": "Makefile", "new": "build:\n\tcc app.c"}, "1 line changed"))
    print("after an edit:", "a loop" if edited is not None else "no loop")


if __name__ == "__main__":
    main()
