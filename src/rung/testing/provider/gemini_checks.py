"""Demands of Gemini's API on a request: its fields, pairs of calls and responses, and signatures."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rung.testing.provider.answers import signature
from rung.testing.provider.parsed_request import InvalidRequest, as_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Fields = dict[str, Any]

SKIPPED_SIGNATURE: Final = "skip_thought_signature_validator"  # Google's own, for calls of other models
_DATA: Final = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
)
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent",
         "model", "labels", "serviceTier", "store"}
    ),
    "content": frozenset({"role", "parts"}),
    "part": _DATA | {"thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"},
    "inline_data": frozenset({"mimeType", "data"}),
    "file_data": frozenset({"mimeType", "fileUri"}),
    "function_call": frozenset({"id", "name", "args"}),
    "function_response": frozenset({"id", "name", "response", "parts", "scheduling", "willContinue"}),
    "function_declaration": frozenset(
        {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"}
    ),
    "generation_config": frozenset(
        {"maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "seed", "presencePenalty",
         "frequencyPenalty", "candidateCount", "responseMimeType", "responseSchema", "responseJsonSchema",
         "responseModalities", "responseLogprobs", "logprobs", "thinkingConfig", "speechConfig", "mediaResolution",
         "imageConfig", "enableEnhancedCivicAnswers"}
    ),
    "thinking_config": frozenset({"thinkingBudget", "thinkingLevel", "includeThoughts"}),
    "function_calling_config": frozenset({"mode", "allowedFunctionNames"}),
}  # fmt: skip
_FUNCTION_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_MAX_STOPS: Final = 5
_AFTER_CALL: Final = "Please ensure that function response turn comes immediately after a function call turn."
_EQUAL: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)


def fields_of(value: Any, kind: str) -> Fields:
    """Return an object with its names in camelCase; raise InvalidRequest if it is none or has a field of no meaning."""
    where = f" at '{kind}'" if kind else ""
    if not isinstance(value, dict):
        raise InvalidRequest(f"Invalid value{where}: expected an object")
    fields = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): item for name, item in value.items()}
    for name in fields:
        if name not in _FIELDS[kind]:
            raise InvalidRequest(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')
    return fields


def table_of(fields: Fields, name: str, kind: str) -> Fields:
    """Return an object field; empty if it is missing."""
    return fields_of(fields[name], kind) if fields.get(name) is not None else {}


def check_config(config: Fields, thinking: Fields) -> None:
    """Check the fields of generationConfig that exclude each other or have a range."""
    limit = config.get("maxOutputTokens")
    if isinstance(limit, int) and limit < 1:
        raise InvalidRequest("max_output_tokens must be positive.")
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        raise InvalidRequest("You can only set only one of thinking budget and thinking level.")
    if len(as_texts(config.get("stopSequences"))) > _MAX_STOPS:
        raise InvalidRequest("* GenerateContentRequest.generation_config.stop_sequences: at most 5 are allowed\n")
    if "responseSchema" in config and config.get("responseMimeType") not in ("application/json", "text/x.enum"):
        raise InvalidRequest(
            "* GenerateContentRequest.generation_config.response_schema: only allowed for application/json\n"
        )


def as_texts(value: Any) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def check_tools(declarations: Sequence[Fields], calling: Fields) -> None:
    """Check the names of functions, and that the choice is between declared ones."""
    names = [each.get("name") for each in declarations]
    for name in names:
        if not isinstance(name, str) or not _FUNCTION_NAME.fullmatch(name):
            raise InvalidRequest(
                "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
                "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-)."
            )
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidRequest(f"Duplicate function declaration found: {name}")
    if calling and not names:
        raise InvalidRequest("Function calling config is set without function_declarations.")
    allowed = as_texts(calling.get("allowedFunctionNames"))
    if allowed and (calling.get("mode") != "ANY" or not set(allowed) <= set(names)):
        raise InvalidRequest("allowed_function_names must be declared functions, and need the mode ANY.")


def check_turns(turns: Sequence[Fields], model: str) -> None:
    """Check that the calls of each turn of the model have their responses in the next turn of the user."""
    calls: list[Fields] = []
    for index, content in enumerate(turns):
        is_model = content["role"] == "model"
        responses = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        _check_pairs(calls, responses)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if calls and (not is_model or index == 0):
            raise InvalidRequest(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
    if turns[-1]["role"] == "model":
        raise InvalidRequest("Please ensure that multiturn requests end with a user role or a function response.")
    _check_signatures(turns, model)


def turns_of(contents: Sequence[Fields]) -> list[Fields]:
    """Return consecutive contents of a role as one. Google's SDK makes one content of each chunk of a stream."""
    turns: list[Fields] = []
    for content in contents:
        role = "model" if content["role"] == "model" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += content["parts"]
        else:
            turns.append({"role": role, "parts": [*content["parts"]]})
    return turns


