"""Climb the task ladder: the error is added to the prompt, and another model takes over when the first cannot do it."""

from __future__ import annotations

import rung


def agent(request: rung.Request) -> str:
    """Succeed only with the larger model, as an agent with a hard task may."""
    print(f"attempt with {request.model!r}; the prompt has {len(request.prompt)} characters")
    rung.report_cost(0.05 if request.model == "small" else 0.40)
    if request.model == "small":
        raise rung.AttemptError("the proof has a gap in step 3", finding="capability_mismatch")
    return "the proof"


def main() -> None:
    """Recover with two models; the second costs more, within the budget."""
    policy = rung.policy("task", models=["small", {"name": "large", "cost": 0.40}], dollars=2.00)
    outcome = rung.recover_sync(agent, rung.Request(prompt="Prove the lemma", model="small"), policy=policy)
    print(f"{outcome.status}: {outcome.value} (levels {outcome.path})")
    print(f"spent ${outcome.dollars:.2f}")


if __name__ == "__main__":
    main()
