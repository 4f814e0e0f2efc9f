"""Read the signs of a model's answer: stop reasons, leaked calls, broken JSON, emptiness, omissions, statements."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.answer_noise import is_gibberish, is_stub, repeats_itself
from rung.core.classify.answer_statements import statement_signs
from rung.core.classify.answer_text import answer_in, bounded, without_quoted_code
from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.classify.answer_text import AnswerText
    from rung.core.classify.facts import Facts

_MAX_OK_STATUS: Final = 299


def read_answer(facts: Facts, text: str) -> bool:
    """Add the signs of an answer to the codes of the facts; return whether its words are an answer, not an error."""
    if facts.exception_names or facts.exit_code or (facts.status or 0) > _MAX_OK_STATUS:
        return False
    text = text.strip()
    answer = answer_in(text)
    text = bounded(text)
    reasons = set(_stop_reasons(text))
    facts.codes.update(reasons)
    if "refusal" in text and _REFUSAL_FIELD.search(text):
        facts.codes.add("refusal")
    if answer.broken_arguments:
        facts.codes.add("leaked-call")
    if answer.text.strip():
        facts.codes.update(_structural_signs(answer), statement_signs(answer.prose, bounded(answer.text)))
    if answer.has_calls:
        facts.codes.discard("announces-only")  # the call is the announced step
    if answer.is_empty or (not answer.is_body and _is_empty_record(text, reasons)):
        facts.codes.update(_empty_signs(text, reasons))
    return answer.is_body or _is_prose(text)


# -- stop reasons ------------------------------------------------------------------------------------------------

_REASON_NAMES: Final = ("finish", "stop", "done", "completion", "block", "incomplete")
# Begins with the r of "reason" and looks back at the name before it: few places have that letter.
_STOP_REASON: Final = LazyPattern(
    rf"[rR](?i:(?:{'|'.join(f'(?<={name}{joint}r)' for name in _REASON_NAMES for joint in ('', '_'))})"
    r"eason['\"]?\s*[:=]\s*['\"<]*(?:\w+\.)?(\w+))"
)
_LIMIT_FLAG: Final = LazyPattern(
    r"[\"'](?:stopped_limit|truncated)[\"']\s*:\s*true|[\"']stop_type[\"']\s*:\s*[\"']limit"
)
# Google's SDKs print the number of a reason.
_NUMBERED_REASONS: Final = {
    "2": "max_tokens", "3": "safety", "4": "recitation", "6": "blocklist", "7": "prohibited_content", "8": "spii",
    "9": "malformed_function_call",
}  # fmt: skip


def _stop_reasons(text: str) -> Iterator[str]:
    """Yield the stop reasons in a body of any API, also as YAML or as the representation of an object."""
    if "eason" in text:
        for reason in _STOP_REASON.findall(text):
            yield _NUMBERED_REASONS.get(reason, reason.lower())
    if ("stop" in text or "truncated" in text) and _LIMIT_FLAG.search(text):
        yield "length"


_REFUSAL_FIELD: Final = LazyPattern(r"[\"']refusal[\"']\s*:\s*[\"'](?=\S)[^\"']")


# -- empty answers -----------------------------------------------------------------------------------------------

_EMPTY_LIST: Final = LazyPattern(r"\b(?:output|content|parts|choices)[\"']?\s*[:=]\s*\[\]")
_EMPTY_FIELD: Final = LazyPattern(
    r"\b(?:content|text|output_text)[\"']?\s*[:=]\s*(?:None|null|nil|''|\"\")\s*(?:[,})\]\n]|\Z)"
)
_HAS_CALL: Final = LazyPattern(
    r"\b(?:tool_calls?|toolCalls?|function_?call)[\"']?\s*[:=]\s*(?:\[\s*[^\]\s]|[{A-Z](?!one\b))"
)


def _is_empty_record(text: str, reasons: set[str]) -> bool:
    """Return whether a client's record of an answer shows that nothing came."""
    if "[]" in text and _EMPTY_LIST.search(text):
        return True
    return bool(reasons & _ENDS) and _EMPTY_FIELD.search(text) is not None and _HAS_CALL.search(text) is None


_ENDS: Final = frozenset({"stop", "end_turn", "completed", "eos", "eos_token", "end", "1"})
_TOKENS: Final = LazyPattern(
    r"(max|input|prompt|output|completion|candidates|total)(?:_?(?:output|completion|new))?_?tokens?(?:_?count)?[\"']?\s*[:=]\s*(\d{1,9})",
    re.IGNORECASE,
)
_THOUGHTS: Final = LazyPattern(
    r"type[\"']?\s*[:=]\s*[\"'](?:reasoning|thinking)|thoughts_?token_?count|reasoning_tokens[\"']?\s*[:=]\s*[1-9]",
    re.IGNORECASE,
)
_TINY_LIMIT: Final = 16  # tokens: too few for thinking and an answer


