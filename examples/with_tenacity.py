"""Keep your retry library and let Rung classify: tenacity repeats only what a repetition can fix."""

from __future__ import annotations

import contextlib

from tenacity import retry, retry_if_exception, stop_after_attempt, wait_none

import rung
from rung.testing import HttpError

ERRORS = (HttpError(529, "Overloaded"), HttpError(401, "invalid x-api-key"), HttpError(402, "insufficient credits"))


def calls_until_the_end(error: Exception) -> int:
    """Return how often tenacity calls a function that always fails with this error."""
    calls = 0

    @retry(retry=retry_if_exception(rung.is_retryable), stop=stop_after_attempt(3), wait=wait_none(), reraise=True)
    def ask() -> str:
        nonlocal calls
        calls += 1
        raise error

    with contextlib.suppress(HttpError):
        ask()
    return calls


def main() -> None:
    """Count the calls for three errors."""
    for error in ERRORS:
        kind = rung.classify(error).kind
        calls = calls_until_the_end(error)
        print(f"{error.status_code} {kind}: {calls} {'call' if calls == 1 else 'calls'}")


if __name__ == "__main__":
    main()
