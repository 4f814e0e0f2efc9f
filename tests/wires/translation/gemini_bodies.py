"""Requests and answers of Gemini's wire, for properties."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(max_size=12)
NAMES = st.sampled_from(["read", "write", "search"])
IDS = st.sampled_from(["c1", "c2", "toolu_3"])
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
DATA = st.binary(min_size=1, max_size=9).map(lambda data: b64encode(data).decode())
MIME_TYPES = st.sampled_from(["image/png", "application/pdf", "audio/wav", "video/mp4", "text/plain"])
URIS = st.sampled_from(
    ["gs://bucket/a.png", "https://example.com/a.png?x=1", "https://youtu.be/abc", "https://example.com/b",
     "https://generativelanguage.googleapis.com/v1beta/files/abc"]
)  # fmt: skip


def fields(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with required and optional fields."""
    return st.fixed_dictionaries(required, optional=optional)


def one(key: str, value: Any, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return fields({key: value}, **optional)


INLINE = one("inlineData", fields({"mimeType": MIME_TYPES, "data": DATA}, displayName=st.just("a.png")))
FILES = one("fileData", fields({"fileUri": URIS}, mimeType=MIME_TYPES))
RESPONSES = (
    st.fixed_dictionaries({"output": TEXT | JSON})
    | st.fixed_dictionaries({"error": TEXT | JSON})
    | st.fixed_dictionaries({"result": JSON})
    | OBJECTS
)
USER_PARTS = st.one_of(
    one("text", TEXT),
    one("text", TEXT, partMetadata=OBJECTS),
    one("inlineData", fields({"mimeType": MIME_TYPES, "data": DATA}), videoMetadata=OBJECTS),
    INLINE,
    FILES,
    one(
        "functionResponse",
        fields(
            {"name": NAMES, "response": RESPONSES},
            id=IDS,
            parts=st.lists(INLINE | FILES, max_size=2),
            scheduling=st.just("SILENT"),
        ),
    ),
    st.fixed_dictionaries({"newThing": JSON}),
)
MODEL_PARTS = st.one_of(
    one("text", TEXT),
    one("text", TEXT, thoughtSignature=DATA),
    one("text", TEXT, thought=st.booleans(), thoughtSignature=DATA),
    st.fixed_dictionaries({"thoughtSignature": DATA}),
    one("functionCall", fields({"name": NAMES, "args": OBJECTS}, id=IDS), thoughtSignature=DATA),
    one("executableCode", OBJECTS),
    one("codeExecutionResult", OBJECTS, thoughtSignature=DATA),
    INLINE,
)
CONTENTS = st.one_of(
    fields({"role": st.just("user"), "parts": st.lists(USER_PARTS, max_size=4)}),
    fields({"role": st.just("model"), "parts": st.lists(MODEL_PARTS, max_size=4)}),
    fields({"role": st.just("function"), "parts": st.lists(USER_PARTS, max_size=2)}),
    fields({"parts": st.lists(USER_PARTS, max_size=2)}),
)
SCHEMAS = st.sampled_from(
    [
        {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}, "required": ["a"]},
        {"type": "ARRAY", "items": {"type": "INTEGER", "format": "int32"}, "minItems": "1"},
        {"anyOf": [{"type": "NUMBER"}, {"type": "BOOLEAN"}]},
    ]
)
JSON_SCHEMAS = st.sampled_from([{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}])
DESCRIPTIONS = st.text(min_size=1, max_size=9)
FUNCTIONS = st.one_of(
    fields({"name": NAMES}, description=DESCRIPTIONS, parameters=SCHEMAS, response=SCHEMAS),
    fields({"name": NAMES}, description=DESCRIPTIONS, parametersJsonSchema=JSON_SCHEMAS, behavior=st.just("BLOCKING")),
)
PROVIDER_TOOLS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}]
)
TOOLS = st.one_of(
    st.lists(PROVIDER_TOOLS, min_size=1, max_size=2),
    st.tuples(
        st.lists(PROVIDER_TOOLS, max_size=1),
        st.lists(FUNCTIONS, min_size=1, max_size=3),
        st.lists(PROVIDER_TOOLS, max_size=2),
    ).map(lambda three: [*three[0], {"functionDeclarations": three[1]}, *three[2]]),
)
CHOICES = st.one_of(
    one("functionCallingConfig", fields({"mode": st.sampled_from(["AUTO", "ANY", "NONE", "VALIDATED"])})),
    one(
        "functionCallingConfig",
        fields({"mode": st.just("ANY"), "allowedFunctionNames": st.lists(NAMES, min_size=1, max_size=2)}),
        retrievalConfig=OBJECTS,
    ),
)
SAMPLING = {
    "maxOutputTokens": st.integers(1, 9_999),
    "temperature": st.floats(0, 2),
    "topP": st.floats(0, 1),
    "topK": st.integers(1, 40),
    "seed": st.integers(0, 99),
    "presencePenalty": st.floats(-2, 2),
    "frequencyPenalty": st.floats(-2, 2),
    "candidateCount": st.integers(2, 4),
    "stopSequences": st.lists(TEXT, min_size=1, max_size=5),
    "thinkingConfig": st.one_of(
        fields({"thinkingBudget": st.integers(-1, 9_999)}, includeThoughts=st.booleans()),
        fields({"thinkingLevel": st.sampled_from(["MINIMAL", "LOW", "MEDIUM", "HIGH"])}, includeThoughts=st.booleans()),
        fields({"includeThoughts": st.booleans()}),
        fields({"thinkingLevel": st.just("ULTRA"), "newThing": JSON}),
    ),
    "responseModalities": st.just(["TEXT", "IMAGE"]),
    "speechConfig": OBJECTS,
}
CONFIGS = st.one_of(
    fields({"audioTimestamp": st.just(value=True)}, **SAMPLING),
    fields({"responseMimeType": st.just("application/json")}, responseSchema=SCHEMAS, **SAMPLING),
    fields({"responseMimeType": st.just("application/json")}, responseJsonSchema=JSON_SCHEMAS, **SAMPLING),
    fields({"responseMimeType": st.just("text/x.enum"), "responseSchema": SCHEMAS}),
)
INSTRUCTIONS = fields({"parts": st.lists(one("text", TEXT), min_size=1, max_size=2), "role": st.just("user")})
REQUESTS = fields(
    {"contents": st.lists(CONTENTS, min_size=1, max_size=6)},
    systemInstruction=INSTRUCTIONS
    | fields({"parts": st.lists(fields({"text": TEXT, "partMetadata": OBJECTS}) | INLINE, min_size=1, max_size=2)}),
    tools=TOOLS,
    toolConfig=CHOICES,
    generationConfig=CONFIGS,
    safetySettings=st.lists(OBJECTS, max_size=2),
    cachedContent=st.just("cachedContents/abc"),
    labels=OBJECTS,
)
COUNTS = st.integers(0, 999)
USAGES = st.builds(
    lambda prompt, cached, output, thoughts: {
        "promptTokenCount": prompt + cached,
        "candidatesTokenCount": output,
        "totalTokenCount": prompt + cached + output + thoughts,
        **({"cachedContentTokenCount": cached} if cached else {}),
        **({"thoughtsTokenCount": thoughts} if thoughts else {}),
    },
    COUNTS, COUNTS, COUNTS, COUNTS,
)  # fmt: skip
REASONS = st.sampled_from(
    ["STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "NEW"]
)
ANSWERS = st.one_of(
    fields(
        {
            "candidates": st.tuples(
                fields(
                    {
                        "content": fields({"role": st.just("model"), "parts": st.lists(MODEL_PARTS, max_size=4)}),
                        "finishReason": REASONS,
                        "index": st.just(0),
                    },
                    safetyRatings=st.lists(OBJECTS, max_size=1),
                    groundingMetadata=OBJECTS,
                )
            ).map(list),
            "usageMetadata": USAGES,
            "modelVersion": st.just("gemini-3-pro"),
            "responseId": st.just("r1"),
        },
        createTime=st.just("2026-01-02T03:04:05Z"),
        promptFeedback=st.just({"safetyRatings": []}),
    ),
    fields(
        {
            "promptFeedback": fields({"blockReason": st.just("SAFETY")}, blockReasonMessage=TEXT),
            "usageMetadata": USAGES,
            "modelVersion": st.just("gemini-3-pro"),
            "responseId": st.just("r1"),
        }
    ),
)
