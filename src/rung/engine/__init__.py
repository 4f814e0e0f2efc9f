"""The engine carries out decisions: declared ports, one generator of recovery steps, a blocking and an async driver."""
