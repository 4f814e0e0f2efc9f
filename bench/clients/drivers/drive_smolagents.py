"""smolagents: a ToolCallingAgent with one tool; a call of final_answer ends it."""

from __future__ import annotations

from typing import Any

from loop import KEY, PROMPT, Cell, serve
from smolagents import OpenAIModel, ToolCallingAgent, tool


def run(cell: Cell) -> str:
    @tool
    def append_row(row: str) -> str:
        """Append a row.

        Args:
            row: The row.
        """
        return cell.append_row(row)

    more: Any = {} if cell.has_tries else {"client_kwargs": {"max_retries": 0}}
    model = OpenAIModel(model_id=cell.model, api_base=cell.v1, api_key=KEY, **more)
    agent = ToolCallingAgent(
        tools=[append_row], model=model, stream_outputs=cell.is_stream, max_steps=6, verbosity_level=0
    )
    result = agent.run(PROMPT, return_full_result=True)
    if result.state != "success":
        raise RuntimeError(result.state)
    return str(result.output)


serve(run)
