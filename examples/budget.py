"""Limit what a task may cost: when the budget is spent, the run ends partial and says what was finished."""

from __future__ import annotations

import json

import rung


def agent(_: rung.Request) -> str:
    """Finish one part of the work, pay for it, and fail in the next part."""
    rung.report_step("read the sources")
    rung.report_cost(0.30)
    raise rung.AttemptError("the summary misses two sources", finding="low_quality")


def main() -> None:
    """Recover within 50 cents, which the second attempt uses up; then within 5 dollars, where the ladder ends the run."""
    for dollars in (0.50, 5.00):
        outcome = rung.recover_sync(agent, "Write the report", policy=rung.policy("task", dollars=dollars))
        contract = outcome.to_dict()
        print(json.dumps({key: contract[key] for key in ("status", "failureReason", "completedSteps")}, indent=2))
        print(f"spent ${outcome.dollars:.2f} of ${dollars:.2f} in {outcome.attempts} attempts")


if __name__ == "__main__":
    main()
