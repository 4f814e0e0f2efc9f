"""Several choices are passed on as they come, and never spliced: a continuation continues one text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.security.upstream.scripted import WORDS, Reply, chunk, written
from tests.wires.strict import PATHS, events_of

if TYPE_CHECKING:
    from tests.security.upstream.scripted import Rig

OTHER = ["un", " deux", " trois", " quatre"]
PIECES = [chunk({"content": word}, index=at) for pair in zip(WORDS, OTHER, strict=True) for at, word in enumerate(pair)]
ENDS = [chunk({}, "stop", index) for index in (0, 1)]
DONE: tuple[str, Any] = ("", "[DONE]")


def said(text: str) -> dict[int, str]:
    """The text of each choice."""
    found: dict[int, str] = {}
    for _, data in events_of(text):
        for choice in json.loads(data).get("choices", ()) if data != "[DONE]" else ():
            found[choice["index"]] = found.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return found


def test_two_choices_pass(rig: Rig) -> None:
    """A complete stream of two choices is one request, and each choice has its own text."""
    rig.upstream.use(Reply(written([*PIECES, *ENDS, DONE])))
    text = rig.stream("chat", n=2)
    assert said(text) == {0: "".join(WORDS), 1: "".join(OTHER)}
    assert (text.count("[DONE]"), rig.asked) == (1, 1)


@pytest.mark.parametrize("cut", [3, 6, 8, 9])
def test_two_choices_that_break(rig: Rig, cut: int) -> None:
    """A broken stream of two choices ends with an error, and no choice gets text of the other."""
    sent = [*PIECES, *ENDS][:cut]
    rig.upstream.use(Reply(written(sent), "cut"), Reply(written([*PIECES, *ENDS, DONE])))
    text = rig.stream("chat", n=2)
    got = said(text)
    assert "".join(WORDS).startswith(got[0])
    assert "".join(OTHER).startswith(got[1])
    assert "error" in json.loads(events_of(text)[-1][1])
    assert rig.asked == 1


def test_an_early_failure_is_retried(rig: Rig) -> None:
    """A stream of two choices that breaks before its first content is asked for again."""
    rig.upstream.use(Reply(b"", "cut"), Reply(written([*PIECES, *ENDS, DONE])))
    assert said(rig.stream("chat", n=2)) == {0: "".join(WORDS), 1: "".join(OTHER)}
    assert rig.asked == 2


def test_two_whole_choices_at_the_limit(rig: Rig) -> None:
    """A whole response of two choices, one of which reached its limit, is passed on with both choices."""
    choices = [
        {"index": at, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
        for at, (text, reason) in enumerate([("one", "length"), ("un", "stop")])
    ]
    body = {"id": "c_1", "object": "chat.completion", "model": "m", "created": 1, "choices": choices}
    rig.upstream.use(Reply(json.dumps(body).encode(), kind=b"application/json"))
    got = httpx.post(rig.url + PATHS["chat"], json={"model": "small", "messages": [], "n": 2}, timeout=60)
    assert (got.json(), rig.asked) == (body, 1)