def _check_pairs(calls: Sequence[Fields], responses: Sequence[Fields]) -> None:
    if responses and not calls:
        raise InvalidRequest(_AFTER_CALL)
    if len(calls) != len(responses):
        raise InvalidRequest(_EQUAL)
    if Counter(str(call.get("name")) for call in calls) != Counter(str(each.get("name")) for each in responses):
        raise InvalidRequest("Please ensure that each function response has the name of its function call.")
    for each in responses:
        if each.get("id") is not None and each["id"] not in [call.get("id") for call in calls]:
            raise InvalidRequest(f"Please ensure that the id {each['id']} of a function response is that of its call.")


def _check_signatures(contents: Sequence[Fields], model: str) -> None:
    """Check the first call of each content since the last words of the user. Only this turn is validated."""
    for content in reversed(contents):
        if content["role"] != "model":
            if any("functionResponse" not in part for part in content["parts"]):
                return
            continue
        call = next((part for part in content["parts"] if "functionCall" in part), None)
        if call is None:
            continue
        given = call.get("thoughtSignature")
        if not given:
            raise InvalidRequest(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
                "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
                f"function call `default_api:{call['functionCall'].get('name')}`."
            )
        if given != SKIPPED_SIGNATURE and str(given).translate(_URL_SAFE) != signature(model):
            raise InvalidRequest("Thought signature is not valid")


_URL_SAFE: Final = str.maketrans("-_", "+/")  # Google's SDKs write bytes in this alphabet


def read_contents(value: Any) -> list[Fields]:
    """Return contents with valid fields; raise InvalidRequest if Google would reject their form."""
    if not isinstance(value, list) or not value:
        raise InvalidRequest("* GenerateContentRequest.contents: contents is not specified\n")
    contents = []
    for index, item in enumerate(value):
        content = fields_of(item, "content")
        if content.setdefault("role", "user") not in ("user", "model", "function"):
            raise InvalidRequest("Please use a valid role: user, model.")
        if not as_list(content.get("parts")) or isinstance(content["parts"], str):
            raise InvalidRequest(
                f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
            )
        content["parts"] = [
            _read_part(part, f"contents[{index}].parts[{at}]") for at, part in enumerate(content["parts"])
        ]
        contents.append(content)
    return contents


def _read_part(value: Any, where: str) -> Fields:
    part = fields_of(value, "part")
    data = [name for name in part if name in _DATA]
    if len(data) != 1:
        raise InvalidRequest(
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n"
        )
    kind = re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", data[0])
    if kind in _FIELDS:
        part[data[0]] = fields_of(part[data[0]], kind)
    if kind == "function_response" and not isinstance(part[data[0]].get("response"), dict):
        raise InvalidRequest(f"* GenerateContentRequest.{where}.function_response.response: expected an object\n")
    if kind == "function_call" and not isinstance(part[data[0]].get("args", {}), dict):
        raise InvalidRequest(f"* GenerateContentRequest.{where}.function_call.args: expected an object\n")
    return part
