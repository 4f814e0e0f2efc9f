"""What the lab's model says: always the same to the same conversation, every token numbered."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider.schema_samples import sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.testing.provider.parsed_request import ParsedRequest, ParsedTool
    from rung.testing.provider.script import LabScript

PIECE: Final = 8  # characters of JSON in a token
_COUNT: Final = re.compile(r"count to (\d{1,6})(?: as ([A-Za-z]{1,20}))?", re.IGNORECASE)
_GO_ON: Final = re.compile(r"continu|resum|left off|cut off|interrupted|where you stopped", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBlock:
    """Part of an answer in the tokens it comes in: text, thinking, refusal, or a tool's arguments."""

    kind: str
    tokens: tuple[str, ...]
    name: str = ""
    signature: str = ""
    whole: bool = True  # False: it was cut

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    """What the model says, and why it stopped: end, limit, tool, refusal."""

    blocks: tuple[AnswerBlock, ...]
    stop: str = "end"

    @property
    def tokens(self) -> int:
        """How many tokens it is."""
        return sum(len(block.tokens) for block in self.blocks)

    def cut(self, tokens: int, stop: str = "limit") -> ScriptedAnswer:
        """The same, ended after so many tokens; itself when it is no longer than that."""
        if self.tokens <= tokens:
            return self
        kept = []
        left = tokens
        for block in self.blocks:
            if left > 0:
                kept.append(replace(block, tokens=block.tokens[:left], whole=len(block.tokens) <= left))
            left -= len(block.tokens)
        return ScriptedAnswer(blocks=tuple(kept), stop=stop)


def words(number: int, word: str = "word", first: int = 1) -> str:
    """The text of an answer: `word1 word2 …` up to that number."""
    return "".join(word_tokens(number, word, first))


def word_tokens(number: int, word: str = "word", first: int = 1) -> tuple[str, ...]:
    """The same, a token each."""
    return tuple(f"{' ' if n > first else ''}{word}{n}" for n in range(first, number + 1))


def pieces(text: str) -> tuple[str, ...]:
    """Any text in tokens."""
    return tuple(text[at : at + PIECE] for at in range(0, len(text), PIECE)) or ("",)


def answer(asked: ParsedRequest, script: LabScript) -> ScriptedAnswer:
    """What the model says to this, within the limit it was given."""
    thought = (thinking(asked, script.thinking),) if asked.thinking and script.thinking else ()
    said = _scripted(asked, script) or _called(asked, script)
    if said is None:
        said = ScriptedAnswer(blocks=(_text(asked, script),))
    said = replace(said, blocks=(*thought, *said.blocks))
    return said if asked.limit is None else said.cut(asked.limit)


def thinking(asked: ParsedRequest, number: int) -> AnswerBlock:
    """What the model thinks first, signed for itself alone."""
    return AnswerBlock(kind="thinking", tokens=word_tokens(number, "thought"), signature=signature(asked.model))


def signature(model: str) -> str:
    """What a thinking block of this model must carry when it is sent back."""
    return b64encode(f"signed by {model}".encode()).decode()


def tool_call(name: str, arguments: Mapping[str, Any]) -> AnswerBlock:
    """A tool called with these arguments."""
    return AnswerBlock(kind="tool", name=name, tokens=pieces(json.dumps(arguments, separators=(",", ":"))))


def some_tool(asked: ParsedRequest) -> AnswerBlock | None:
    """A call of the tool that must be called, else of the first there is."""
    tool = _named(asked.tools, asked.forced or "") or (asked.tools[0] if asked.tools else None)
    return None if tool is None else tool_call(tool.name, sample(tool.schema) or {})


def _named(tools: Sequence[ParsedTool], name: str) -> ParsedTool | None:
    return next((tool for tool in tools if tool.name == name), None)


def _scripted(asked: ParsedRequest, script: LabScript) -> ScriptedAnswer | None:
    """The turn the script has for this point of the conversation; what asks without tools is not that conversation."""
    if not script.turns or not asked.tools:
        return None
    turn = script.turns[min(asked.calls, len(script.turns) - 1)]
    blocks = [AnswerBlock(kind="text", tokens=_said(turn.text))] if turn.text else []
    calls = [tool_call(name, given) for name, given in turn.tools if _named(asked.tools, name)]
    if not blocks and not calls:
        return None
    return ScriptedAnswer(blocks=(*blocks, *calls), stop="tool" if calls else "end")


def _said(text: str) -> tuple[str, ...]:
    """A text in tokens: its words, each with the space before it."""
    return tuple(re.findall(r"\s*\S+|\s+", text))


def _called(asked: ParsedRequest, script: LabScript) -> ScriptedAnswer | None:
    if asked.forced is None and asked.calls >= script.calls:
        return None
    call = some_tool(asked)
    return None if call is None else ScriptedAnswer(blocks=(call,), stop="tool")


def _text(asked: ParsedRequest, script: LabScript) -> AnswerBlock:
    if asked.schema is not None:
        return AnswerBlock(kind="text", tokens=pieces(json.dumps(sample(asked.schema))))
    number, word = _length(asked, script)
    first = 1
    said = _so_far(asked, word, number)
    if said:
        first = max(1, min(said + 1, number + 1) - script.overlap)
    return AnswerBlock(kind="text", tokens=word_tokens(number, word, first))


def _length(asked: ParsedRequest, script: LabScript) -> tuple[int, str]:
    """How long an answer was asked for ("count to 60 as apple"), else the script's length."""
    for turn in reversed(asked.turns):
        found = _COUNT.findall(turn.text) if turn.role != "assistant" else []
        if found:
            number, word = found[-1]
            return int(number), word or "word"
    return script.words, "word"


def _so_far(asked: ParsedRequest, word: str, number: int) -> int:
    """The last word already said, where the last turn asks to go on: quoted there, or said in the turn before."""
    if not asked.turns or asked.turns[-1].role != "user":
        return 0
    last = asked.turns[-1].text
    quoted = _last_word(last, word, number)
    if quoted or not _GO_ON.search(last):
        return quoted
    before = asked.turns[-2] if len(asked.turns) > 1 else None
    return _last_word(before.text, word, number) if before is not None and before.role == "assistant" else 0


def _last_word(text: str, word: str, number: int) -> int:
    """The last number in a run of the answer's own words; a lone one may be somebody talking about it."""
    numbers = [int(found) for found in re.findall(rf"\b{word}(\d{{1,6}})\b", text)]
    runs = [n for before, n in zip([0, *numbers], numbers, strict=False) if n == before + 1 and n <= number]
    return runs[-1] if runs else 0
