"""Strategies of requests of the Responses API."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

TEXT = st.text(min_size=1, max_size=8)
NAME = st.sampled_from(["look", "run", "find", "apply"])
CALL = st.sampled_from(["call_1", "call_2", "call_3"])
FLAG = st.booleans()
OBJECT = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9) | TEXT, max_size=2)
SCHEMA = st.just({"type": "object", "properties": {"a": {"type": "string"}}})


def table(*, optional: Json | None = None, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Return objects with these fields; a value that is no strategy is a constant."""
    more = optional or {}
    return st.fixed_dictionaries(fields, optional=more)


def of(kind: str, *, optional: Json | None = None, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Return objects of a type."""
    return table(type=st.just(kind), optional=optional, **fields)


BREAKPOINT = {"prompt_cache_breakpoint": st.just({"mode": "explicit"})}
ANNOTATION = st.just({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1})
INPUT_TEXT = of("input_text", text=TEXT, optional=BREAKPOINT)
OUTPUT_TEXT = of("output_text", text=TEXT, annotations=st.lists(ANNOTATION, max_size=1))
REFUSAL = of("refusal", refusal=TEXT)
DETAIL = {"detail": st.sampled_from(["low", "high", "auto"]), **BREAKPOINT}
URL = st.sampled_from(["https://x.test/a", "data:image/png;base64,QUJD", "data:image/png,x"])
IMAGE = of("input_image", image_url=URL, optional=DETAIL) | of("input_image", file_id=TEXT, optional=DETAIL)
FILE = (
    of("input_file", file_data=st.sampled_from(["QUJD", "data:text/csv;base64,QUJD"]), filename=TEXT, optional=DETAIL)
    | of("input_file", file_url=st.just("https://x.test/a.pdf"), optional=DETAIL)
    | of("input_file", file_id=TEXT, optional={"filename": TEXT, **DETAIL})
)
AUDIO = of("input_audio", input_audio=st.just({"data": "QUJD", "format": "wav"}))
UNKNOWN_PART = of("input_hologram", data=TEXT)
CONTENT = TEXT | st.lists(INPUT_TEXT | IMAGE | FILE | AUDIO | UNKNOWN_PART, min_size=1, max_size=3)
HEAD = {"id": TEXT, "status": st.just("completed")}
MESSAGE = (
    table(role=st.sampled_from(["user", "system", "developer"]), content=CONTENT, optional={"type": st.just("message")})
    | table(role=st.just("assistant"), content=TEXT)
    | of("message", role=st.just("assistant"), content=st.lists(OUTPUT_TEXT | REFUSAL, max_size=2), optional=HEAD)
)
RESULT = TEXT | st.lists(INPUT_TEXT | IMAGE | FILE, min_size=1, max_size=2)
CALLS = (
    of("function_call", call_id=CALL, name=NAME, arguments=st.just('{"a": 1}'), optional={"namespace": NAME, **HEAD})
    | of("custom_tool_call", call_id=CALL, name=NAME, input=TEXT, optional={"id": TEXT})
    | of("local_shell_call", call_id=CALL, id=TEXT, status=st.just("completed"), action=OBJECT)
    | of("shell_call", call_id=CALL, action=OBJECT)
    | of("apply_patch_call", call_id=CALL, operation=OBJECT, status=st.just("completed"))
    | of("tool_search_call", call_id=CALL, arguments=OBJECT, execution=st.sampled_from(["client", "server"]))
)
RESULTS = (
    of("function_call_output", call_id=CALL, output=RESULT, optional=HEAD)
    | of("custom_tool_call_output", call_id=CALL, output=RESULT)
    | of("shell_call_output", call_id=CALL, output=st.lists(OBJECT, max_size=1))
    | of("apply_patch_call_output", call_id=CALL, output=TEXT, status=st.just("completed"))
)
REASONING = of(
    "reasoning", id=TEXT, summary=st.lists(of("summary_text", text=TEXT), max_size=1), encrypted_content=TEXT
)
FOREIGN = (
    of("web_search_call", id=TEXT, status=st.just("completed"), action=OBJECT)
    | of("item_reference", id=TEXT)
    | of("computer_call_output", call_id=CALL, output=OBJECT)
    | of("mcp_approval_response", approval_request_id=TEXT, approve=FLAG)
    | of("compaction", encrypted_content=TEXT)
)
FUNCTION = of(
    "function",
    name=NAME,
    parameters=SCHEMA | st.none(),
    optional={"description": TEXT, "strict": FLAG, "defer_loading": FLAG},
)
GRAMMAR = st.just({"type": "grammar", "syntax": "lark", "definition": "start: /a+/"})
CUSTOM = of("custom", name=NAME, optional={"description": TEXT, "format": GRAMMAR | st.just({"type": "text"})})
NAMESPACE = of("namespace", name=TEXT, description=TEXT, tools=st.lists(FUNCTION | CUSTOM, min_size=1, max_size=2))
HOSTED = of("web_search", optional={"search_context_size": st.just("low")}) | of(
    "file_search", vector_store_ids=st.just([])
)
SHELLS = of("local_shell") | of("apply_patch") | of("shell", environment=st.just({"type": "local"}))
TOOL = (
    FUNCTION | CUSTOM | NAMESPACE | HOSTED | SHELLS | of("tool_search", execution=st.just("client"), parameters=SCHEMA)
)
ADDED_TOOLS = of("additional_tools", role=st.just("developer"), tools=st.lists(TOOL, max_size=2))
ITEM = MESSAGE | CALLS | RESULTS | REASONING | FOREIGN | ADDED_TOOLS
CHOSEN = of("function", name=NAME) | of("custom", name=NAME)
CHOICE = (
    st.sampled_from(["auto", "none", "required"])
    | CHOSEN
    | of("allowed_tools", mode=st.sampled_from(["auto", "required"]), tools=st.lists(CHOSEN, min_size=1, max_size=2))
    | of("web_search")
    | of("mcp", server_label=TEXT)
)
FORMAT = (
    of("text")
    | of("json_object")
    | of("json_schema", name=NAME, schema=SCHEMA, optional={"strict": FLAG, "description": TEXT})
)
EFFORT = st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh"])
REQUEST = table(
    model=TEXT,
    input=TEXT | st.lists(ITEM, max_size=6),
    optional={
        "instructions": TEXT,
        "tools": st.lists(TOOL, max_size=4),
        "tool_choice": CHOICE,
        "parallel_tool_calls": FLAG,
        "text": table(optional={"format": FORMAT, "verbosity": st.just("low")}),
        "reasoning": table(optional={"effort": EFFORT, "summary": st.sampled_from(["auto", "detailed"])}),
        "max_output_tokens": st.integers(1, 99) | st.none(),
        "temperature": st.sampled_from([0, 0.5, 1, None]),
        "top_p": st.sampled_from([0.5, 1]),
        "user": TEXT,
        "safety_identifier": TEXT,
        "stream": FLAG,
        "store": FLAG,
        "include": st.just(["reasoning.encrypted_content"]),
        "metadata": OBJECT,
        "previous_response_id": TEXT,
        "conversation": TEXT,
        "truncation": st.just("auto"),
        "service_tier": st.just("flex"),
        "prompt_cache_key": TEXT,
        "background": FLAG,
        "max_tool_calls": st.integers(1, 9),
    },
)