def _empty_signs(text: str, reasons: set[str]) -> Iterator[str]:
    """Yield why an answer is empty: its tokens were spent on thinking, or nothing at all came."""
    has_counts = not text.isascii() or "token" in text.lower()
    tokens = {name.lower(): int(number) for name, number in _TOKENS.findall(text)} if has_counts else {}
    answered = tokens.get("output", tokens.get("completion", tokens.get("candidates", 0)))
    asked = tokens.get("input", tokens.get("prompt", 0))
    is_spent = answered > 1 or tokens.get("total", 0) > asked + answered or tokens.get("max", 99) <= _TINY_LIMIT
    if is_spent or _THOUGHTS.search(text):
        yield "spent-on-thinking"
    elif not reasons or reasons & _ENDS:
        yield "empty-answer"


# -- structure ---------------------------------------------------------------------------------------------------

_PLACEHOLDER: Final = LazyPattern(
    r"(?:#|//|/\*|<!--|--|\{/\*)\s*(?:\.\.\.|…|\[?(?:the )?(?:rest of|remaining|existing|unchanged|same as before|your code here"
    r"|previous code)|(?:add|insert|put|include|fill in) (?:your|the|more|other|any|additional)[^\n]{0,40}\bhere\b|todo:? implement|implementation (?:here|goes here|omitted)|placeholder)"
    r"|^[ \t]*\[?(?:\.\.\.|…) ?\(?(?:rest of|remaining|the rest|existing|unchanged|keep|same as|more|and so on|continues)",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE: Final = LazyPattern(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def has_placeholder(text: str) -> bool:
    """Return whether a comment or an ellipsis stands for parts that were left out."""
    return _PLACEHOLDER.search(text) is not None


def ends_in_code_block(text: str) -> bool:
    """Return whether a code fence is never closed: the end of the answer is missing."""
    return ("```" in text or "~~~" in text) and len(_FENCE.findall(text)) % 2 == 1


_MARKUP_START: Final = LazyPattern(
    r"\s*(?:<!doctype [^>]{1,40}>\s*)?<(html|body|svg|div|table|section|main|ul)\b", re.IGNORECASE
)

_LOOKS_LIKE_CODE: Final = LazyPattern(r"[{}();=<>|]|^\s*(?:#|//|--|[-*] )")
# Without "<": a masked secret takes the closing mark with it.
# A word that no sentence ends with, at least four words after the start.
_OPEN_SENTENCE: Final = LazyPattern(
    r"(?:\S+\s+){4,}(?:the|an?|and|or|but|because|while|than|into|your|our|their|its|my|whose|including|totall?ing|approximately|per|versus|via)\s*\Z|(?:\S+\s+){3,}\S*[a-z,](?:,| ?[\u2013\u2014])\s*\Z",
)
_LAST_SENTENCE_CHARS: Final = 400
_OPEN_MARKS: Final = (",", "\u2013", "\u2014")
_OPEN_INLINE_CODE: Final = LazyPattern(r"(?:^|[\s(])`[^`'.<\n]{1,40}\Z")


def _is_cut_off(text: str) -> bool:
    """Return whether the text ends inside inline code, or inside the markup that it consists of."""
    if text.count("`") % 2 == 1 and _OPEN_INLINE_CODE.search(text.rstrip()):
        return True
    last = text[-_LAST_SENTENCE_CHARS:].rstrip().rpartition("\n")[2]
    may_be_open = last[-1:].islower() or last[-1:] in _OPEN_MARKS
    if may_be_open and _OPEN_SENTENCE.match(last) and not _LOOKS_LIKE_CODE.search(last):
        return True
    markup = _MARKUP_START.match(text)
    return markup is not None and f"</{markup[1].lower()}>" not in text.lower()


def _structural_signs(answer: AnswerText) -> Iterator[str]:
    text = bounded(answer.text)
    if repeats_itself(text):
        yield "repetition"
    if is_gibberish(text):
        yield "gibberish"
    if is_stub(text):
        yield "stub"
    if _is_leaked_call(text):
        yield "leaked-call"
    if _is_broken_json(answer.text):
        yield "broken-json"
    if has_placeholder(text):
        yield "placeholder"
    if ends_in_code_block(answer.text) or _is_cut_off(answer.text):
        yield "open-code-block"


# -- tool calls --------------------------------------------------------------------------------------------------

_LEAKED_CALL: Final = LazyPattern(
    r"</?tool_(?:calls?|result|exchange|use|code|name)\b|</?function_?calls?>|<function=|</function>|<parameter(?:=| name=)"
    r"|</?(?:\w+:)?(?:invoke|parameter)\b|<\|?/?tool|<\|\"\|>|<\|im_(?:start|end)\|>|<\|python_tag\|>"
    r"|<\|(?:channel|message|call|constrain|start_header_id|eot_id|eom_id)\|>|<\|(?:channel|turn|think|tool_call|tool_response)>|<(?:channel|turn|think|tool_call|tool_response)\|>|<unused\d+>|<</?SYS>>|</?(?:start|end)_of_turn>"
    r"|\[/?TOOL_(?:CALLS?|REQUEST|RESULTS?)\]"
    r"|< ?[|\uff5c]{1,2} ?(?:DSML\b|tool)|tool[_\u2581](?:calls?|sep)[_\u2581](?:begin|end)|\bto=functions\.|\bfunctions\.\w+:\d"
    r"|<end_(?:action|code|of_turn)>|\bcall:\w+(?::\w+)?\{|assistant(?:final|commentary|analysis)(?=\S)|multi_tool_use\.parallel|\bdefault_api\.\w+\(|^functions\.\w+\(|```tool_(?:code|call)"
    r"|</?(?:execute_command|read_file|write_to_file|replace_in_file|attempt_completion|ask_followup_question|use_mcp_tool"
    r"|str_replace_editor|apply_diff|search_files|list_files)>"
)
_CALL_MARKS: Final = (
    "<",
    "[TOOL",
    "[/TOOL",
    "=functions.",
    "functions.",
    "multi_tool_use",
    "call:",
    "assistant",
    "default_api",
    "```tool_",
    "tool_call",
    "tool\u2581",
)
# The whole answer is a call, a patch or a note about a call.
_WHOLE_CALL: Final = LazyPattern(
    r"\s*(?:<[a-z]+_[a-z_]+>|\*\*\* Begin Patch|\[?(?:print\()?(?-i:[a-z_]\w*)(?:\.\w+)*\(\w+\s*=[^\n]*\)\]?\s*\Z"
    r"|\[?(?:calling|called|invoking|using|tool call|tool_call|tool use|tool)(?: the)?(?: tool| function)?: ?\w+"
    r"|\W{0,6}(?:thought: ?)?i (?:now )?know the final answer\W{0,3}\Z"
    r"|(?-i:[a-z]\w*_\w+) ?\{ ?\"(?s:.*)\}\s*\Z"
    r"|<{5,9} ?(?:SEARCH|ORIGINAL)\b(?s:.*)>{5,9} ?(?:REPLACE|UPDATED)\s*\Z)",
    re.IGNORECASE,
)
# A call as an element with its arguments as children, at the end of the answer.
_ELEMENT_CALL: Final = LazyPattern(
    r"^[ \t]*<([a-z]+(?:[_-][a-z]+)+)>\s*(?:<([a-z_]{1,40})>[^<]{0,2000}</\2>\s*){1,8}</\1>\s*\Z", re.MULTILINE
)
_REACT_CALL: Final = LazyPattern(r"^\W{0,4}action\W{0,4}: ?\w{1,60}[\[({]", re.IGNORECASE | re.MULTILINE)
_JSON_CALL: Final = LazyPattern(
    r"\{\s*(?:\"(?:id|type|index)\"\s*:\s*[^,{}]{1,80},\s*){0,3}(?:\"function\"\s*:\s*\{|\"(?:name|tool|function|tool_name|action"
    r"|recipient_name)\"\s*:\s*\"[\w.:-]{1,80}\"\s*,\s*\"(?:arguments|parameters|args|input|action_input|tool_input|params|kwargs)\"\s*:)"
)
_TYPED_CALL: Final = LazyPattern(r"\s*\{\s*\"type\"\s*:\s*\"(?:tool_use|tool_call|function_call)\"")
_OPEN_CALL: Final = LazyPattern(r"\s*[a-z_]\w*\((?:\w+ ?= ?)?[\"'{\[]")
_REACT_STEP: Final = LazyPattern(
    r"^\W{0,4}action\W{0,4}:.{0,200}\n\s*\W{0,4}(?:action input|args|arguments|input)\W{0,4}:",
    re.IGNORECASE | re.MULTILINE,
)
_REACT_THOUGHT: Final = LazyPattern(r"\W{0,6}thought\W{0,4}:", re.IGNORECASE)
_REACT_ACTION_END: Final = LazyPattern(r"^\W{0,4}action\W{0,4}: ?[\w.-]{1,60}\s*\Z", re.IGNORECASE | re.MULTILINE)
_REACT_END: Final = LazyPattern(r"^\W{0,4}(?:action|code)\W{0,4}:|final answer|```", re.IGNORECASE | re.MULTILINE)


# A token of the model's own protocol that touches the text around it. Prose that mentions one sets it apart.
_SPECIAL_TOKEN: Final = LazyPattern(
    r"[^\s\"'(\u201c]<[|\uff5c][A-Za-z][\w\u2581]{0,40}[|\uff5c]>|<[|\uff5c][A-Za-z][\w\u2581]{0,40}[|\uff5c]>[\w<{\[]"
)


def _is_leaked_call(text: str) -> bool:
    """Return whether a tool call, an edit or a step of an agent's protocol is written as text."""
    if ("<|" in text or "<\uff5c" in text) and _SPECIAL_TOKEN.search(without_quoted_code(text)):
        return True
    if _WHOLE_CALL.match(text) or ("ction" in text and (_REACT_STEP.search(text) or _REACT_CALL.search(text))):
        return True
    if "</" in text and _ELEMENT_CALL.search(without_quoted_code(text)):
        return True
    if any(mark in text for mark in _CALL_MARKS) and _LEAKED_CALL.search(without_quoted_code(text)):
        return True
    if "{" in text and "tool_calls" not in text and "tool_use" not in text and _JSON_CALL.search(text):
        return True
    if _TYPED_CALL.match(text):
        return True
    if _OPEN_CALL.match(text):
        return not text.rstrip().endswith(")")
    if _REACT_THOUGHT.match(text) is None:
        return False
    return _REACT_END.search(text) is None or _REACT_ACTION_END.search(text) is not None


# -- JSON --------------------------------------------------------------------------------------------------------

_JSON_START: Final = LazyPattern(r"\s*(?:\{\s*(?:\\?[\"'}]|\w+\s*:|\{\s*\")|\[\s*[\[{\"])")
_JSON_BLOCK: Final = LazyPattern(r"```(?:json)?[ \t]*\n(\s*[\[{].*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_JSON_LEAD: Final = LazyPattern(
    r"\W*(?:here(?:'s| is| are)|sure|certainly|of course|okay|based on|below is|以下是|好的)", re.IGNORECASE
)
_JSON_INTRO: Final = LazyPattern(
    r"[^{\[\n]{0,160}\bjson\b[^{\[]{0,80}[{\[]|[^{\[]{0,60}:\s*\n+\s*\{\s*\"", re.IGNORECASE
)
_MIN_BLOCK_SHARE: Final = 0.6
_MAX_CHAT_CHARS: Final = 120  # of polite words around the JSON that was asked for


def _is_broken_json(text: str) -> bool:
    """Return whether the answer is meant as JSON and does not parse: truncated, with comments, or inside prose."""
    if _JSON_START.match(text):
        return not _parses(text)
    block = _JSON_BLOCK.search(text)
    if block is not None:
        is_most = len(block[0]) >= len(text) * _MIN_BLOCK_SHARE or (
            len(text) - len(block[0]) <= _MAX_CHAT_CHARS and _JSON_INTRO.match(text) is not None
        )
        return is_most and (_JSON_LEAD.match(text) is not None or not _parses(block[1]))
    return _JSON_INTRO.match(text) is not None and text.rstrip().endswith(("}", "]"))


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# -- prose -------------------------------------------------------------------------------------------------------

_ERROR_START: Final = LazyPattern(
    r"\W{0,20}(?:\S{1,60}: )?(?:api[ _]error|error\b|fatal|failed|http|traceback|\w*(?:error|exception)\b|blocked|status|warning)",
    re.IGNORECASE,
)
_MIN_REPORT_CHARS: Final = 240
_REPORT_MARK: Final = LazyPattern(r"^#{1,4} |^[ \t]*[-*\d.]{1,4} |\*\*|\n\n", re.MULTILINE)
_LIST_ITEM: Final = LazyPattern(r"^[ \t]*\d{1,2}[.)] [A-Z]", re.MULTILINE)
_MIN_ITEMS: Final = 2
_MIN_REPLY_CHARS: Final = 100
_REPLY_WORDS: Final = ("would you like", "i'll", "i've", "i have", "i can", "let me", "i recommend", "i'm")
_REPLY_MARK: Final = LazyPattern(rf"\b(?:{'|'.join(_REPLY_WORDS)})\b", re.IGNORECASE)


def _may_reply(text: str) -> bool:
    """Return whether `_REPLY_MARK` may match. Beyond ASCII, other letters than those of `lower` count as equal."""
    return not text.isascii() or any(map(text.lower().__contains__, _REPLY_WORDS))


def _is_prose(text: str) -> bool:
    """Return whether a text is an answer in sentences: what it mentions is not what happened to the call."""
    if _ERROR_START.match(text):
        return False
    if " I " in text or " means " in text or text.startswith(("I ", "I'")):
        return True  # a service neither speaks of itself so, nor explains what an error means
    if len(text) < _MIN_REPLY_CHARS:
        return False
    if _may_reply(text) and _REPLY_MARK.search(text):
        return True
    if len(_LIST_ITEM.findall(text)) >= _MIN_ITEMS:
        return True
    return len(text) >= _MIN_REPORT_CHARS and _REPORT_MARK.search(text) is not None
