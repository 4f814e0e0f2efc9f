"""Parameters of a request of the Responses API: sampling, reasoning, the format of the output, and the end user."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_models import has_effort, reasoning_effort, rejected
from rung.wires.translation.conversation import Family, JsonOutput, ReasoningRequest, Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import Conversation

Body = dict[str, Any]

PARAMETER_FIELDS: Final = frozenset(
    {"text", "reasoning", "max_output_tokens", "temperature", "top_p", "user", "safety_identifier"}
)
NESTED_PREFIXES: Final = ("text.", "reasoning.")  # of extras that are fields of these objects
DEFAULT_OUTPUT_NAME: Final = "answer"
MIN_OUTPUT_TOKENS: Final = 16  # the provider rejects less
MAX_USER_ID: Final = 64  # characters
# Budgets of other wires in tokens, from the highest: at least this budget is this effort.
EFFORT_OF_BUDGET: Final = ((16_384, "high"), (4_096, "medium"), (1, "low"))
# Models that reject the highest effort; a provider may stand before the name.
_WITHOUT_XHIGH: Final = re.compile(
    r"(?:^|[/.])(?:o\d(?=-|$)|gpt-5(?:\.1(?!-codex-max)(?!\d))?(?=-|$))", re.IGNORECASE
).search
_READ_EFFORTS: Final = {"xhigh": "max"}
_NAME_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9_-]")
_UNSUPPORTED: Final = ("top_k", "seed", "presence_penalty", "frequency_penalty")


def read_sampling(body: Mapping[str, Any]) -> Sampling:
    """Read the sampling parameters."""
    limit = body.get("max_output_tokens")
    return Sampling(
        max_tokens=limit if type(limit) is int else None,
        temperature=_number(body.get("temperature")),
        top_p=_number(body.get("top_p")),
    )


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def write_sampling(conversation: Conversation, dropped: set[str]) -> Body:
    """Write the sampling parameters. For other wires, a default is left out, and what the model rejects."""
    sampling, is_own = conversation.sampling, conversation.family is Family.RESPONSES
    found: Body = {}
    if sampling.max_tokens is not None:
        found["max_output_tokens"] = sampling.max_tokens if is_own else max(sampling.max_tokens, MIN_OUTPUT_TOKENS)
    for name, value in (("temperature", sampling.temperature), ("top_p", sampling.top_p)):
        if value is None or (value == 1 and not is_own):
            continue
        if not is_own and rejected(conversation.model, name, value):
            dropped.add(name)
        else:
            found[name] = value
    dropped.update(name for name in _UNSUPPORTED if getattr(sampling, name) is not None)
    dropped.update(["stop"] if sampling.stop else [])
    dropped.update(["n"] if sampling.choices > 1 else [])
    return found


def read_reasoning(body: Mapping[str, Any], extras: Body) -> ReasoningRequest | None:
    """Read the reasoning parameters; what only this wire has goes into `extras`, such as `reasoning.context`."""
    found = body.get("reasoning")
    if not isinstance(found, dict):
        return None
    effort, summary = found.get("effort"), found.get("summary") or found.get("generate_summary")
    extras.update({f"reasoning.{name}": value for name, value in found.items() if name not in ("effort", "summary")})
    if summary not in (None, "auto"):
        extras["reasoning.summary"] = summary
    if not isinstance(effort, str):
        return ReasoningRequest(is_shown=True) if summary else None
    if effort == "none":
        return ReasoningRequest(is_enabled=False)
    return ReasoningRequest(effort=_READ_EFFORTS.get(effort, effort), is_shown=True if summary else None)


def write_reasoning(conversation: Conversation, dropped: set[str]) -> Body:
    """Write the reasoning parameters. Switching reasoning off is the lowest effort that a model of OpenAI knows."""
    wanted, is_own = conversation.reasoning, conversation.family is Family.RESPONSES
    found: Body = _nested(conversation, "reasoning.")
    if wanted is not None and wanted.is_enabled is False:
        effort, is_lost = ("none", False) if is_own else reasoning_effort(wanted, conversation.model)
        found |= {"effort": effort} if effort else {}
        dropped.update(["reasoning_off"] if is_lost else [])
    elif wanted is not None:
        effort = wanted.effort or _effort_of(wanted.budget_tokens)
        effort = "xhigh" if effort == "max" else effort
        if not is_own:
            effort = _known_effort(effort, conversation.model)
            dropped.update(["reasoning"] if reasoning_effort(wanted, conversation.model)[1] else [])
        found |= {"effort": effort} if effort else {}
        if wanted.is_shown and "summary" not in found and is_own:
            found["summary"] = "auto"
    return {"reasoning": found} if found else {}


def _known_effort(effort: str, model: str) -> str:
    """Return the effort, or the nearest one that a model of OpenAI knows; empty if it does not reason."""
    if not has_effort(model):
        return ""
    return "high" if effort == "xhigh" and _WITHOUT_XHIGH(model) else effort


def _effort_of(budget: int | None) -> str:
    return next((effort for least, effort in EFFORT_OF_BUDGET if budget is not None and budget >= least), "")


def read_output(body: Mapping[str, Any], extras: Body) -> JsonOutput | None:
    """Read the format of the output; what only this wire has goes into `extras`, such as `text.verbosity`."""
    found = body.get("text")
    if not isinstance(found, dict):
        return None
    extras.update({f"text.{name}": value for name, value in found.items() if name != "format"})
    form = found.get("format")
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "json_object":
        return JsonOutput()
    if not isinstance(form, dict) or kind != "json_schema" or not isinstance(form.get("schema"), dict):
        extras.update({"text.format": form} if form is not None and kind != "text" else {})
        return None
    name, text, strict = form.get("name"), form.get("description"), form.get("strict")
    return JsonOutput(
        schema=form["schema"],
        name=name if isinstance(name, str) else "",
        description=text if isinstance(text, str) else "",
        strict=strict if isinstance(strict, bool) else None,
    )


def write_output(conversation: Conversation, _: set[str]) -> Body:
    """Write the format of the output. A schema needs a name."""
    output, found = conversation.output, _nested(conversation, "text.")
    if output is not None and output.schema is None:
        found["format"] = {"type": "json_object"}
    elif output is not None:
        name = _NAME_CHARACTERS.sub("_", output.name)[:64] or DEFAULT_OUTPUT_NAME
        found["format"] = {"type": "json_schema", "name": name, "schema": dict(output.schema or {})}
        found["format"] |= {"strict": output.strict} if output.strict is not None else {}
        found["format"] |= {"description": output.description} if output.description else {}
    return {"text": found} if found else {}


def read_user(body: Mapping[str, Any], extras: Body) -> str:
    """Return the end user's id. A second one, by the older name, goes into `extras`."""
    newer, older = body.get("safety_identifier"), body.get("user")
    if isinstance(newer, str) and newer:
        extras.update({"user": older} if older is not None else {})
        return newer
    return older if isinstance(older, str) else ""


def write_user(conversation: Conversation, _: set[str]) -> Body:
    """Write the end user's id: a long one as its hash."""
    user = conversation.user
    if len(user) > MAX_USER_ID:
        user = hashlib.sha256(user.encode("utf-8", "replace")).hexdigest()
    return {"safety_identifier": user} if user else {}


def _nested(conversation: Conversation, prefix: str) -> Body:
    """Return the extras of this wire that are fields of an object."""
    if conversation.family is not Family.RESPONSES:
        return {}
    size = len(prefix)
    return {name[size:]: value for name, value in conversation.extras.items() if name.startswith(prefix)}
