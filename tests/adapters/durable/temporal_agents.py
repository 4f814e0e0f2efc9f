"""A workflow that runs a Pydantic AI agent. A test sets the agent: it knows the address of its provider."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

AGENT: list[Any] = []


@workflow.defn
class Asking:
    """Asks the agent."""

    @workflow.run
    async def run(self) -> str:
        return str((await AGENT[0].run("count to 5")).output)
