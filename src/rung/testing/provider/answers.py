"""Answers of the lab's model: deterministic per conversation, with numbered words."""

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

TOKEN_CHARACTERS: Final = 8  # of JSON
_COUNT: Final = re.compile(r"count to (\d{1,6})(?: as ([A-Za-z]{1,20}))?", re.IGNORECASE)
_RESUME_REQUEST: Final = re.compile(r"continu|resum|left off|cut off|interrupted|where you stopped", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBlock:
    """Part of an answer as tokens; `kind` is text, thinking, refusal or tool (its arguments)."""

    kind: str
    tokens: tuple[str, ...]
    name: str = ""
    signature: str = ""
    is_complete: bool = True  # False: truncated

    @property
    def text(self) -> str:
        """Return the text of all tokens."""
        return "".join(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    """An answer of the model; `stop` is end, limit, tool or refusal."""

    blocks: tuple[AnswerBlock, ...]
    stop: str = "end"

    @property
    def tokens(self) -> int:
        """Return the number of tokens."""
        return sum(len(block.tokens) for block in self.blocks)

    def cut(self, tokens: int, stop: str = "limit") -> ScriptedAnswer:
        """Return the answer truncated to this many tokens."""
        if self.tokens <= tokens:
            return self
        blocks = []
        left = tokens
        for block in self.blocks:
            if left > 0:
                blocks.append(replace(block, tokens=block.tokens[:left], is_complete=len(block.tokens) <= left))
            left -= len(block.tokens)
        return ScriptedAnswer(blocks=tuple(blocks), stop=stop)


def words(number: int, word: str = "word", first: int = 1) -> str:
    """Return the text of an answer: `word1 word2 …` up to `number`.

    Args:
        number: Number of the last word.
        word: The word. Default: `word`.
        first: Number of the first word. Default: 1.
    """
    return "".join(word_tokens(number, word, first))


def word_tokens(number: int, word: str = "word", first: int = 1) -> tuple[str, ...]:
    """Return the words of an answer, one token each."""
    return tuple(f"{' ' if n > first else ''}{word}{n}" for n in range(first, number + 1))


def split_tokens(text: str) -> tuple[str, ...]:
    """Split a text into tokens of equal length."""
    return tuple(text[at : at + TOKEN_CHARACTERS] for at in range(0, len(text), TOKEN_CHARACTERS)) or ("",)


def build_answer(request: ParsedRequest, script: LabScript) -> ScriptedAnswer:
    """Return the model's answer to a request, truncated at its output limit."""
    thinking_blocks = (thinking(request, script.thinking),) if request.thinking and script.thinking else ()
    answer = _scripted(request, script) or _tool_answer(request, script)
    if answer is None:
        answer = ScriptedAnswer(blocks=(_text(request, script),))
    answer = replace(answer, blocks=(*thinking_blocks, *answer.blocks))
    return answer if request.limit is None else answer.cut(request.limit)


def thinking(request: ParsedRequest, number: int) -> AnswerBlock:
    """Return a thinking block, signed for the request's model."""
    return AnswerBlock(kind="thinking", tokens=word_tokens(number, "thought"), signature=signature(request.model))


def signature(model: str) -> str:
    """Return the signature that thinking blocks of a model carry."""
    return b64encode(f"signed by {model}".encode()).decode()


def tool_call(name: str, arguments: Mapping[str, Any]) -> AnswerBlock:
    """Return a tool call with these arguments."""
    return AnswerBlock(kind="tool", name=name, tokens=split_tokens(json.dumps(arguments, separators=(",", ":"))))


def sample_tool_call(request: ParsedRequest) -> AnswerBlock | None:
    """Return a call of the forced tool, else of the first tool; None if there are no tools."""
    tool = _find_tool(request.tools, request.forced or "") or (request.tools[0] if request.tools else None)
    return None if tool is None else tool_call(tool.name, sample(tool.schema) or {})


def _find_tool(tools: Sequence[ParsedTool], name: str) -> ParsedTool | None:
    return next((tool for tool in tools if tool.name == name), None)


def _scripted(request: ParsedRequest, script: LabScript) -> ScriptedAnswer | None:
    """Return the scripted turn for this point of the conversation; requests without tools are not scripted."""
    if not script.turns or not request.tools:
        return None
    turn = script.turns[min(request.calls, len(script.turns) - 1)]
    blocks = [AnswerBlock(kind="text", tokens=_split_words(turn.text))] if turn.text else []
    calls = [tool_call(name, arguments) for name, arguments in turn.tools if _find_tool(request.tools, name)]
    if not blocks and not calls:
        return None
    return ScriptedAnswer(blocks=(*blocks, *calls), stop="tool" if calls else "end")


def _split_words(text: str) -> tuple[str, ...]:
    """Split a text into words, each with the whitespace before it."""
    return tuple(re.findall(r"\s*\S+|\s+", text))


def _tool_answer(request: ParsedRequest, script: LabScript) -> ScriptedAnswer | None:
    if request.forced is None and request.calls >= script.calls:
        return None
    call = sample_tool_call(request)
    return None if call is None else ScriptedAnswer(blocks=(call,), stop="tool")


def _text(request: ParsedRequest, script: LabScript) -> AnswerBlock:
    if request.schema is not None:
        return AnswerBlock(kind="text", tokens=split_tokens(json.dumps(sample(request.schema))))
    number, word = _length(request, script)
    first = 1
    received = _last_received(request, word, number)
    if received:
        first = max(1, min(received + 1, number + 1) - script.overlap)
    return AnswerBlock(kind="text", tokens=word_tokens(number, word, first))


def _length(request: ParsedRequest, script: LabScript) -> tuple[int, str]:
    """Return length and word of the answer: as requested ("count to 60 as apple"), else the script's."""
    for turn in reversed(request.turns):
        found = _COUNT.findall(turn.text) if turn.role != "assistant" else []
        if found:
            number, word = found[-1]
            return int(number), word or "word"
    return script.words, "word"


def _last_received(request: ParsedRequest, word: str, number: int) -> int:
    """Return the last word number already received, if the last turn quotes it or asks to continue the turn before."""
    if not request.turns or request.turns[-1].role != "user":
        return 0
    last = request.turns[-1].text
    quoted = _last_word(last, word, number)
    if quoted or not _RESUME_REQUEST.search(last):
        return quoted
    before = request.turns[-2] if len(request.turns) > 1 else None
    return _last_word(before.text, word, number) if before is not None and before.role == "assistant" else 0


def _last_word(text: str, word: str, number: int) -> int:
    """Return the last number in a run of consecutive words; ignore a single word, which may be a mention."""
    numbers = [int(found) for found in re.findall(rf"\b{word}(\d{{1,6}})\b", text)]
    runs = [n for before, n in zip([0, *numbers], numbers, strict=False) if n == before + 1 and n <= number]
    return runs[-1] if runs else 0
