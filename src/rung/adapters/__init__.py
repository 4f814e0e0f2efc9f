"""One file per foreign thing: its errors to evidence, a rung's change to its parameters."""
