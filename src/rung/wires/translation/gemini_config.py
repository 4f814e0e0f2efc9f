"""generationConfig of Gemini's API: sampling, JSON output and thinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import JsonOutput, ReasoningRequest, Sampling
from rung.wires.translation.gemini_fields import is_int, is_number, spelled, texts_of
from rung.wires.translation.gemini_schema import OpenApiSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.wires.translation.conversation import Conversation

JSON_TYPE: Final = "application/json"
LEVELS: Final = frozenset({"minimal", "low", "medium", "high"})
MAX_STOPS: Final = 5
_SAMPLING: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "maxOutputTokens": ("max_tokens", is_int),
    "temperature": ("temperature", is_number),
    "topP": ("top_p", is_number),
    "topK": ("top_k", lambda value: is_number(value) and value == int(value)),  # type: ignore[call-overload]  # a number
    "seed": ("seed", is_int),
    "presencePenalty": ("presence_penalty", is_number),
    "frequencyPenalty": ("frequency_penalty", is_number),
    "candidateCount": ("choices", lambda value: is_int(value) and value > 0),  # type: ignore[operator]  # a number
    "stopSequences": ("stop", lambda value: texts_of(value) is not None),
}


class ReadConfig:
    """Settings of a generationConfig. `rest` are the fields that have no neutral form."""

    __slots__ = ("output", "reasoning", "rest", "sampling")

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.rest = {key: value for key, value in spelled(config).items() if value is not None}
        self.sampling = self._read_sampling()
        self.output = self._read_output()
        self.reasoning = self._read_reasoning()

    def _read_sampling(self) -> Sampling:
        values: dict[str, Any] = {}
        for key, (name, is_valid) in _SAMPLING.items():
            if key in self.rest and is_valid(self.rest[key]):
                value = self.rest.pop(key)
                values[name] = tuple(value) if name == "stop" else int(value) if name == "top_k" else value
        return Sampling(**values)

    def _read_output(self) -> JsonOutput | None:
        mime = self.rest.get("responseMimeType")
        if mime == "text/plain":
            del self.rest["responseMimeType"]  # the default
        if mime != JSON_TYPE:
            return None
        del self.rest["responseMimeType"]
        if isinstance(self.rest.get("responseJsonSchema"), dict):
            return JsonOutput(schema=self.rest.pop("responseJsonSchema"))
        if isinstance(self.rest.get("responseSchema"), dict):
            return JsonOutput(schema=OpenApiSchema(self.rest.pop("responseSchema")))
        return JsonOutput()

    def _read_reasoning(self) -> ReasoningRequest | None:
        config = self.rest.get("thinkingConfig")
        if isinstance(config, dict):
            self.rest["thinkingConfig"] = config = spelled(config)
        fields = dict(config) if isinstance(config, Mapping) else {}
        budget, level, shown = (fields.pop(key, None) for key in ("thinkingBudget", "thinkingLevel", "includeThoughts"))
        is_budget = budget is None or (is_int(budget) and budget >= -1)
        is_level = level is None or (isinstance(level, str) and level.lower() in LEVELS)
        if fields or not is_budget or not is_level or not isinstance(shown, bool | None):
            return None
        self.rest.pop("thinkingConfig", None)
        if budget is None and level is None and shown is None:
            return None
        return ReasoningRequest(
            is_enabled=None if budget is None else budget != 0,
            budget_tokens=budget if budget is not None and budget > 0 else None,
            effort=level.lower() if level else "",
            is_shown=shown,
        )


def own_config(conversation: Conversation) -> dict[str, Any]:
    """Write the generationConfig of a conversation that was read from Gemini's wire."""
    config = sampling_fields(conversation.sampling)
    if conversation.sampling.choices > 1:
        config["candidateCount"] = conversation.sampling.choices
    if conversation.sampling.stop:
        config["stopSequences"] = list(conversation.sampling.stop)
    if conversation.output is not None:
        config |= output_fields(conversation.output)
    thinking = _own_thinking(conversation.reasoning)
    return config | ({"thinkingConfig": thinking} if thinking else {})


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """Return the numbers of a sampling that are set."""
    fields = {key: getattr(sampling, name) for key, (name, _) in _SAMPLING.items() if name not in ("choices", "stop")}
    return {key: value for key, value in fields.items() if value is not None}


def output_fields(output: JsonOutput) -> dict[str, Any]:
    """Return the fields of a JSON output. Google's own schema is written as it was."""
    if output.schema is None:
        return {"responseMimeType": JSON_TYPE}
    if isinstance(output.schema, OpenApiSchema):
        return {"responseMimeType": JSON_TYPE, "responseSchema": output.schema.original}
    schema = dict(output.schema)
    if output.description:
        schema.setdefault("description", output.description)
    return {"responseMimeType": JSON_TYPE, "responseJsonSchema": schema}


def _own_thinking(reasoning: ReasoningRequest | None) -> dict[str, Any]:
    if reasoning is None:
        return {}
    config: dict[str, Any] = {}
    if reasoning.is_enabled is not None:
        config["thinkingBudget"] = (reasoning.budget_tokens or -1) if reasoning.is_enabled else 0
    if reasoning.effort:
        config["thinkingLevel"] = reasoning.effort.upper()
    if reasoning.is_shown is not None:
        config["includeThoughts"] = reasoning.is_shown
    return config
