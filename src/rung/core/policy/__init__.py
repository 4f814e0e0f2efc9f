"""Policies: backoff, budgets, circuit breaker, preset ladders, recovery prompts, and reading and writing them."""
