"""CrewAI: a crew of one agent with one tool."""

from __future__ import annotations

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from loop import KEY, PROMPT, Cell, serve


def run(cell: Cell) -> str:
    @tool("append_row")
    def append_row(row: str) -> str:
        """Append a row."""
        return cell.append_row(row)

    prefix, url = ("anthropic", cell.url) if cell.wire == "messages" else ("openai", cell.v1)
    model = LLM(model=f"{prefix}/{cell.model}", base_url=url, api_key=KEY, **cell.retries)
    agent = Agent(role="writer", goal="write", backstory="none", llm=model, tools=[append_row], verbose=False)
    task = Task(description=PROMPT, expected_output="the words", agent=agent)
    return str(Crew(agents=[agent], tasks=[task], verbose=False).kickoff())


serve(run)
