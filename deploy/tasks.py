"""Tasks of the example worker. Your own image has your own module: `FROM rung`, and copy it to the Python path."""

import rung


@rung.durable.task("greet")
def greet(name: str) -> dict[str, str]:
    """Return a greeting; a worker that takes this run over does not repeat the step."""
    text = rung.durable.step("text", lambda: f"Hello, {name}.")
    return {"text": text}
