"""Instructor: one structured answer, with Instructor's own validation and retries. It has no tool to run."""

from __future__ import annotations

import anthropic
import instructor
import openai
from loop import KEY, Cell, serve


def run(cell: Cell) -> str:
    told = [{"role": "user", "content": "Recite the words."}]
    if cell.wire == "messages":
        client = instructor.from_anthropic(anthropic.Anthropic(base_url=cell.url, api_key=KEY, **cell.retries))
        answer = client.messages.create(model=cell.model, max_tokens=2_000, messages=told, response_model=None)
        text = "".join(block.text for block in answer.content)
    else:
        client = instructor.from_openai(openai.OpenAI(base_url=cell.v1, api_key=KEY, **cell.retries))
        text = (
            client.chat.completions.create(model=cell.model, messages=told, response_model=None)
            .choices[0]
            .message.content
        )
    cell.append_row("one-row")
    return text or ""


serve(run)
