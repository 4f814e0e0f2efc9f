"""Check every result: what the check finds missing is asked for, and only a good result counts as a success."""

from __future__ import annotations

import rung

SECTIONS = ("Summary", "Risks")
drafts = iter(["Summary: fine.", "Summary: fine. Risks: none."])


def write(request: rung.Request) -> str:
    """Return the next draft."""
    if request.recovery:
        print("the agent was told:", request.recovery.splitlines()[0])
    return next(drafts)


def check(draft: str) -> rung.Evidence | None:
    """Return None if the draft is good, otherwise evidence of what is wrong."""
    missing = tuple(section for section in SECTIONS if section not in draft)
    if not missing:
        return None
    return rung.Evidence(text="sections missing", finding=rung.Kind.PARTIAL_OUTPUT, missing=missing, output=draft)


def main() -> None:
    """Recover an incomplete draft."""
    outcome = rung.recover_sync(write, "Write the report", check=check)
    print(f"{outcome.status}: {outcome.value}")


if __name__ == "__main__":
    main()
