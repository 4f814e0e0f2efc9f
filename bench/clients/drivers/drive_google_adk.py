"""Google ADK with LiteLLM: an agent with one tool."""

from __future__ import annotations

import asyncio

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from litellm import acompletion  # noqa: F401  # ADK imports LiteLLM in its first call, which takes long
from loop import KEY, PROMPT, Cell, serve


async def ask(cell: Cell) -> str:
    def append_row(row: str) -> str:
        """Append a row."""
        return cell.append_row(row)

    prefix, url = ("anthropic", cell.url) if cell.wire == "messages" else ("openai", cell.v1)
    more = {} if cell.has_tries else {"num_retries": 0, "max_retries": 0}
    model = LiteLlm(model=f"{prefix}/{cell.model}", api_base=url, api_key=KEY, **more)
    runner = InMemoryRunner(agent=Agent(name="a", model=model, tools=[append_row]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    mode = StreamingMode.SSE if cell.is_stream else StreamingMode.NONE
    message = types.Content(role="user", parts=[types.Part(text=PROMPT)])
    text = ""
    told = {
        "user_id": "u",
        "session_id": session.id,
        "new_message": message,
        "run_config": RunConfig(streaming_mode=mode),
    }
    async for event in runner.run_async(**told):
        if event.error_code:
            raise RuntimeError(f"{event.error_code}: {event.error_message}")
        if event.content and event.is_final_response() and not event.partial:
            text = "".join(part.text or "" for part in event.content.parts or ())
    return text


serve(lambda cell: asyncio.run(ask(cell)))
