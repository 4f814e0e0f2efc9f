"""DSPy: one prediction with a field, without its cache. It has no tool to run."""

from __future__ import annotations

import dspy
from loop import KEY, Cell, serve


def run(cell: Cell) -> str:
    more = {} if cell.has_tries else {"num_retries": 0}
    model = dspy.LM(
        f"openai/{cell.model}", api_base=cell.v1, api_key=KEY, cache=False, temperature=None, max_tokens=None, **more
    )
    with dspy.context(lm=model, adapter=dspy.ChatAdapter()):
        text = dspy.Predict("question -> answer")(question="Recite the words.").answer
    cell.append_row("one-row")
    return text


serve(run)
