"""Neutral conversation: what the request of any wire format says.

A reader turns a request into a Conversation and never fails on a JSON object: what it does not know, it keeps as
ForeignPart or in `extras`, under its wire family. A writer writes what its wire can say, and names the rest in `dropped`.
Content of a family (reasoning, signatures, the provider's own tools) is written back to the same family only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


class NoFields(Mapping[str, Any]):
    """Empty mapping that cannot be changed. It is hashable, because Python 3.11 demands that of a field's default."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0


NOTHING: Final[Mapping[str, Any]] = NoFields()


class Family(StrEnum):
    """Group of wire formats that understand each other's reasoning and provider-specific content."""

    ANTHROPIC = "anthropic"
    CHAT = "chat"
    RESPONSES = "responses"
    GEMINI = "gemini"


class MediaKind(StrEnum):
    """Kind of a media part."""

    IMAGE = "image"
    DOCUMENT = "document"
    AUDIO = "audio"
    VIDEO = "video"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text. `cache` is a cache breakpoint after it, in the words of the wire that set it."""

    text: str
    cache: Mapping[str, Any] | None = None
    extras: Mapping[str, Any] = NOTHING  # such as citations; only for `family`
    family: Family | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPart:
    """Text by which the model declined to answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPart:
    """Image, document, audio or video: exactly one of `data` (base64), `url`, `file_id` and `text` is set."""

    kind: MediaKind
    mime_type: str = ""  # such as image/png; empty if unknown
    data: str = ""
    url: str = ""
    file_id: str = ""  # of a file that the provider `family` holds
    text: str = ""  # a document given as plain text
    name: str = ""  # file name or title
    detail: str = ""  # resolution of an image: low, high, auto
    cache: Mapping[str, Any] | None = None
    extras: Mapping[str, Any] = NOTHING
    family: Family | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPart:
    """Call of one of the client's tools. `arguments` is JSON text, exactly as the model wrote it where that is known."""

    id: str
    name: str
    arguments: str
    extras: Mapping[str, Any] = NOTHING  # such as Gemini's thoughtSignature; only for `family`
    family: Family | None = None
    cache: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPart:
    """Result of a call: texts and media. `name` is the tool's; it is empty where the wire does not say it."""

    call_id: str
    parts: tuple[TextPart | MediaPart, ...]
    name: str = ""
    is_error: bool = False
    cache: Mapping[str, Any] | None = None
    extras: Mapping[str, Any] = NOTHING  # other fields of the result; only for `family`
    family: Family | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart:
    """Reasoning of a model, as its wire writes it. It never crosses families; `text` is for people."""

    family: Family
    block: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPart:
    """Content that only one family can say, such as the results of the provider's own search. `kind` names it."""

    family: Family
    block: Mapping[str, Any]
    kind: str


Part = TextPart | RefusalPart | MediaPart | ToolCallPart | ToolResultPart | ReasoningPart | ForeignPart


class Speaker(StrEnum):
    """Speaker of a turn. SYSTEM is only used for instructions in the middle of a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn. Tool results stand in user turns. A wire that has one message for each result gives one turn for each."""

    speaker: Speaker
    parts: tuple[Part, ...]
    name: str = ""  # of the speaker
    extras: Mapping[str, Any] = NOTHING  # other fields of the message; only for `family`
    family: Family | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool of the client. `schema` is the JSON schema of its arguments."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = NOTHING
    strict: bool | None = None
    cache: Mapping[str, Any] | None = None
    extras: Mapping[str, Any] = NOTHING
    family: Family | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTool:
    """A tool that the provider runs, such as a web search. Only its family has it."""

    family: Family
    block: Mapping[str, Any]
    kind: str


class ToolMode(StrEnum):
    """Whether the model may, must or must not call tools."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """Choice of tools. `names` limits a required call to these tools; `parallel` False allows one call at a time."""

    mode: ToolMode | None = None
    names: tuple[str, ...] = ()
    parallel: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOutput:
    """The answer must be JSON; of this schema, if there is one."""

    schema: Mapping[str, Any] | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningRequest:
    """How much the model may reason: off, a budget of tokens, or an effort (minimal, low, medium, high, max)."""

    is_enabled: bool | None = None
    budget_tokens: int | None = None
    effort: str = ""
    is_shown: bool | None = None  # whether summaries of thoughts are part of the answer
    is_implied: bool = False  # by another setting: nothing is lost if a wire cannot say it


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Parameters of the model. None: not set."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    choices: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Request to a model."""

    family: Family  # of the wire that it was read from
    model: str = ""
    system: tuple[TextPart, ...] = ()
    turns: tuple[Turn, ...] = ()
    tools: tuple[ToolDefinition | ProviderTool, ...] = ()
    tool_choice: ToolChoice = field(default_factory=ToolChoice)
    output: JsonOutput | None = None
    reasoning: ReasoningRequest | None = None
    sampling: Sampling = field(default_factory=Sampling)
    is_stream: bool = False
    wants_usage: bool = True  # whether a stream ends with its usage
    user: str = ""  # the end user's id
    extras: Mapping[str, Any] = NOTHING  # other fields of the request; only for `family`
    # What a reader keeps for the writers of its own wire, such as the request as it was. No other wire reads it.
    original: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest:
    """Request in a wire format. `dropped` names what the wire cannot say, sorted: `top_k`, `reasoning`, `web_search`."""

    body: dict[str, Any]
    dropped: tuple[str, ...] = ()
