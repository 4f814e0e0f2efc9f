"""Protect one call: a passing failure is retried, a lasting one is raised at once with its path as notes."""

from __future__ import annotations

import rung
from rung.testing import HttpError

replies = iter([HttpError(529, "Overloaded"), ConnectionResetError(104, "Connection reset by peer"), "hello"])


@rung.guarded(rung.policy("call", backoff={"base": 0.01}))  # short waits, for the example
def ask(prompt: str) -> str:
    """Fail twice, then answer."""
    reply = next(replies)
    if isinstance(reply, Exception):
        raise reply
    return f"{reply} {prompt}"


@rung.guarded
def locked(prompt: str) -> str:
    """Fail as a provider does that does not know the key."""
    raise HttpError(401, f"invalid x-api-key for {prompt!r}")


def main() -> None:
    """Call both."""
    print(ask("Ada"))
    try:
        locked("Ada")
    except HttpError as error:
        print(f"{error}")
        print("\n".join(error.__notes__))


if __name__ == "__main__":
    main()
